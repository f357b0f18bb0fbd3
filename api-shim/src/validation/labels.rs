//! Labels: what is stored, how a cluster's labels come from its template's, and how the two differ.

use magnum_common::error::Fault;
use magnum_common::model::StringMap;
use magnum_db::rows::json::to_text;
use serde::Serialize;
use serde_json::{Map, Value};

use super::python;

/// The stored form: every value as text, the way Python prints it (`true` becomes `True`).
pub fn stored(labels: &Map<String, Value>) -> StringMap {
    labels
        .iter()
        .map(|(key, value)| (key.clone(), python::str_of(value)))
        .collect()
}

/// Bytes of a dictionary's column, on the database with the smallest one (MySQL's `text`).
const MOST_BYTES: usize = 65_535;

/// Refuses a dictionary that its column cannot hold. Asked here, because a cluster is stored by a conductor after
/// the client has got its 202.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_size(attribute: &str, labels: &impl Serialize) -> Result<(), Fault> {
    let bytes = to_text(labels).len();
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Fault::invalid_parameter(format!(
        "{attribute} takes {bytes} bytes as JSON, and at most {MOST_BYTES} can be stored."
    )))
}

/// A cluster's labels: the template's when none were given; the given ones alone, or laid over the template's
/// when merging was asked for.
pub fn inherit(given: Option<StringMap>, merge: bool, template: &StringMap) -> StringMap {
    match given {
        Some(given) if !given.is_empty() => {
            if merge {
                let mut merged = template.clone();
                merged.extend(given);
                merged
            } else {
                given
            }
        }
        _ => template.clone(),
    }
}

/// How a cluster's labels differ from its template's, as three response fields show it.
#[derive(Debug, Default, PartialEq)]
pub struct Difference {
    /// In both with other values; the value is the template's.
    pub overridden: StringMap,
    /// Only in the cluster.
    pub added: StringMap,
    /// Only in the template.
    pub skipped: StringMap,
}

/// Compares a cluster's labels with the labels of its template as it is now.
pub fn difference(own: &StringMap, parent: &StringMap) -> Difference {
    let mut difference = Difference::default();
    for (key, value) in own {
        match parent.get(key) {
            None => {
                difference.added.insert(key.clone(), value.clone());
            }
            Some(theirs) if theirs != value => {
                difference.overridden.insert(key.clone(), theirs.clone());
            }
            Some(_) => {}
        }
    }
    for (key, value) in parent {
        if !own.contains_key(key) {
            difference.skipped.insert(key.clone(), value.clone());
        }
    }
    difference
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> StringMap {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn values_are_stored_as_python_prints_them() {
        let Value::Object(given) = json!({"n": 5, "t": true, "f": 1.5, "s": "x"}) else {
            unreachable!()
        };
        assert_eq!(
            stored(&given),
            map(&[("n", "5"), ("t", "True"), ("f", "1.5"), ("s", "x")])
        );
    }

    #[test]
    fn oversized_labels_are_refused_by_their_stored_size() {
        let long = |text: &str, times| map(&[("a", text.repeat(times).as_str())]);
        assert!(check_size("labels", &long("x", 65_535 - 9)).is_ok());
        let fault = check_size("labels", &long("x", 65_535 - 8)).unwrap_err();
        assert!(
            fault.message.starts_with("labels takes 65536 bytes"),
            "{}",
            fault.message
        );
        // Six bytes each, as Python writes them.
        assert!(check_size("labels", &long("ü", 20_000)).is_err());
    }

    #[test]
    fn labels_are_inherited_replaced_or_merged() {
        let template = map(&[("a", "1"), ("b", "2")]);
        let given = map(&[("b", "3"), ("c", "4")]);
        assert_eq!(inherit(None, true, &template), template);
        assert_eq!(inherit(Some(StringMap::new()), false, &template), template);
        assert_eq!(inherit(Some(given.clone()), false, &template), given);
        assert_eq!(
            inherit(Some(given), true, &template),
            map(&[("a", "1"), ("b", "3"), ("c", "4")])
        );
    }

    #[test]
    fn the_difference_shows_the_templates_value_of_an_overridden_label() {
        let difference = difference(&map(&[("a", "1"), ("b", "3")]), &map(&[("b", "2"), ("c", "4")]));
        assert_eq!(difference.overridden, map(&[("b", "2")]));
        assert_eq!(difference.added, map(&[("a", "1")]));
        assert_eq!(difference.skipped, map(&[("c", "4")]));
    }
}
