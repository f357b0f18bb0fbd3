//! Values that no row can hold, refused by name instead of by the database.

use magnum_common::error::Fault;
use magnum_common::model::StringMap;

/// What columns of texts hold, in characters.
const TEXT: usize = 255;

/// What MySQL's TEXT holds, in bytes.
const LONG_TEXT: usize = u16::MAX as usize;

/// Refuses texts that are too long; `of` says whose they are.
///
/// # Errors
/// What the caller is told.
pub fn texts(of: &str, texts: &[(&str, Option<&str>)]) -> Result<(), Fault> {
    for (name, text) in texts {
        if text.is_some_and(|text| text.chars().count() > TEXT) {
            return Err(Fault::invalid_parameter(format!(
                "{name} of the {of} is longer than {TEXT} characters."
            )));
        }
    }
    Ok(())
}

/// Refuses a map that is too long once it is JSON; `what` names it.
///
/// # Errors
/// What the caller is told.
pub fn map(what: &str, map: &StringMap) -> Result<(), Fault> {
    let length: usize = map.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
    if length > LONG_TEXT {
        return Err(Fault::invalid_parameter(format!(
            "{what} are longer than 64 KiB."
        )));
    }
    Ok(())
}

/// Refuses a negative number of nodes.
///
/// # Errors
/// What the caller is told.
pub fn not_negative(node_count: i32) -> Result<(), Fault> {
    if node_count < 0 {
        return Err(Fault::invalid_parameter(format!(
            "node_count must not be negative, it is {node_count}."
        )));
    }
    Ok(())
}
