//! `cluster_create`: the cluster's row and its two default node groups.
//!
//! Differs from Magnum: a cluster that cannot work (no template, a label that is no number) is refused with the
//! reason before anything is written; Magnum writes half of it and leaves it `CREATE_IN_PROGRESS` for ever.

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup, Role};
use uuid::Uuid;

use super::columns;
use super::command::ClusterCreate;
use super::plan::{Plan, Verdict, View, Writes};
use crate::workflows::kinds;
use crate::workflows::start::Start;

/// The label that sets the worker group's lower bound.
const MIN_NODE_COUNT: &str = "min_node_count";

/// Plans a create. `caller_project` stands in when the object names no project.
pub fn plan(create: &ClusterCreate, caller_project: Option<&str>, view: &View) -> Plan {
    match rows(create, caller_project, view) {
        Ok(writes) => Plan {
            verdict: Verdict::queue(kinds::ClusterCreate {
                create_timeout: create.create_timeout,
            }),
            writes: Writes {
                // The rows are new and show it already.
                start: Some(Start::default()),
                ..writes
            },
        },
        Err(fault) => Plan::refuse(fault),
    }
}

fn rows(create: &ClusterCreate, caller_project: Option<&str>, view: &View) -> Result<Writes, Fault> {
    let uuid = create.cluster.uuid.as_str();
    check(&create.cluster)?;
    if view.cluster.is_some() {
        return Err(Fault::new(
            Exception::ClusterAlreadyExists,
            format!("A cluster with UUID {uuid} already exists."),
        ));
    }
    let template = view
        .template
        .as_ref()
        .ok_or_else(|| Fault::cluster_template_not_found(create.cluster.cluster_template_id.as_str()))?;
    let project = create
        .cluster
        .project_id
        .as_deref()
        .or(caller_project)
        .ok_or_else(|| Fault::invalid_parameter("project_id of the cluster is not set."))?;

    let mut cluster = create.cluster.clone();
    cluster.status = Some(ClusterStatus::CreateInProgress);
    cluster.status_reason = None;
    let master = node_group(&cluster, template, project, Role::Master, create.master_count)?;
    let worker = node_group(&cluster, template, project, Role::Worker, create.node_count)?;
    Ok(Writes {
        cluster: Some(cluster),
        node_groups: vec![master, worker],
        ..Writes::default()
    })
}

/// Values that no row can hold, refused by name instead of by the database.
fn check(cluster: &Cluster) -> Result<(), Fault> {
    let uuid = cluster.uuid.as_str();
    let canonical = Uuid::try_parse(uuid).is_ok_and(|parsed| parsed.to_string() == uuid.to_lowercase());
    if !canonical {
        return Err(Fault::new(
            Exception::InvalidUUID,
            format!("Expected a uuid but received {}.", shown(uuid)),
        ));
    }
    columns::texts(
        "cluster",
        &[
            ("name", cluster.name.as_deref()),
            ("project_id", cluster.project_id.as_deref()),
            ("user_id", cluster.user_id.as_deref()),
            ("cluster_template_id", Some(cluster.cluster_template_id.as_str())),
            ("keypair", cluster.keypair.as_deref()),
            ("master_flavor_id", cluster.master_flavor_id.as_deref()),
            ("flavor_id", cluster.flavor_id.as_deref()),
            ("stack_id", cluster.stack_id.as_deref()),
            ("api_address", cluster.api_address.as_deref()),
            ("discovery_url", cluster.discovery_url.as_deref()),
            ("coe_version", cluster.coe_version.as_deref()),
            ("container_version", cluster.container_version.as_deref()),
            ("fixed_network", cluster.fixed_network.as_deref()),
            ("fixed_subnet", cluster.fixed_subnet.as_deref()),
        ],
    )?;
    columns::map("labels of the cluster", &cluster.labels)
}

fn node_group(
    cluster: &Cluster,
    template: &ClusterTemplate,
    project: &str,
    role: Role,
    count: i32,
) -> Result<NodeGroup, Fault> {
    columns::not_negative(count).map_err(|fault| {
        Fault::invalid_parameter(format!("Group {}: {}", role.default_group_name(), fault.message))
    })?;
    let mut group = NodeGroup::new(
        NodeGroupUuid::random(),
        role.default_group_name(),
        cluster.uuid.clone(),
        project,
        role.as_str(),
    );
    group.is_default = true;
    group.node_count = count;
    group.image_id.clone_from(&template.image_id);
    group.docker_volume_size = cluster.docker_volume_size.or(template.docker_volume_size);
    group.labels = cluster.labels.clone();
    group.status = Some(ClusterStatus::CreateInProgress);
    match role {
        Role::Master => {
            group.flavor_id = cluster
                .master_flavor_id
                .clone()
                .or_else(|| template.master_flavor_id.clone());
        }
        Role::Worker => {
            group.flavor_id = cluster.flavor_id.clone().or_else(|| template.flavor_id.clone());
            if let Some(label) = cluster.labels.get(MIN_NODE_COUNT) {
                group.min_node_count = label.trim().parse().map_err(|_not_a_number| {
                    Fault::invalid_parameter(format!(
                        "The label {MIN_NODE_COUNT} must be an integer, it is '{}'.",
                        shown(label)
                    ))
                })?;
            }
        }
    }
    Ok(group)
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "f21b26bb-ebb6-4398-ad0e-5a48cd809419";

    fn create() -> ClusterCreate {
        let mut cluster = Cluster::new(UUID.into(), "t-1".into());
        cluster.project_id = Some("p".into());
        cluster.labels.insert("k".into(), "v".into());
        ClusterCreate {
            cluster: Box::new(cluster),
            master_count: 3,
            node_count: 2,
            create_timeout: Some(60),
        }
    }

    fn view() -> View {
        let mut template = ClusterTemplate::new("t-1".into());
        template.image_id = Some("image".into());
        template.flavor_id = Some("small".into());
        template.master_flavor_id = Some("big".into());
        template.docker_volume_size = Some(10);
        View {
            template: Some(template),
            ..View::default()
        }
    }

    fn refusal(create: &ClusterCreate, view: &View) -> Fault {
        match plan(create, Some("p"), view) {
            Plan {
                verdict: Verdict::Refuse(fault),
                writes,
            } => {
                assert_eq!(writes, Writes::default(), "a refusal writes nothing");
                fault
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_cluster_gets_its_two_default_groups() {
        let mut asked = create();
        asked.cluster.labels.insert("min_node_count".into(), "1".into());
        let plan = plan(&asked, None, &view());
        let cluster = plan.writes.cluster.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateInProgress));
        let [master, worker] = plan.writes.node_groups.as_slice() else {
            panic!("two groups");
        };
        assert_eq!((master.name.as_str(), master.node_count), ("default-master", 3));
        assert_eq!((worker.name.as_str(), worker.node_count), ("default-worker", 2));
        assert_eq!((master.min_node_count, worker.min_node_count), (0, 1));
        assert_eq!(master.flavor_id.as_deref(), Some("big"));
        assert_eq!(worker.flavor_id.as_deref(), Some("small"));
        for group in [master, worker] {
            assert!(group.is_default);
            assert_eq!(group.cluster_id.as_str(), UUID);
            assert_eq!(group.image_id.as_deref(), Some("image"));
            assert_eq!(group.docker_volume_size, Some(10));
            assert_eq!(group.labels, cluster.labels);
            assert_eq!(group.status, Some(ClusterStatus::CreateInProgress));
        }
    }

    #[test]
    fn the_clusters_own_flavors_win_over_the_templates() {
        let mut asked = create();
        asked.cluster.flavor_id = Some("mine".into());
        asked.cluster.docker_volume_size = Some(20);
        let groups = plan(&asked, None, &view()).writes.node_groups;
        assert_eq!(groups[1].flavor_id.as_deref(), Some("mine"));
        assert_eq!(groups[0].docker_volume_size, Some(20));
    }

    #[test]
    fn invalid_values_are_refused_with_the_name_of_the_field() {
        let mut asked = create();
        asked.cluster.labels.insert("min_node_count".into(), "abc".into());
        assert!(refusal(&asked, &view()).message.contains("min_node_count"));

        let mut asked = create();
        asked.cluster.uuid = "not-a-uuid".into();
        assert_eq!(refusal(&asked, &view()).exception, Exception::InvalidUUID);

        let mut asked = create();
        asked.cluster.name = Some("x".repeat(256));
        assert!(refusal(&asked, &view()).message.contains("name"));

        let mut asked = create();
        asked.node_count = -1;
        assert!(refusal(&asked, &view()).message.contains("default-worker"));
    }

    #[test]
    fn an_existing_cluster_and_an_unknown_template_are_refused() {
        let mut taken = view();
        taken.cluster = Some(Cluster::new(UUID.into(), "t-1".into()));
        assert_eq!(
            refusal(&create(), &taken).exception,
            Exception::ClusterAlreadyExists
        );
        assert_eq!(
            refusal(&create(), &View::default()).exception,
            Exception::ClusterTemplateNotFound
        );
    }
}
