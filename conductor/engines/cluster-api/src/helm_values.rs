//! The values of the chart's release, from Magnum's rows and what the cloud has (reference drivers.md 4.4).
//!
//! Pure: the same rows and the same cloud give the same values, so that a repeated `helm upgrade` changes nothing. What the package
//! writes as null is null here; helm takes it for "not said".

mod storage;

use magnum_common::model::{ClusterTemplate, NodeCounts, NodeGroup};
use serde_json::{Map, Value, json};

use crate::labels::{Labels, kept};
use crate::names::{Named, sanitized};
use crate::node_counts::{BadBounds, bounds};
use crate::options::{BlockDevice, CapiHelmSection, LabelDefaultsSection};
use magnum_config::value::Keyword as _;

/// Magnum's rows, with the groups that the release is to have.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The cluster, with its name in the management cluster.
    pub named: Named<'a>,
    /// All its groups.
    pub groups: &'a [NodeGroup],
    /// The group that the release loses.
    pub without: Option<&'a NodeGroup>,
    /// The cluster's template; in an upgrade the new one.
    pub template: &'a ClusterTemplate,
}

/// The operator's choices.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// `[capi_helm]`
    pub helm: &'a CapiHelmSection,
    /// `[capi_helm_cluster_labels]`
    pub labels: &'a LabelDefaultsSection,
    /// `[cinder] default_boot_volume_type`; empty is none.
    pub boot_volume_type: &'a str,
    /// `[cinder] default_boot_volume_size`, in GB; 0 is none.
    pub boot_volume_size: i64,
}

/// What the cloud has of that which the rows name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The template's image.
    pub image: Image,
    /// The id of the template's external network.
    pub external_network: String,
    /// The id of the cluster's fixed network, if it has one.
    pub network: Option<String>,
    /// The id of the cluster's fixed subnet, if it has one.
    pub subnet: Option<String>,
    /// Cinder's volume types, in its order.
    pub volume_types: Vec<String>,
    /// Where the users of the cloud are known, for clusters whose users they are.
    pub keystone: Keystone,
}

/// An image, by the properties that the driver needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its property `kube_version`.
    pub kube_version: Option<String>,
    /// Its property `os_distro`.
    pub os_distro: Option<String>,
}

/// Where the users of the cloud are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keystone {
    /// Keystone's address, as the request had it.
    pub auth_url: Option<String>,
    /// The requester's project.
    pub project: Option<String>,
}

/// Why there are no values. The texts are the package's, where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoValues {
    /// An image lacks a property.
    #[error("Image {image} does not have {article} {property} property.")]
    ImageLacks {
        /// Its id.
        image: String,
        /// `a` or `an`.
        article: &'static str,
        /// The property.
        property: &'static str,
    },
    /// The operator's volume type is none of Cinder's.
    #[error("{0} is not a valid Cinder volume type.")]
    NoSuchVolumeType(String),
    /// Cinder has none at all. The package ends with an exception of Python's there.
    #[error("Cinder has no volume types: a cluster needs one for its storage class")]
    NoVolumeTypes,
    /// A group's bounds cannot be.
    #[error(transparent)]
    Bounds(#[from] BadBounds),
}

/// The values.
///
/// # Errors
/// See [`NoValues`].
pub fn values(rows: Rows<'_>, choices: Choices<'_>, found: &Found) -> Result<Value, NoValues> {
    let cluster = rows.named.cluster;
    let labels = Labels::of(cluster, rows.template);
    let defaults = choices.labels;
    let healing = labels.flag("auto_healing_enabled", defaults.auto_healing_enabled);
    let mut control_plane = json!({
        "machineFlavor": cluster.master_flavor_id,
        "machineCount": NodeCounts::of(rows.groups).masters,
        "healthCheck": {"enabled": healing},
    });
    let mut group_defaults = json!({"healthCheck": {"enabled": healing}});
    if let Some(volume) = root_volume(labels, choices) {
        control_plane["machineRootVolume"] = volume.clone();
        group_defaults["machineRootVolume"] = volume;
    }
    if let Some(ports) = ports(labels, defaults) {
        group_defaults["machineNetworking"] = json!({"ports": ports});
    }
    let mut values = json!({
        "kubernetesVersion": kubernetes_version(&found.image)?,
        "machineImageId": found.image.id,
        "machineSSHKeyName": cluster.keypair.as_deref().filter(|name| !name.is_empty()),
        "cloudCredentialsSecretName": rows.named.cloud_credentials(),
        "etcd": etcd(labels, defaults),
        "apiServer": api_server(labels, defaults),
        "clusterNetworking": networking(rows.template, labels, defaults, found),
        "osDistro": os_distro(&found.image)?,
        "controlPlane": control_plane,
        "nodeGroupDefaults": group_defaults,
        "nodeGroups": node_groups(rows, labels, defaults)?,
        "addons": addons(rows.template, labels, choices, found)?,
    });
    if labels.flag("keystone_auth_enabled", defaults.keystone_auth_enabled) {
        values["authWebhook"] = json!("k8s-keystone-auth");
        values["addons"]["openstack"]["k8sKeystoneAuth"] = json!({
            "enabled": true,
            "values": {"openstackAuthUrl": found.keystone.auth_url, "projectId": found.keystone.project},
        });
    }
    Ok(values)
}

/// The Kubernetes version of an image, which is the one of the cluster.
///
/// # Errors
/// The image has none.
pub fn kubernetes_version(image: &Image) -> Result<String, NoValues> {
    let version = property(image, "kube_version", "a", image.kube_version.as_deref())?;
    let is_part = |c: &char| c.is_ascii_digit() || *c == '.';
    Ok(version.trim_start_matches('v').chars().filter(is_part).collect())
}

fn os_distro(image: &Image) -> Result<String, NoValues> {
    let distro = property(image, "os_distro", "an", image.os_distro.as_deref())?;
    Ok(kept(distro, |c| matches!(c, '.' | '-' | '/' | ' ')))
}

fn property<'a>(
    image: &Image,
    property: &'static str,
    article: &'static str,
    value: Option<&'a str>,
) -> Result<&'a str, NoValues> {
    value
        .filter(|value| !value.is_empty())
        .ok_or_else(|| NoValues::ImageLacks {
            image: image.id.clone(),
            article,
            property,
        })
}

/// Older labels stand in for those that replaced them.
fn etcd(labels: Labels<'_>, defaults: &LabelDefaultsSection) -> Value {
    let size = labels
        .number("etcd_blockdevice_size")
        .or_else(|| labels.number("etcd_volume_size"))
        .unwrap_or(defaults.etcd_blockdevice_size);
    if size <= 0 {
        return json!({});
    }
    let kind = labels.text("etcd_blockdevice_type", defaults.etcd_blockdevice_type.word());
    if kind == BlockDevice::Local.word() {
        return json!({"blockDevice": {"size": size, "type": "Local"}});
    }
    let mut device = json!({"size": size, "type": "Volume"});
    let older = labels.text("etcd_volume_type", &defaults.etcd_blockdevice_volume_type);
    for (field, text) in [
        ("volumeType", labels.text("etcd_blockdevice_volume_type", &older)),
        (
            "availabilityZone",
            labels.text("etcd_blockdevice_volume_az", &defaults.etcd_blockdevice_volume_az),
        ),
    ] {
        if !text.is_empty() {
            device[field] = json!(text);
        }
    }
    json!({"blockDevice": device})
}

fn api_server(labels: Labels<'_>, defaults: &LabelDefaultsSection) -> Value {
    let mut server = json!({
        "associateFloatingIP":
            labels.flag("master_lb_floating_ip_enabled", defaults.master_lb_floating_ip_enabled),
        "enableLoadBalancer": true,
        "loadBalancerProvider": octavia_provider(labels, defaults),
    });
    let allowed = labels.addresses(
        "api_master_lb_allowed_cidrs",
        &defaults.api_master_lb_allowed_cidrs,
    );
    if !allowed.is_empty() {
        // Charts spell it in one way or the other, and take no notice of what they do not know: everybody could reach the API then.
        server["allowedCidrs"] = json!(allowed);
        server["allowedCIDRs"] = json!(allowed);
    }
    server
}

fn octavia_provider(labels: Labels<'_>, defaults: &LabelDefaultsSection) -> String {
    labels.text("octavia_provider", &defaults.octavia_provider)
}

fn networking(
    template: &ClusterTemplate,
    labels: Labels<'_>,
    defaults: &LabelDefaultsSection,
    found: &Found,
) -> Value {
    let filter = |id: &Option<String>| id.as_ref().map(|id| json!({"id": id}));
    let servers = template.dns_nameserver.as_deref().filter(|text| !text.is_empty());
    json!({
        "dnsNameservers": servers.map(|text| text.split(',').map(str::trim).collect::<Vec<_>>()),
        "externalNetworkId": found.external_network,
        "internalNetwork": {
            "networkFilter": filter(&found.network),
            "subnetFilter": filter(&found.subnet),
            "nodeCidr": labels.text("fixed_subnet_cidr", &defaults.fixed_subnet_cidr),
        },
    })
}

fn root_volume(labels: Labels<'_>, choices: Choices<'_>) -> Option<Value> {
    let defaults = choices.labels;
    let kind = if defaults.boot_volume_type.is_empty() {
        choices.boot_volume_type
    } else {
        &defaults.boot_volume_type
    };
    let kind = labels.text("boot_volume_type", kind);
    let size = labels
        .number("boot_volume_size")
        .or(defaults.boot_volume_size)
        .unwrap_or(choices.boot_volume_size);
    let mut volume = Map::new();
    if !kind.is_empty() {
        volume.insert("volumeType".to_owned(), json!(kind));
    }
    if size != 0 {
        volume.insert("diskSize".to_owned(), json!(size));
    }
    (!volume.is_empty()).then_some(Value::Object(volume))
}

/// The first port is the one in the cluster's own network.
fn ports(labels: Labels<'_>, defaults: &LabelDefaultsSection) -> Option<Vec<Value>> {
    let mut names = labels.text("extra_network_names", &defaults.extra_network_names);
    if names.is_empty() {
        names = labels.text("extra_network_name", "");
    }
    if names.is_empty() {
        return None;
    }
    let further = names
        .split(' ')
        .map(|name| json!({"network": {"name": name}, "securityGroups": []}));
    Some([json!({})].into_iter().chain(further).collect())
}

fn node_groups(
    rows: Rows<'_>,
    labels: Labels<'_>,
    defaults: &LabelDefaultsSection,
) -> Result<Vec<Value>, BadBounds> {
    let scaled = labels.flag("auto_scaling_enabled", defaults.auto_scaling_enabled);
    let is_lost = |group: &NodeGroup| rows.without.is_some_and(|lost| lost.name == group.name);
    let workers = rows
        .groups
        .iter()
        .filter(|group| !group.is_master() && !is_lost(group));
    workers
        .map(|group| {
            let mut one = json!({
                "name": sanitized(&group.name),
                "machineFlavor": group.flavor_id,
                "machineCount": group.node_count,
            });
            if scaled {
                let bounds = bounds(group, labels, defaults)?;
                if bounds.min != bounds.max {
                    one["autoscale"] = json!("true");
                    one["machineCountMin"] = json!(bounds.min);
                    one["machineCountMax"] = json!(bounds.max);
                }
            }
            Ok(one)
        })
        .collect()
}

fn addons(
    template: &ClusterTemplate,
    labels: Labels<'_>,
    choices: Choices<'_>,
    found: &Found,
) -> Result<Value, NoValues> {
    let defaults = choices.labels;
    let provider = octavia_provider(labels, defaults);
    let method = match defaults.octavia_lb_algorithm.as_str() {
        "" if provider.eq_ignore_ascii_case("ovn") => "SOURCE_IP_PORT",
        "" => "ROUND_ROBIN",
        algorithm => algorithm,
    };
    let mut addons = json!({
        "openstack": {
            "csiCinder": storage::classes(labels, choices, &found.volume_types)?,
            "cloudConfig": {"LoadBalancer": {
                "lb-provider": provider,
                "lb-method": labels.text("octavia_lb_algorithm", method),
                "create-monitor": labels.flag("octavia_lb_healthcheck", defaults.octavia_lb_healthcheck),
            }},
        },
        "monitoring": {"enabled": labels.flag("monitoring_enabled", defaults.monitoring_enabled)},
        "kubernetesDashboard":
            {"enabled": labels.flag("kube_dashboard_enabled", defaults.kube_dashboard_enabled)},
        // Its load balancer would stay behind, and block the deletion of the network.
        "ingress": {"enabled": false},
    });
    if let Some(driver) = template
        .network_driver
        .as_deref()
        .filter(|driver| !driver.is_empty())
    {
        addons["cni"] = json!({"type": kept(driver, |c| matches!(c, '.' | '-' | '_'))});
    }
    Ok(addons)
}

#[cfg(test)]
mod tests;
