//! The rows of a case as they are given, and those that every case has.

use anyhow::{Context as _, Result};
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup, StringMap};
use serde_json::{Value, json};

use super::case::Case;
use super::rows::{CLUSTER, NEWER_TEMPLATE, PROJECT, Rows, TEMPLATE, USER};

const IMAGE: &str = "00000001-1111-4111-8111-111111111111";
const NEWER_IMAGE: &str = "00000002-1111-4111-8111-111111111111";

impl Rows {
    /// As given, for a cluster called `stack` in its cloud.
    pub fn given(case: &Case, driver: &str, stack: Option<&str>) -> Result<Self> {
        let given = if case.is_look() {
            look(case)
        } else {
            case.given().clone()
        };
        let mut cluster = Cluster::new(CLUSTER.into(), TEMPLATE.into());
        let of = &given["cluster"];
        cluster.name = text(&of["name"]);
        cluster.project_id = Some(PROJECT.to_owned());
        cluster.user_id = text(&of["user_id"]);
        cluster.keypair = text(&of["keypair"]);
        cluster.docker_volume_size = integer(&of["docker_volume_size"]);
        cluster.labels = labels(&of["labels"]);
        cluster.master_flavor_id = text(&of["master_flavor_id"]);
        cluster.flavor_id = text(&of["flavor_id"]);
        cluster.stack_id = stack.map(str::to_owned);
        cluster.status = Some(text(&of["status"]).context("a status")?.parse()?);
        cluster.create_timeout = Some(60);
        cluster.fixed_network = text(&of["fixed_network"]);
        cluster.fixed_subnet = text(&of["fixed_subnet"]);
        cluster.floating_ip_enabled = of["floating_ip_enabled"] == true;
        cluster.master_lb_enabled = of["master_lb_enabled"] == true;
        let groups = given["node_groups"].as_array().context("groups")?;
        let groups = groups
            .iter()
            .zip(1..)
            .map(|(group, number)| node_group(group, number, &cluster));
        Ok(Self {
            groups: groups.collect::<Result<_>>()?,
            cluster,
            templates: vec![
                template(case, &given["template"], driver),
                newer_template(case, &given["template"], driver),
            ],
            key_pairs: Vec::new(),
        })
    }
}

/// A look is recorded with fewer fields: the others are those of the world of all cases.
fn look(case: &Case) -> Value {
    let given = case.given();
    let groups = given["node_groups"].as_object().cloned().unwrap_or_default();
    // The default groups first, as they were made.
    let mut groups: Vec<(String, Value)> = groups.into_iter().collect();
    groups.sort_by_key(|(name, group)| {
        (
            group["is_default"] != true,
            group["role"] != "master",
            name.clone(),
        )
    });
    let groups = groups.into_iter().map(|(name, mut group)| {
        group["name"] = json!(name);
        group["labels"] = given["labels"].clone();
        group["flavor_id"] = json!("m1.medium");
        group["image_id"] = json!(IMAGE);
        group
    });
    json!({
        "cluster": {
            "name": "My_Cluster.1",
            "user_id": USER,
            "keypair": "key",
            "labels": given["labels"],
            "status": given["status"],
            "master_flavor_id": "m1.medium",
            "flavor_id": "m1.medium",
            "master_lb_enabled": true,
            "floating_ip_enabled": true,
        },
        "template": {
            "image_id": IMAGE,
            "labels": {},
            "dns_nameserver": "8.8.8.8",
            "external_network_id": "public",
            "network_driver": "calico",
            "cluster_distro": "ubuntu",
        },
        "node_groups": groups.collect::<Vec<_>>(),
    })
}

fn node_group(given: &Value, number: usize, cluster: &Cluster) -> Result<NodeGroup> {
    let uuid = format!("f0000000-0000-4000-8000-{number:012}");
    let name = text(&given["name"]).context("a name")?;
    let role = text(&given["role"]).context("a role")?;
    let mut group = NodeGroup::new(uuid.as_str().into(), &name, CLUSTER.into(), PROJECT, &role);
    group.labels = labels(&given["labels"]);
    group.flavor_id = text(&given["flavor_id"]);
    group.image_id = text(&given["image_id"]);
    group.node_count = integer(&given["node_count"]).context("a count")?;
    group.min_node_count = integer(&given["min_node_count"]).unwrap_or(0);
    group.max_node_count = integer(&given["max_node_count"]);
    group.is_default = given["is_default"] == true;
    group.stack_id.clone_from(&cluster.stack_id);
    group.status = Some(text(&given["status"]).context("a status")?.parse()?);
    Ok(group)
}

fn template(case: &Case, given: &Value, driver: &str) -> ClusterTemplate {
    let mut template = ClusterTemplate::new(TEMPLATE.into());
    template.name = Some("t".to_owned());
    template.project_id = Some(PROJECT.to_owned());
    template.user_id = Some(USER.to_owned());
    template.image_id = text(&given["image_id"]);
    template.flavor_id = Some("m1.medium".to_owned());
    template.master_flavor_id = Some("m1.medium".to_owned());
    template.keypair_id = Some("key".to_owned());
    template.dns_nameserver = text(&given["dns_nameserver"]);
    template.external_network_id = text(&given["external_network_id"]);
    // No given rows have them; one case is about a driver that does not read them.
    if case.name().ends_with("template-fixed-network-is-not-read") {
        template.fixed_network = Some("0000000b-2222-4222-8222-222222222222".to_owned());
        template.fixed_subnet = Some("0000000b-3333-4333-8333-333333333333".to_owned());
    }
    template.network_driver = text(&given["network_driver"]);
    template.volume_driver = Some("cinder".to_owned());
    template.docker_storage_driver = Some("overlay2".to_owned());
    template.cluster_distro = text(&given["cluster_distro"]);
    template.coe = Some("kubernetes".to_owned());
    template.http_proxy = text(&given["http_proxy"]);
    template.https_proxy = text(&given["https_proxy"]);
    template.no_proxy = text(&given["no_proxy"]);
    template.labels = labels(&given["labels"]);
    template.master_lb_enabled = true;
    template.floating_ip_enabled = true;
    template.driver = Some(driver.to_owned());
    template
}

/// What an upgrade goes to. It is not among the given rows, but can be told by what the driver makes of it: the image that
/// it reads, the version of the chart, the label that it misses.
fn newer_template(case: &Case, given: &Value, driver: &str) -> ClusterTemplate {
    let reads = case.recorded["cloud_reads"].as_object().into_iter().flatten();
    let mut image = reads.filter_map(|(what, _)| what.strip_prefix("/image/v2/images/")?.split(' ').next());
    let image = image.next_back().unwrap_or(NEWER_IMAGE).to_owned();
    let helm = case.recorded["steps"].as_array().into_iter().flatten();
    let mut words = helm.flat_map(|step| step["helm"]["argv"].as_array().into_iter().flatten());
    let chart = words.find(|word| *word == "--version").and_then(|_| words.next());
    let (name, value) = match case.package.as_str() {
        "magnum-capi-helm" => (
            "capi_helm_chart_version",
            chart.and_then(Value::as_str).unwrap_or("0.12.0"),
        ),
        _ => ("kube_tag", "v1.34.1"),
    };
    let mut newer = template(case, given, driver);
    newer.uuid = NEWER_TEMPLATE.into();
    newer.name = Some("t2".to_owned());
    newer.image_id = Some(image);
    newer.labels = StringMap::new();
    if case.message() != format!("'{name}'") {
        newer.labels.insert(name.to_owned(), value.to_owned());
    }
    newer
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn integer(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

fn labels(value: &Value) -> StringMap {
    let labels = value.as_object().into_iter().flatten();
    labels
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}
