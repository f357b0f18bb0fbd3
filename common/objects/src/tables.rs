//! The classes of Magnum 23, field by field in wire order.
//!
//! Raise a class's version with every change of its fields, as peers decide by the version whether they can
//! read it; the test at the end fails otherwise.

use super::schema::Default::{Boolean as IsBool, Integer as IsInt};
use super::schema::{Field, FieldKind as K, Schema};

/// Statuses of clusters and node groups.
pub const CLUSTER_STATUS: &[&str] = &[
    "CREATE_IN_PROGRESS",
    "CREATE_FAILED",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_COMPLETE",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
    "DELETE_COMPLETE",
    "RESUME_COMPLETE",
    "RESUME_FAILED",
    "RESTORE_COMPLETE",
    "ROLLBACK_IN_PROGRESS",
    "ROLLBACK_FAILED",
    "ROLLBACK_COMPLETE",
    "SNAPSHOT_COMPLETE",
    "CHECK_COMPLETE",
    "ADOPT_COMPLETE",
];

const FEDERATION_STATUS: &[&str] = &[
    "CREATE_IN_PROGRESS",
    "CREATE_FAILED",
    "CREATE_COMPLETE",
    "UPDATE_IN_PROGRESS",
    "UPDATE_FAILED",
    "UPDATE_COMPLETE",
    "DELETE_IN_PROGRESS",
    "DELETE_FAILED",
    "DELETE_COMPLETE",
];

const HEALTH_STATUS: &[&str] = &["HEALTHY", "UNHEALTHY", "UNKNOWN"];

/// The COEs that a template on the wire may have. Rows of older releases hold others: those are read from the
/// database as they are, but an object with one is refused, as Python refuses it.
const CLUSTER_TYPE: &[&str] = &["kubernetes"];

const fn text(name: &'static str) -> Field {
    Field::nullable(name, K::Text)
}

const fn integer(name: &'static str) -> Field {
    Field::nullable(name, K::Integer)
}

const fn flag(name: &'static str, default: bool) -> Field {
    Field::defaulted(name, K::Boolean, IsBool(default))
}

const ID: Field = Field::required("id", K::Integer);
const CREATED_AT: Field = Field::nullable("created_at", K::DateTime);
const UPDATED_AT: Field = Field::nullable("updated_at", K::DateTime);

/// A cluster.
pub static CLUSTER: Schema = Schema {
    name: "Cluster",
    version: (1, 24),
    fields: &[
        ID,
        Field::nullable("uuid", K::Uuid),
        text("name"),
        text("project_id"),
        text("user_id"),
        text("cluster_template_id"),
        text("keypair"),
        integer("docker_volume_size"),
        Field::nullable("labels", K::DictOfText),
        text("master_flavor_id"),
        text("flavor_id"),
        text("stack_id"),
        Field::nullable("status", K::Enum(CLUSTER_STATUS)),
        text("status_reason"),
        Field::nullable("health_status", K::Enum(HEALTH_STATUS)),
        Field::nullable("health_status_reason", K::DictOfText),
        integer("create_timeout"),
        text("api_address"),
        text("discovery_url"),
        text("ca_cert_ref"),
        text("magnum_cert_ref"),
        text("etcd_ca_cert_ref"),
        text("front_proxy_ca_cert_ref"),
        Field::required("cluster_template", K::Object("ClusterTemplate")),
        text("coe_version"),
        text("container_version"),
        text("fixed_network"),
        text("fixed_subnet"),
        flag("floating_ip_enabled", true),
        flag("master_lb_enabled", false),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A cluster template.
pub static CLUSTER_TEMPLATE: Schema = Schema {
    name: "ClusterTemplate",
    version: (1, 21),
    fields: &[
        ID,
        text("uuid"),
        text("project_id"),
        text("user_id"),
        text("name"),
        text("image_id"),
        text("flavor_id"),
        text("master_flavor_id"),
        text("keypair_id"),
        text("dns_nameserver"),
        text("external_network_id"),
        text("fixed_network"),
        text("fixed_subnet"),
        text("network_driver"),
        text("volume_driver"),
        integer("apiserver_port"),
        integer("docker_volume_size"),
        text("docker_storage_driver"),
        text("cluster_distro"),
        Field::nullable("coe", K::Enum(CLUSTER_TYPE)),
        text("http_proxy"),
        text("https_proxy"),
        text("no_proxy"),
        flag("registry_enabled", false),
        Field::nullable("labels", K::DictOfText),
        flag("tls_disabled", false),
        flag("public", false),
        text("server_type"),
        text("insecure_registry"),
        flag("master_lb_enabled", false),
        flag("floating_ip_enabled", true),
        flag("hidden", false),
        text("tags"),
        text("driver"),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A node group. `cluster_id` holds the cluster's uuid.
pub static NODE_GROUP: Schema = Schema {
    name: "NodeGroup",
    version: (1, 2),
    fields: &[
        ID,
        Field::required("uuid", K::Uuid),
        Field::required("name", K::Text),
        Field::required("cluster_id", K::Text),
        Field::required("project_id", K::Text),
        integer("docker_volume_size"),
        Field::nullable("labels", K::DictOfText),
        text("flavor_id"),
        text("image_id"),
        Field::nullable("node_addresses", K::ListOfText),
        Field::defaulted("node_count", K::Integer, IsInt(1)),
        Field::required("role", K::Text),
        integer("max_node_count"),
        Field::defaulted("min_node_count", K::Integer, IsInt(0)),
        flag("is_default", false),
        text("stack_id"),
        Field::nullable("status", K::Enum(CLUSTER_STATUS)),
        text("status_reason"),
        text("version"),
        Field::nullable("node_labels", K::DictOfText),
        Field::nullable("node_taints", K::ListOfDicts),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A certificate with its key, as the `x509keypair` store keeps it.
pub static X509_KEY_PAIR: Schema = Schema {
    name: "X509KeyPair",
    version: (1, 2),
    fields: &[
        ID,
        Field::nullable("uuid", K::Uuid),
        text("certificate"),
        text("private_key"),
        text("intermediates"),
        text("private_key_passphrase"),
        text("project_id"),
        text("user_id"),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A project's limit of one resource.
pub static QUOTA: Schema = Schema {
    name: "Quota",
    version: (1, 0),
    fields: &[
        ID,
        Field::required("project_id", K::Text),
        Field::required("resource", K::Text),
        Field::required("hard_limit", K::Integer),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A federation.
pub static FEDERATION: Schema = Schema {
    name: "Federation",
    version: (1, 0),
    fields: &[
        ID,
        Field::nullable("uuid", K::Uuid),
        text("name"),
        text("project_id"),
        text("hostcluster_id"),
        Field::nullable("member_ids", K::ListOfText),
        Field::nullable("status", K::Enum(FEDERATION_STATUS)),
        text("status_reason"),
        Field::nullable("properties", K::DictOfText),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// One host's service.
pub static MAGNUM_SERVICE: Schema = Schema {
    name: "MagnumService",
    version: (1, 0),
    fields: &[
        ID,
        text("host"),
        text("binary"),
        Field::required("disabled", K::Boolean),
        text("disabled_reason"),
        Field::nullable("last_seen_up", K::DateTime),
        Field::required("forced_down", K::Boolean),
        Field::required("report_count", K::Integer),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// A certificate that is asked for or handed out; never stored.
pub static CERTIFICATE: Schema = Schema {
    name: "Certificate",
    version: (1, 2),
    fields: &[
        text("project_id"),
        text("user_id"),
        text("cluster_uuid"),
        text("csr"),
        text("pem"),
        text("ca_cert_type"),
        CREATED_AT,
        UPDATED_AT,
    ],
};

/// Counts of clusters and nodes.
pub static STATS: Schema = Schema {
    name: "Stats",
    version: (1, 0),
    fields: &[Field::required("clusters", K::Integer), integer("nodes")],
};

/// Every class.
pub static ALL: &[&Schema] = &[
    &CLUSTER,
    &CLUSTER_TEMPLATE,
    &NODE_GROUP,
    &X509_KEY_PAIR,
    &QUOTA,
    &FEDERATION,
    &MAGNUM_SERVICE,
    &CERTIFICATE,
    &STATS,
];

/// The class of that name.
pub fn find(name: &str) -> Option<&'static Schema> {
    ALL.iter().copied().find(|schema| schema.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use magnum_common::model::{ClusterStatus, HealthStatus};

    /// Change a line here only together with a higher version in the table above.
    const PINNED: &[(&str, &str, &str)] = &[
        ("Cluster", "1.24", "7ebd988c652d82ed"),
        ("ClusterTemplate", "1.21", "cbd6166e8766e3d6"),
        ("NodeGroup", "1.2", "0ebd685a8f9fffea"),
        ("X509KeyPair", "1.2", "92946df3a5ccfb3d"),
        ("Quota", "1.0", "cfd49fba56da10fd"),
        ("Federation", "1.0", "b0bb89ae83cf9c0a"),
        ("MagnumService", "1.0", "2815c0d59308c4cf"),
        ("Certificate", "1.2", "2872054abe15be2d"),
        ("Stats", "1.0", "eb84da44639befc5"),
    ];

    #[test]
    fn fields_do_not_change_without_a_higher_version() {
        let now: Vec<_> = ALL
            .iter()
            .map(|schema| (schema.name, schema.version_text(), schema.fingerprint()))
            .collect();
        let pinned: Vec<_> = PINNED
            .iter()
            .map(|(name, version, hash)| (*name, (*version).to_owned(), (*hash).to_owned()))
            .collect();
        assert_eq!(
            now, pinned,
            "an object's fields changed: raise its version and pin the new fingerprint"
        );
    }

    #[test]
    fn a_fingerprint_changes_with_every_property_of_a_field() {
        static BASE: Schema = Schema {
            name: "X",
            version: (1, 0),
            fields: &[Field::nullable("a", K::Text)],
        };
        static VARIANTS: [&[Field]; 4] = [
            &[Field::nullable("b", K::Text)],
            &[Field::nullable("a", K::Integer)],
            &[Field::required("a", K::Text)],
            &[Field::nullable("a", K::Text), Field::nullable("c", K::Text)],
        ];
        for fields in VARIANTS {
            let changed = Schema {
                name: "X",
                version: (1, 0),
                fields,
            };
            assert_ne!(changed.fingerprint(), BASE.fingerprint(), "{fields:?}");
        }
    }

    #[test]
    fn enumerations_are_the_model_s() {
        let statuses: Vec<_> = ClusterStatus::ALL.iter().map(|s| s.as_str()).collect();
        assert_eq!(CLUSTER_STATUS, statuses);
        let health: Vec<_> = HealthStatus::ALL.iter().map(|s| s.as_str()).collect();
        assert_eq!(HEALTH_STATUS, health);
    }

    #[test]
    fn no_class_has_a_field_twice() {
        for schema in ALL {
            for (index, field) in schema.fields.iter().enumerate() {
                let twice = schema.fields[index + 1..]
                    .iter()
                    .any(|other| other.name == field.name);
                assert!(!twice, "{}.{}", schema.name, field.name);
            }
        }
    }
}
