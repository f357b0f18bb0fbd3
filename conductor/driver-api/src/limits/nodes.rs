//! Limits of a driver's choice of the nodes that go.

use std::collections::HashSet;

use magnum_drivers::DriverInfo;

use super::{LimitError, over};
use crate::{DriverError, Reason, Shrinking};

/// Characters in the name of a node.
const LONGEST_NAME: usize = 255;
/// Bytes of all names together: they lie in one column of the journal, beside the other arguments.
const MOST_BYTES: usize = 1 << 20;

/// The nodes that a driver has chosen, if they can be kept in the journal and handed to the resize.
///
/// # Errors
/// The driver's own error, or a permanent one that names what is wrong.
pub fn accept_nodes(
    driver: &DriverInfo,
    shrinking: Shrinking<'_>,
    result: Result<Vec<String>, DriverError>,
) -> Result<Vec<String>, DriverError> {
    let names = result?;
    check(&names, shrinking.surplus()).map_err(|error| {
        DriverError::Permanent(Reason::open(format!(
            "driver {driver} chose nodes that cannot be removed: {error}"
        )))
    })?;
    Ok(names)
}

fn check(names: &[String], most: usize) -> Result<(), LimitError> {
    if names.len() > most {
        let reason = format!("has {} names; {most} nodes go", names.len());
        return Err(over("nodes".to_owned(), reason));
    }
    let bytes: usize = names.iter().map(String::len).sum();
    if bytes > MOST_BYTES {
        let reason = format!("takes {bytes} bytes; {MOST_BYTES} are allowed");
        return Err(over("nodes".to_owned(), reason));
    }
    let mut seen = HashSet::new();
    for (number, name) in names.iter().enumerate() {
        let wrong = |reason: String| Err(over(format!("nodes[{number}]"), reason));
        let characters = name.chars().count();
        if name.trim().is_empty() {
            return wrong("is empty".to_owned());
        }
        if characters > LONGEST_NAME {
            return wrong(format!("has {characters} characters; {LONGEST_NAME} are allowed"));
        }
        if name.chars().any(char::is_control) {
            return wrong("holds a control character".to_owned());
        }
        if !seen.insert(name) {
            return wrong(format!("names {name:?} a second time"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        check(&names, 2).err().map(|error| error.to_string())
    }

    #[test]
    fn as_many_names_as_nodes_go_or_fewer_are_accepted() {
        for names in [&[][..], &["node-1"], &["node-1", "node-2"], &[&"ü".repeat(255)]] {
            assert_eq!(wrong(names), None, "{names:?}");
        }
    }

    #[test]
    fn wrong_name_is_refused_by_its_index() {
        for (names, expected) in [
            (&["a", "b", "c"][..], "nodes has 3 names; 2 nodes go"),
            (&["a", " "], "nodes[1] is empty"),
            (&["a\0"], "nodes[0] holds a control character"),
            (&["a", "a"], "nodes[1] names \"a\" a second time"),
            (
                &[&"n".repeat(256)],
                "nodes[0] has 256 characters; 255 are allowed",
            ),
        ] {
            assert_eq!(wrong(names).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_group_that_does_not_shrink_has_nothing_to_choose() {
        let group = "g".into();
        let of = |from, to| Shrinking {
            node_group: &group,
            from,
            to,
        };
        assert_eq!(of(3, 1).surplus(), 2);
        assert_eq!(of(1, 3).surplus(), 0);
        assert_eq!(of(i32::MIN, i32::MAX).surplus(), 0);
    }
}
