//! A node group that gets fewer nodes, when nobody has said which ones go.

use magnum_common::ids::NodeGroupUuid;

/// What a driver is asked to choose nodes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking<'a> {
    /// The group.
    pub node_group: &'a NodeGroupUuid,
    /// Nodes that it had when the operation started.
    pub from: i32,
    /// Nodes that it shall have: fewer.
    pub to: i32,
}

impl Shrinking<'_> {
    /// How many nodes go.
    pub fn surplus(&self) -> usize {
        usize::try_from(self.from.saturating_sub(self.to)).unwrap_or(0)
    }
}
