//! The bounds between which a group of nodes is scaled (reference drivers.md 4.5).

use magnum_common::model::NodeGroup;

use crate::labels::Labels;
use crate::options::LabelDefaultsSection;

/// The least and the greatest number of a group's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least 1: the provider cannot scale from none.
    pub min: i64,
    /// At least `min`.
    pub max: i64,
}

/// Bounds that cannot be. The texts are the package's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBounds {
    /// Less than one.
    #[error("Min node count must be greater than or equal to 1 for all node groups.")]
    MinBelowOne,
    /// There are fewer nodes already.
    #[error("Min node count must be less than or equal to current node count")]
    MinAboveCount,
    /// The other way round.
    #[error("Max node count must be greater than or equal to min node count")]
    MaxBelowMin,
}

/// A group's bounds. Its count stands in for an upper bound that it does not have; the default worker group has those of the labels
/// first, and there a lower bound of 1, Magnum's default, counts as none.
///
/// # Errors
/// They cannot be.
pub fn bounds(
    group: &NodeGroup,
    labels: Labels<'_>,
    defaults: &LabelDefaultsSection,
) -> Result<Bounds, BadBounds> {
    let count = i64::from(group.node_count);
    let mut min = i64::from(group.min_node_count);
    let mut max = group.max_node_count.map_or(count, i64::from);
    if group.is_default && !group.is_master() {
        if min == 1 {
            min = count;
        }
        min = labels
            .number("min_node_count")
            .or(defaults.min_node_count)
            .unwrap_or(min);
        max = labels
            .number("max_node_count")
            .or(defaults.max_node_count)
            .unwrap_or(max);
    }
    if min < 1 {
        Err(BadBounds::MinBelowOne)
    } else if min > count {
        Err(BadBounds::MinAboveCount)
    } else if max < min {
        Err(BadBounds::MaxBelowMin)
    } else {
        Ok(Bounds { min, max })
    }
}
