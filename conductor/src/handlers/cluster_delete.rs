//! `cluster_delete`: allowed in every status, and ahead of everything else at the cluster.
//!
//! `DELETE_IN_PROGRESS` is written here, so from the moment of acceptance nothing else is allowed on the cluster
//! and no status sync, ours or a Python conductor's, can make it look alive again. What waits or is being
//! observed is cancelled; what runs is asked to stop, and the delete starts after it. A
//! second delete joins the first, unless that one is only being observed: then it is called anew, because
//! that is what a user who deletes again wants.

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;

use super::plan::{Plan, Verdict, View, Writes};
use crate::operations::State;
use crate::workflows::kinds::ClusterDelete;
use crate::workflows::start::start;
use crate::workflows::{OperationKind, Work};

/// Plans a delete. The view holds the cluster only if the caller may see it.
pub fn plan(uuid: &ClusterUuid, view: &View) -> Plan {
    let Some(cluster) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(uuid.as_str()));
    };
    let deleting = view
        .open
        .iter()
        .find(|open| open.kind == Some(OperationKind::ClusterDelete) && open.state != State::Observing);
    if let Some(deleting) = deleting {
        return Plan {
            verdict: Verdict::Merge(format!(
                "operation {} is deleting the cluster already",
                deleting.id
            )),
            writes: Writes {
                make_due: (deleting.state == State::Retrying).then(|| deleting.clone()),
                ..Writes::default()
            },
        };
    }
    let (stop, cancel) = view
        .open
        .iter()
        .cloned()
        .partition(|open| open.state == State::Running);
    let work = Work::from(ClusterDelete {});
    // It starts at once, whatever is in the way.
    match start(&work, cluster, &view.node_groups) {
        Ok(start) => Plan {
            verdict: Verdict::Queue(work),
            writes: Writes {
                start: Some(start),
                cancel,
                stop,
                ..Writes::default()
            },
        },
        Err(fault) => Plan::refuse(fault),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;
    use magnum_common::model::{Cluster, ClusterStatus};

    use super::super::plan::OpenOperation;
    use super::*;

    fn view(status: ClusterStatus, open: &[(OperationKind, State)]) -> View {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(status);
        View {
            cluster: Some(cluster),
            open: open
                .iter()
                .zip(1..)
                .map(|((kind, state), row)| OpenOperation {
                    row,
                    id: format!("o-{row}").into(),
                    kind: Some(*kind),
                    state: *state,
                })
                .collect(),
            ..View::default()
        }
    }

    #[test]
    fn cluster_in_any_status_becomes_delete_in_progress_at_once() {
        for status in ClusterStatus::ALL {
            let plan = plan(&"c".into(), &view(*status, &[]));
            assert_eq!(plan.verdict, Verdict::queue(ClusterDelete {}));
            let start = plan.writes.start.unwrap();
            assert_eq!(
                start.status,
                Some((Some(*status), ClusterStatus::DeleteInProgress))
            );
            assert!(start.all_groups);
        }
    }

    #[test]
    fn running_operations_are_stopped_and_waiting_ones_are_cancelled() {
        let plan = plan(
            &"c".into(),
            &view(
                ClusterStatus::UpdateInProgress,
                &[
                    (OperationKind::ClusterUpdate, State::Running),
                    (OperationKind::ClusterUpdate, State::Queued),
                ],
            ),
        );
        let rows = |open: &[OpenOperation]| open.iter().map(|open| open.row).collect::<Vec<_>>();
        assert_eq!(rows(&plan.writes.stop), [1]);
        assert_eq!(rows(&plan.writes.cancel), [2]);
    }

    #[test]
    fn second_delete_joins_the_first_unless_that_is_being_observed() {
        for (state, merged) in [
            (State::Queued, true),
            (State::Running, true),
            (State::Retrying, true),
            (State::Observing, false),
        ] {
            let plan = plan(
                &"c".into(),
                &view(
                    ClusterStatus::DeleteInProgress,
                    &[(OperationKind::ClusterDelete, state)],
                ),
            );
            assert_eq!(matches!(plan.verdict, Verdict::Merge(_)), merged, "{state}");
            assert_eq!(plan.writes.make_due.is_some(), state == State::Retrying);
            assert_eq!(plan.writes.cancel.len(), usize::from(state == State::Observing));
        }
    }

    #[test]
    fn missing_cluster_is_not_found() {
        let Verdict::Refuse(fault) = plan(&"c".into(), &View::default()).verdict else {
            panic!("refused");
        };
        assert_eq!(fault.exception, Exception::ClusterNotFound);
    }
}
