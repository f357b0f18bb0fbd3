//! Operations that name one member of a list by its value, which RFC 6902 does not have: federations are joined and
//! left by them.

use super::{Patch, Verb};
use crate::validation::python::str_of;

/// A cluster that shall become a member of something, or no longer be one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Membership {
    Join(String),
    Leave(String),
}

impl Patch {
    /// Whether it has no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether an operation is about one of these attributes, or about what is inside of one.
    pub fn touches(&self, attributes: &[&str]) -> bool {
        self.operations
            .iter()
            .any(|operation| attributes.contains(&operation.attribute().0))
    }

    /// Takes the first operation out, if it adds a value to the list `name` or removes one from it by its value.
    pub fn take_membership(&mut self, name: &str) -> Option<Membership> {
        let first = self.operations.first()?;
        let value = first
            .value
            .as_ref()
            .filter(|_| first.attribute() == (name, true))?;
        let membership = match first.verb {
            Verb::Add => Membership::Join(str_of(value)),
            Verb::Remove => Membership::Leave(str_of(value)),
            Verb::Replace => return None,
        };
        self.operations.remove(0);
        Some(membership)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Rules, read};
    use super::*;

    const RULES: Rules = Rules {
        internal: &[],
        mandatory: &[],
        dictionaries: &[],
        lists: &[],
    };

    #[test]
    fn a_member_is_taken_from_the_first_operation_only() {
        let mut patch = read(
            &json!([{"op": "remove", "path": "/labels", "value": "m"}, {"op": "add", "path": "/tags", "value": "t"}]),
            &RULES,
        )
        .unwrap();
        assert_eq!(patch.take_membership("tags"), None);
        assert_eq!(
            patch.take_membership("labels"),
            Some(Membership::Leave("m".into()))
        );
        assert_eq!(patch.take_membership("tags"), Some(Membership::Join("t".into())));
        assert!(patch.is_empty());
        let mut whole = read(&json!([{"op": "remove", "path": "/labels"}]), &RULES).unwrap();
        assert_eq!(whole.take_membership("labels"), None, "all of them");
    }
}
