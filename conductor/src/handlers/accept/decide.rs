//! Decides what each message of a wave changes: its plan, made by the handler of its method, with the resolved driver;
//! and its notification.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::Cluster;

use super::Incoming;
use super::snapshot::Snapshot;
use crate::handlers::command::Command;
use crate::handlers::plan::{Plan, Verdict, View};
use crate::handlers::{
    cluster_create, cluster_delete, cluster_resize, cluster_update, node_actions, nodegroup, rotation,
};
use crate::operations::notice::{ClusterSnapshot, NoticeDetails, NoticeOutcome};
use crate::workflows::{DriverRef, DriverSource, OperationKind, Work, choose_driver};

/// Most operations of one cluster that have not ended. Each further message reads all of them, and who sends so many
/// does not wait for what was asked before.
pub const MOST_OPEN: usize = 100;

/// The plan for `incoming`.
pub(super) fn plan(snapshot: &Snapshot, incoming: &Incoming, drivers: &dyn DriverSource) -> Plan {
    let view = snapshot.view(incoming);
    let mut plan = by_handler(incoming, &view);
    let Verdict::Queue(work) = &plan.verdict else {
        return plan;
    };
    if let Err(fault) = has_room(work, &view) {
        return Plan::refuse(fault);
    }
    // A missing driver fails the workflow, which writes a status that users can see.
    let wanted = choose_driver::Wanted::by(work.kind());
    let pinned = snapshot.pinned(&incoming.command);
    let driver = choose_driver::foresee(drivers, view.template.as_ref(), wanted, pinned);
    if let Err(fault) = supported(work, driver.as_ref(), drivers, &view) {
        return Plan::refuse(fault);
    }
    plan.writes.driver = driver;
    plan
}

/// Whether the cluster may have one more open operation. A deletion always may: it ends the others.
fn has_room(work: &Work, view: &View) -> Result<(), Fault> {
    if work.kind() == OperationKind::ClusterDelete || view.open.len() < MOST_OPEN {
        return Ok(());
    }
    Err(Fault::new(
        Exception::Conflict,
        format!(
            "The cluster has {} requests that are not done yet, and takes no more; try again when some of them are.",
            view.open.len()
        ),
    ))
}

fn by_handler(incoming: &Incoming, view: &View) -> Plan {
    match &incoming.command {
        Command::ClusterCreate(create) => cluster_create::plan(create, incoming.context.project_id(), view),
        Command::ClusterUpdate(update) => cluster_update::plan(update, view),
        Command::ClusterDelete(uuid) => cluster_delete::plan(uuid, view),
        Command::ClusterResize(resize) => cluster_resize::plan(resize, view),
        Command::ClusterUpgrade(upgrade) => cluster_resize::plan_upgrade(upgrade, view),
        Command::NodegroupCreate(cluster, group) => nodegroup::plan_create(cluster, group, view),
        Command::NodegroupUpdate(cluster, uuid, wanted) => {
            nodegroup::plan_update(cluster, uuid, wanted, view)
        }
        Command::NodegroupDelete(cluster, uuid) => nodegroup::plan_delete(cluster, uuid, view),
        Command::RotateCaCertificate(cluster) => rotation::plan_ca(cluster, view),
        Command::CredentialRotate(cluster) => rotation::plan_credential(cluster, view),
        Command::ClusterRebuild(cluster, rebuild) => node_actions::plan_rebuild(cluster, rebuild, view),
        Command::ClusterReboot(cluster, reboot) => node_actions::plan_reboot(cluster, reboot, view),
    }
}

/// Whether the driver supports the work. Drivers that are not loaded here are checked by the conductor that claims it.
fn supported(
    work: &Work,
    driver: Option<&DriverRef>,
    drivers: &dyn DriverSource,
    view: &View,
) -> Result<(), Fault> {
    match driver.and_then(|driver| drivers.get(driver)) {
        Some(loaded) => work.workflow().supported(&view.node_groups, loaded.info()),
        None => Ok(()),
    }
}

/// The notification of a planned request; `None` for one that is done at once, or merged into another operation.
pub(super) fn notice(snapshot: &Snapshot, incoming: &Incoming, plan: &Plan) -> Option<NoticeDetails> {
    let (outcome, refusal) = match &plan.verdict {
        Verdict::Queue(_) => (NoticeOutcome::Pending, None),
        Verdict::Refuse(fault) => (NoticeOutcome::Failure, Some(fault.clone())),
        Verdict::Done(_) | Verdict::Merge(_) => return None,
    };
    Some(NoticeDetails {
        kind: incoming.command.kind(),
        outcome,
        cluster: incoming.command.cluster().clone(),
        snapshot: cluster_snapshot(snapshot, incoming, plan),
        context: incoming.context.clone(),
        refusal,
    })
}

/// The cluster of a notification: the new one, else the existing one.
fn cluster_snapshot(snapshot: &Snapshot, incoming: &Incoming, plan: &Plan) -> Option<ClusterSnapshot> {
    if let Some(new) = &plan.writes.cluster {
        return Some(ClusterSnapshot {
            cluster: Cluster::clone(new),
            node_groups: plan.writes.node_groups.clone(),
        });
    }
    // The notification of a refused create must not show the existing cluster with the same uuid.
    if incoming.command.creates_cluster() {
        return None;
    }
    let view = snapshot.view(incoming);
    view.cluster.map(|cluster| ClusterSnapshot {
        cluster,
        node_groups: view.node_groups,
    })
}
