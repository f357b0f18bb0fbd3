//! Names of containers and secrets: Magnum's name, and behind it the mark of what it was made for, as in
//! `k8s (etcd-ca of operation 6a1f7e0c-…)`.

use uuid::Uuid;

use super::super::{Entry, Slot};

impl Entry {
    /// What stands behind the names of everything that belongs to the entry.
    pub(super) fn mark(&self) -> String {
        format!("({} of operation {})", self.slot.as_str(), self.operation)
    }

    /// A name of Magnum's, marked.
    pub(super) fn marked(&self, name: &str) -> String {
        format!("{name} {}", self.mark())
    }
}

/// The mark at the end of a name; none in a name of Magnum's.
pub(super) fn mark_of(name: &str) -> Option<&str> {
    let mark = &name[name.rfind(" (")? + 1..];
    let (slot, operation) = mark
        .strip_prefix('(')?
        .strip_suffix(')')?
        .split_once(" of operation ")?;
    let is_ours = Slot::ALL.iter().any(|one| one.as_str() == slot) && Uuid::try_parse(operation).is_ok();
    is_ours.then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_have_a_mark() {
        let entry = Entry {
            operation: "6a1f7e0c-0000-4000-8000-000000000001".into(),
            slot: Slot::EtcdCa,
            name: "k8s".into(),
            project_id: None,
            user_id: None,
        };
        assert_eq!(mark_of(&entry.marked("k8s")), Some(&*entry.mark()));
        assert_eq!(mark_of(&entry.marked("a (b)")), Some(&*entry.mark()));
        for theirs in [
            "k8s",
            "Magnum-Conductor",
            "a (etcd-ca of operation x)",
            "a (b of operation c)",
            " (",
            "",
            "ü (ü)",
        ] {
            assert_eq!(mark_of(theirs), None, "{theirs}");
        }
    }
}
