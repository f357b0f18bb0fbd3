//! Everything the plans of a wave look at, read in few queries however large the wave is.

use std::collections::{HashMap, HashSet};

use magnum_common::context::RequestContext;
use magnum_common::ids::TemplateUuid;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_db::AnyConnection;

use super::{Incoming, Prepared};
use crate::handlers::command::Command;
use crate::handlers::plan::{OpenOperation, Plan, Verdict, View};
use crate::handlers::{cluster_create, cluster_delete, cluster_resize, cluster_update, nodegroup, rotation};
use crate::operations::journal::{JournalError, read};
use crate::operations::notice::{NoticeOutcome, Seen, Told};
use crate::operations::state::State;
use crate::store;
use crate::workflows::{DriverRef, DriverSource, choose_driver};

/// The rows.
pub(super) struct Snapshot {
    clusters: HashMap<String, Cluster>,
    node_groups: HashMap<String, Vec<NodeGroup>>,
    /// Uuids of new groups that are some group's already.
    taken_groups: HashSet<String>,
    templates: HashMap<String, ClusterTemplate>,
    pinned: HashMap<String, DriverRef>,
    open: HashMap<String, Vec<OpenOperation>>,
}

impl Snapshot {
    /// Node groups are read of those clusters whose plans look at them; for notifications of all.
    pub(super) fn read(
        conn: &mut AnyConnection,
        fresh: &[&Prepared],
        tell: bool,
    ) -> Result<Self, JournalError> {
        let of = |wanted: &dyn Fn(&Command) -> bool| -> Vec<&str> {
            fresh
                .iter()
                .map(|one| &one.incoming.command)
                .filter(|command| wanted(command))
                .map(|command| command.cluster().as_str())
                .collect()
        };
        let is_new = |command: &Command| matches!(command, Command::ClusterCreate(_));
        let all = of(&|_| true);
        let existing = of(&|command| !is_new(command));
        let with_groups = of(&|command| command.needs_node_groups() || (tell && !is_new(command)));
        let new_groups: Vec<&str> = fresh
            .iter()
            .filter_map(|one| match &one.incoming.command {
                Command::NodegroupCreate(_, group) => Some(group.uuid.as_str()),
                _ => None,
            })
            .collect();
        let clusters = if all.is_empty() {
            HashMap::new()
        } else {
            store::clusters::find_many(conn, &all)?
        };
        let wanted_templates: HashSet<&str> = fresh
            .iter()
            .filter_map(|one| one.incoming.command.template().map(|uuid| uuid.as_str()))
            .chain(
                clusters
                    .values()
                    .map(|cluster| cluster.cluster_template_id.as_str()),
            )
            .collect();
        let wanted_templates: Vec<&str> = wanted_templates.into_iter().collect();
        let templates = if wanted_templates.is_empty() {
            HashMap::new()
        } else {
            store::clusters::templates(conn, &wanted_templates)?
        };
        let node_groups = if with_groups.is_empty() {
            HashMap::new()
        } else {
            store::node_groups::of_many(conn, &with_groups)?
        };
        let taken_groups = if new_groups.is_empty() {
            HashSet::new()
        } else {
            store::node_groups::existing(conn, &new_groups)?
        };
        let mut open: HashMap<String, Vec<OpenOperation>> = HashMap::new();
        let mut pinned = HashMap::new();
        if !existing.is_empty() {
            pinned = store::cluster_driver::find_many(conn, &existing)?;
            for row in read::open(conn, &existing)? {
                open.entry(row.cluster).or_default().push(OpenOperation {
                    row: row.row,
                    id: row.uuid.into(),
                    kind: row.kind.parse().ok(),
                    state: row.state.parse().unwrap_or(State::Queued),
                });
            }
        }
        Ok(Self {
            clusters,
            node_groups,
            taken_groups,
            templates,
            pinned,
            open,
        })
    }

    fn view(&self, incoming: &Incoming) -> View {
        let uuid = incoming.command.cluster().as_str();
        let cluster = self.clusters.get(uuid).cloned();
        let find = |template: &TemplateUuid| self.templates.get(template.as_str()).cloned();
        let named_template = incoming.command.template().and_then(find);
        let template = match &incoming.command {
            Command::ClusterCreate(_) => named_template.clone(),
            _ => cluster
                .as_ref()
                .and_then(|cluster| find(&cluster.cluster_template_id)),
        };
        View {
            template,
            named_template,
            node_groups: self.node_groups.get(uuid).cloned().unwrap_or_default(),
            group_taken: matches!(
                &incoming.command,
                Command::NodegroupCreate(_, group) if self.taken_groups.contains(group.uuid.as_str())
            ),
            open: self.open.get(uuid).cloned().unwrap_or_default(),
            cluster: cluster.filter(|cluster| match incoming.command {
                // The one method that Magnum reads the cluster for, with its tenant filter.
                Command::ClusterDelete(_) => may_see(&incoming.context, cluster),
                _ => true,
            }),
        }
    }

    /// What is to be told of a planned request; none of what is done at once, or joined to another one.
    pub(super) fn told(&self, incoming: &Incoming, plan: &Plan) -> Option<Told> {
        let (outcome, refusal) = match &plan.verdict {
            Verdict::Queue(_) => (NoticeOutcome::Pending, None),
            Verdict::Refuse(fault) => (NoticeOutcome::Failure, Some(fault.clone())),
            Verdict::Done(_) | Verdict::Merge(_) => return None,
        };
        let view = self.view(incoming);
        let seen = match (&plan.writes.cluster, &incoming.command) {
            (Some(new), _) => Some(Seen {
                cluster: Cluster::clone(new),
                node_groups: plan.writes.node_groups.clone(),
            }),
            // A refused create whose uuid is taken says nothing about the cluster that has it.
            (None, Command::ClusterCreate(_)) => None,
            (None, _) => view.cluster.map(|cluster| Seen {
                cluster,
                node_groups: view.node_groups,
            }),
        };
        Some(Told {
            kind: incoming.command.kind(),
            outcome,
            cluster: incoming.command.cluster().clone(),
            seen,
            context: incoming.context.clone(),
            refusal,
        })
    }

    pub(super) fn plan(&self, incoming: &Incoming, drivers: &dyn DriverSource) -> Plan {
        let view = self.view(incoming);
        let mut plan = match &incoming.command {
            Command::ClusterCreate(create) => {
                cluster_create::plan(create, incoming.context.project_id(), &view)
            }
            Command::ClusterUpdate(update) => cluster_update::plan(update, &view),
            Command::ClusterDelete(uuid) => cluster_delete::plan(uuid, &view),
            Command::ClusterResize(resize) => cluster_resize::plan(resize, &view),
            Command::ClusterUpgrade(upgrade) => cluster_resize::plan_upgrade(upgrade, &view),
            Command::NodegroupCreate(cluster, group) => nodegroup::plan_create(cluster, group, &view),
            Command::NodegroupUpdate(cluster, uuid, wanted) => {
                nodegroup::plan_update(cluster, uuid, wanted, &view)
            }
            Command::NodegroupDelete(cluster, uuid) => nodegroup::plan_delete(cluster, uuid, &view),
            Command::RotateCaCertificate(cluster) => rotation::plan_ca(cluster, &view),
            Command::CredentialRotate(cluster) => rotation::plan_credential(cluster, &view),
        };
        if let Verdict::Queue(work) = &plan.verdict {
            let pinned = self.pinned.get(incoming.command.cluster().as_str());
            // A driver that cannot be found is the workflow's failure to report, with a status a user can see.
            let wanted = choose_driver::Wanted::by(incoming.command.kind());
            let driver = choose_driver::foresee(drivers, view.template.as_ref(), wanted, pinned);
            // One that is loaded here can be asked what it is able to; one that is not, when it is found.
            let unable = driver
                .as_ref()
                .and_then(|driver| drivers.get(driver))
                .and_then(|driver| work.workflow().supported(&view.node_groups, driver.info()).err());
            if let Some(fault) = unable {
                return Plan::refuse(fault);
            }
            plan.writes.driver = driver;
        }
        plan
    }
}

/// Magnum's tenant filter: everything for an admin who asked for all tenants, else the project's own.
fn may_see(context: &RequestContext, cluster: &Cluster) -> bool {
    if context.is_admin() && context.all_tenants() {
        return true;
    }
    match context.project_id() {
        Some(project) => cluster.project_id.as_deref() == Some(project),
        None => context.user_id().is_some() && cluster.user_id.as_deref() == context.user_id(),
    }
}
