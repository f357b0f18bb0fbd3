//! What attributes and arguments mean, in a sentence each: for the document and the reference page. An attribute means
//! the same wherever it is called so.

use crate::validation::body::Field;

/// What it means; empty for a name that is not here.
pub fn about(name: &str) -> &'static str {
    MEANINGS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("", |(_, about)| about)
}

/// What an attribute of a request means.
pub fn about_field(field: &Field) -> &'static str {
    field.about.unwrap_or_else(|| about(field.name))
}

const MEANINGS: &[(&str, &str)] = &[
    ("uuid", "What identifies it."),
    ("id", "Number of its row."),
    (
        "name",
        "Name; one is made up where none is given. Not unique, but for node groups of a cluster.",
    ),
    ("links", "Where it is, with and without the version in the path."),
    ("project_id", "The project that it belongs to."),
    ("user_id", "The user who made it."),
    ("created_at", "When it was made."),
    ("updated_at", "When it was changed last; null: never."),
    ("status", "How far the last operation is."),
    ("status_reason", "Why the status is what it is."),
    (
        "labels",
        "Settings for the driver. A cluster without labels of its own has those of its template.",
    ),
    (
        "merge_labels",
        "Whether given labels are added to the inherited ones, instead of replacing them.",
    ),
    (
        "labels_overridden",
        "Inherited labels that have another value here, with the inherited value.",
    ),
    ("labels_added", "Labels that were not inherited."),
    ("labels_skipped", "Inherited labels that are not here."),
    // Cluster templates.
    ("coe", "Container orchestration engine: kubernetes."),
    ("image_id", "Image of the nodes, by uuid or name."),
    ("flavor_id", "Flavor of the workers, by id or name."),
    ("master_flavor_id", "Flavor of the masters, by id or name."),
    (
        "dns_nameserver",
        "IPv4 addresses of name servers, separated by commas.",
    ),
    ("keypair_id", "Key pair for clusters that name none."),
    ("external_network_id", "Network with a way out, by id or name."),
    ("fixed_network", "Network of the nodes, by id or name."),
    ("fixed_subnet", "Subnet of the nodes, by id or name."),
    ("network_driver", "Network plug-in inside of the cluster."),
    ("apiserver_port", "Port of the Kubernetes API."),
    (
        "docker_volume_size",
        "Size of the volume for container images, in GiB.",
    ),
    ("cluster_distro", "Operating system; the image decides."),
    ("http_proxy", "Proxy for HTTP."),
    ("https_proxy", "Proxy for HTTPS."),
    ("no_proxy", "Where no proxy is used, separated by commas."),
    ("volume_driver", "Where persistent volumes come from: cinder."),
    (
        "registry_enabled",
        "Whether the cluster has an image registry of its own.",
    ),
    ("tls_disabled", "Whether the Kubernetes API goes without TLS."),
    ("public", "Whether everybody may use it."),
    ("hidden", "Whether it is left out of lists of others."),
    ("server_type", "Virtual or bare metal machines."),
    ("insecure_registry", "Registry that is used without TLS."),
    ("docker_storage_driver", "Storage driver of the container engine."),
    (
        "master_lb_enabled",
        "Whether a load balancer stands before the masters; more than one master needs it.",
    ),
    ("floating_ip_enabled", "Whether nodes get floating addresses."),
    ("tags", "Words to find it by, separated by commas."),
    (
        "driver",
        "Driver that builds the clusters; chosen by the image and the configuration where none is given.",
    ),
    // Clusters.
    ("cluster_template_id", "Cluster template, by uuid or name."),
    ("keypair", "Key pair for the nodes."),
    (
        "node_count",
        "Number of nodes: of a cluster, the sum over its groups of workers; given, that of the default group.",
    ),
    ("master_count", "Number of masters: an odd number."),
    ("create_timeout", "Minutes that creation may take; 0: no limit."),
    ("stack_id", "What the driver calls it in the cloud."),
    (
        "cluster_id",
        "Of a cluster: what the driver calls it in the cloud. Of a node group: its cluster.",
    ),
    ("health_status", "How it is, as a monitor says."),
    ("health_status_reason", "Details of that."),
    ("discovery_url", "URL by which the masters find each other."),
    (
        "api_address",
        "URL of the Kubernetes API; null until it is known.",
    ),
    ("coe_version", "Version of Kubernetes."),
    ("container_version", "Version of the container engine."),
    (
        "node_addresses",
        "Addresses of the nodes; of a cluster, of all its workers.",
    ),
    ("master_addresses", "Addresses of the masters."),
    (
        "faults",
        "What went wrong, by node group; there only when something did.",
    ),
    // Actions.
    (
        "nodes_to_remove",
        "Nodes that shall go rather than others, by the names or addresses that the driver knows them by.",
    ),
    (
        "nodegroup",
        "Node group, by uuid or name; the default workers where none is given.",
    ),
    (
        "cluster_template",
        "Cluster template to move to, by uuid or name.",
    ),
    ("max_batch_size", "Nodes that are replaced at once."),
    // Node groups.
    (
        "role",
        "What the group is for. There is one group of masters, which is made with the cluster.",
    ),
    ("min_node_count", "Fewest nodes that the group may have."),
    (
        "max_node_count",
        "Most nodes that the group may have; null or 0: no limit.",
    ),
    ("is_default", "Whether it was made with the cluster."),
    ("version", "Version of what runs on the nodes."),
    ("node_labels", "Kubernetes labels of the nodes."),
    (
        "node_taints",
        "Kubernetes taints of the nodes: key, effect and, optional, value.",
    ),
    // Certificates.
    ("cluster_uuid", "Cluster, by uuid or name."),
    ("csr", "Certificate signing request, PEM."),
    ("pem", "Certificate, PEM."),
    (
        "ca_cert_type",
        "Which CA of the cluster; kubernetes where none is given.",
    ),
    // Operations.
    ("step", "The step that it is at, or was at."),
    ("attempts", "How often it was begun."),
    ("failures", "How many attempts failed."),
    (
        "reason",
        "Why it ended as it did; administrators see besides why the last attempt failed.",
    ),
    ("progress", "How far the driver is, in its words."),
    ("stop_requested", "Whether it shall end before it is done."),
    (
        "request_id",
        "The request that asked for it, as its answer named it.",
    ),
    ("driver_version", "Version of the driver."),
    ("ended_at", "When it ended; null: not yet."),
    ("next_attempt_at", "When it is tried again."),
    ("deadline_at", "When it is given up."),
    (
        "events",
        "What happened to it, in order; of very much, what happened last.",
    ),
    ("event", "What happened."),
    ("attempt", "Number of the attempt at which it happened."),
    ("at", "When it happened."),
    ("detail", "What was said about it; for administrators."),
    ("conductor", "Conductor that had it; for administrators."),
    (
        "lease_epoch",
        "How often a conductor took it over; for administrators.",
    ),
    (
        "lease_expires_at",
        "Until when the conductor has it; for administrators.",
    ),
    (
        "message_id",
        "The message by which it was asked for; for administrators.",
    ),
    (
        "answer_pending",
        "Whether somebody still waits for its answer; for administrators.",
    ),
    // Quotas, statistics, services.
    (
        "hard_limit",
        "How many there may be; a request that names none means 1.",
    ),
    ("resource", "What is limited: Cluster."),
    ("clusters", "Number of clusters."),
    ("nodes", "Number of nodes, masters included."),
    ("host", "Host that it runs on."),
    ("binary", "Program."),
    (
        "state",
        "Of a service: whether it was heard of lately. Of an operation: queued, running, retrying, observing (the driver is at \
         work), succeeded, failed, refused or cancelled.",
    ),
    ("report_count", "How often it was heard of."),
    ("disabled", "Whether it shall take no work."),
    ("disabled_reason", "Why not."),
    // Federations.
    (
        "hostcluster_id",
        "Cluster that hosts the federation, by uuid or name.",
    ),
    ("member_ids", "Clusters that are members."),
    ("properties", "Settings; dns-zone is needed."),
    // Arguments and parts of paths.
    ("marker", "Begin after this one: the last of the page before."),
    (
        "limit",
        "Most items of a page; never more than the service allows.",
    ),
    ("sort_key", "Attribute to sort by; id where none is given."),
    ("sort_dir", "Direction of sorting."),
    ("rollback", "Whether to undo the change should it fail."),
    (
        "all_tenants",
        "Whether to list those of all projects, for administrators.",
    ),
    ("type", "What is counted: cluster."),
    ("ident", "The resource, by uuid or name."),
    ("group", "The node group, by uuid or name."),
    (
        "path",
        "The rest of the path, slashes included, as the driver declares it.",
    ),
    ("cluster", "The cluster, by uuid or name."),
    (
        "kind",
        "Which CA of the cluster; of an operation, what was asked for.",
    ),
    ("project", "The project."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_is_explained_once() {
        let words: BTreeSet<&str> = MEANINGS.iter().map(|(word, _)| *word).collect();
        assert_eq!(words.len(), MEANINGS.len());
        assert_eq!(about("nobody knows this"), "");
    }
}
