//! Values that no row can hold, refused by name instead of by the database.

use magnum_common::error::Fault;
use magnum_common::model::StringMap;

/// Longest text of a text column, in characters.
const TEXT: usize = 255;

/// Longest text of MySQL's TEXT, in bytes.
const LONG_TEXT: usize = u16::MAX as usize;

/// Refuses texts that are too long; `owner` is the resource that the fault names.
///
/// # Errors
/// `InvalidParameterValue`, with the first text longer than 255 characters.
pub fn texts(owner: &str, texts: &[(&str, Option<&str>)]) -> Result<(), Fault> {
    for (name, text) in texts {
        if text.is_some_and(|text| text.chars().count() > TEXT) {
            return Err(Fault::invalid_parameter(format!(
                "{name} of the {owner} is longer than {TEXT} characters."
            )));
        }
    }
    Ok(())
}

/// Refuses a map that is too long as JSON; `name` is its name in the fault.
///
/// # Errors
/// `InvalidParameterValue` for more than 64 KiB.
pub fn map(name: &str, map: &StringMap) -> Result<(), Fault> {
    let length: usize = map.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    if length > LONG_TEXT {
        return Err(Fault::invalid_parameter(format!(
            "{name} are longer than 64 KiB."
        )));
    }
    Ok(())
}

/// Refuses a negative number of nodes.
///
/// # Errors
/// `InvalidParameterValue`, with the number.
pub fn not_negative(node_count: i32) -> Result<(), Fault> {
    if node_count < 0 {
        return Err(Fault::invalid_parameter(format!(
            "node_count must not be negative, it is {node_count}."
        )));
    }
    Ok(())
}
