//! Which nodes go when a resize names none: the driver is asked once, and its answer is kept as if the request had
//! named them. Pure.
//!
//! ```text
//! the request names nodes, or the group does not shrink, or the driver has no `scale` ─▶ resize
//! else: ask the driver ─▶ its names into the journal ─▶ resize with them, in every attempt
//! ```
//!
//! Names are kept before the resize begins, so whoever repeats it after a crash, a lost lease or a failure removes the
//! same nodes. A crash before that repeats the question, which changes nothing.
//!
//! Where Magnum differs: its scale manager is asked by the Heat driver alone, in the middle of a resize, and again when
//! that is repeated.

use magnum_driver_api::Shrinking;

use super::{Args, Work};

/// The group for which nodes are to be chosen. `None`: the request names some, they are chosen already, or none goes.
pub fn shrinking(args: &Args) -> Option<Shrinking<'_>> {
    let Work::ClusterResize(resize) = &args.work else {
        return None;
    };
    let resized = args.resized()?;
    let shrinks = resized.to < resized.from && resize.nodes_to_remove.is_empty();
    shrinks.then_some(Shrinking {
        node_group: &resized.node_group,
        from: resized.from,
        to: resized.to,
    })
}

/// The arguments with the nodes that were chosen.
pub fn with_nodes(args: &Args, nodes: &[String]) -> Args {
    let mut args = args.clone();
    if let Work::ClusterResize(resize) = &mut args.work {
        resize.nodes_to_remove = nodes.to_vec();
    }
    args
}

/// The choice as the journal's event tells it to people: not more than they read.
pub fn in_words(nodes: &[String]) -> String {
    const SHOWN: usize = 5;
    if nodes.is_empty() {
        return "no nodes".to_owned();
    }
    let first: Vec<&str> = nodes.iter().take(SHOWN).map(String::as_str).collect();
    match nodes.len().saturating_sub(SHOWN) {
        0 => format!("nodes {}", first.join(", ")),
        more => format!("nodes {} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Resized, Started};
    use super::super::kinds::{ClusterResize, ClusterUpdate};
    use super::*;

    fn started(work: impl Into<Work>, from: i32, to: i32) -> Args {
        let resized = Resized {
            node_group: "g".into(),
            from,
            to,
        };
        Args {
            started: Some(Started {
                resized: Some(resized),
                ..Started::default()
            }),
            ..Args::from(work)
        }
    }

    fn resize(named: &[&str]) -> ClusterResize {
        ClusterResize {
            node_group: "g".into(),
            node_count: 1,
            nodes_to_remove: named.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn nodes_are_chosen_for_a_group_that_shrinks_and_for_nothing_else() {
        let args = started(resize(&[]), 3, 1);
        let shrinking = shrinking(&args).map(|one| (one.node_group.as_str(), one.surplus()));
        assert_eq!(shrinking, Some(("g", 2)));
        let update = ClusterUpdate {
            node_group: "g".into(),
            node_count: 1,
            rollback: false,
        };
        for nothing in [
            started(resize(&["node-1"]), 3, 1),
            started(resize(&[]), 1, 1),
            started(resize(&[]), 1, 3),
            started(update, 3, 1),
            // It has not started.
            resize(&[]).into(),
        ] {
            assert_eq!(super::shrinking(&nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn nodes_that_were_chosen_are_those_of_the_request_from_then_on() {
        let args = with_nodes(&started(resize(&[]), 3, 1), &["b".to_owned()]);
        assert_eq!(args.work, resize(&["b"]).into());
        assert_eq!(shrinking(&args), None);
    }

    #[test]
    fn long_choice_is_logged_shortened() {
        let names: Vec<String> = (1..=7).map(|number| format!("n{number}")).collect();
        assert_eq!(in_words(&[]), "no nodes");
        assert_eq!(in_words(&names[..2]), "nodes n1, n2");
        assert_eq!(in_words(&names), "nodes n1, n2, n3, n4, n5 and 2 more");
    }
}
