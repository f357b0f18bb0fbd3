//! The rows that the plans of a wave are made from, read in few queries however large the wave is.
//!
//! Each table is read once, for all messages together, and not at all where no message needs it. What one plan sees of
//! it is its [`View`].

use std::collections::{HashMap, HashSet};

use magnum_common::context::RequestContext;
use magnum_common::ids::TemplateUuid;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_db::AnyConnection;

use super::{Incoming, Prepared};
use crate::handlers::command::Command;
use crate::handlers::plan::{OpenOperation, View};
use crate::operations::journal::{JournalError, read};
use crate::operations::state::State;
use crate::store;
use crate::workflows::DriverRef;

/// The rows, by the uuid of the cluster or of themselves.
pub(super) struct Snapshot {
    clusters: HashMap<String, Cluster>,
    node_groups: HashMap<String, Vec<NodeGroup>>,
    templates: HashMap<String, ClusterTemplate>,
    /// The drivers that built the clusters.
    pinned: HashMap<String, DriverRef>,
    /// Operations that have not ended, in order.
    open: HashMap<String, Vec<OpenOperation>>,
    /// Uuids of new groups that are some group's already.
    taken_groups: HashSet<String>,
}

impl Snapshot {
    /// Reads the rows for the plans of `fresh`; with `notify` also the node groups of all their clusters, for the
    /// notifications.
    pub(super) fn read(
        conn: &mut AnyConnection,
        fresh: &[&Prepared],
        notify: bool,
    ) -> Result<Self, JournalError> {
        let commands: Vec<&Command> = fresh.iter().map(|one| &one.incoming.command).collect();
        let uuids_of = |wanted: &dyn Fn(&Command) -> bool| -> Vec<&str> {
            let wanted = commands.iter().filter(|command| wanted(command));
            wanted.map(|command| command.cluster().as_str()).collect()
        };
        let all = uuids_of(&|_| true);
        let existing = uuids_of(&|command| !command.creates_cluster());
        let with_groups =
            uuids_of(&|command| !command.creates_cluster() && (notify || command.needs_node_groups()));
        let new_groups: Vec<&str> = commands
            .iter()
            .filter_map(|command| command.new_group().map(|group| group.uuid.as_str()))
            .collect();

        let clusters = unless_empty(&all, |uuids| store::clusters::find_many(conn, uuids))?;
        let templates = unless_empty(&templates_of(&commands, &clusters), |uuids| {
            store::clusters::templates(conn, uuids)
        })?;
        Ok(Self {
            node_groups: unless_empty(&with_groups, |uuids| store::node_groups::of_many(conn, uuids))?,
            taken_groups: unless_empty(&new_groups, |uuids| store::node_groups::existing(conn, uuids))?,
            pinned: unless_empty(&existing, |uuids| store::cluster_driver::find_many(conn, uuids))?,
            open: unless_empty(&existing, |uuids| open_operations(conn, uuids))?,
            clusters,
            templates,
        })
    }

    /// The rows for the plan of `incoming`.
    pub(super) fn view(&self, incoming: &Incoming) -> View {
        let command = &incoming.command;
        let uuid = command.cluster().as_str();
        let cluster = self.clusters.get(uuid);
        let find = |template: &TemplateUuid| self.templates.get(template.as_str()).cloned();
        let named_template = command.template().and_then(find);
        let template = if command.creates_cluster() {
            named_template.clone()
        } else {
            cluster.and_then(|cluster| find(&cluster.cluster_template_id))
        };
        let is_shown = |cluster: &&Cluster| match command {
            // The only method for which Magnum reads the cluster in the caller's tenant scope.
            Command::ClusterDelete(_) => may_see(&incoming.context, cluster),
            _ => true,
        };
        View {
            cluster: cluster.filter(is_shown).cloned(),
            node_groups: self.node_groups.get(uuid).cloned().unwrap_or_default(),
            template,
            named_template,
            group_taken: command
                .new_group()
                .is_some_and(|group| self.taken_groups.contains(group.uuid.as_str())),
            open: self.open.get(uuid).cloned().unwrap_or_default(),
        }
    }

    /// The driver that built the cluster of `command`.
    pub(super) fn pinned(&self, command: &Command) -> Option<&DriverRef> {
        self.pinned.get(command.cluster().as_str())
    }
}

/// Skips the query when there are no uuids.
fn unless_empty<T: Default, E>(uuids: &[&str], read: impl FnOnce(&[&str]) -> Result<T, E>) -> Result<T, E> {
    if uuids.is_empty() {
        return Ok(T::default());
    }
    read(uuids)
}

/// The templates that commands name, and those of the clusters; each once.
fn templates_of<'a>(commands: &[&'a Command], clusters: &'a HashMap<String, Cluster>) -> Vec<&'a str> {
    let named = commands.iter().filter_map(|command| command.template());
    let in_use = clusters.values().map(|cluster| &cluster.cluster_template_id);
    let unique: HashSet<&str> = named.chain(in_use).map(|uuid| uuid.as_str()).collect();
    unique.into_iter().collect()
}

fn open_operations(
    conn: &mut AnyConnection,
    clusters: &[&str],
) -> Result<HashMap<String, Vec<OpenOperation>>, JournalError> {
    let mut open: HashMap<String, Vec<OpenOperation>> = HashMap::new();
    for row in read::open(conn, clusters)? {
        open.entry(row.cluster).or_default().push(OpenOperation {
            row: row.row,
            id: row.uuid.into(),
            kind: row.kind.parse().ok(),
            state: row.state.parse().unwrap_or(State::Queued),
        });
    }
    Ok(open)
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
