//! The `Cluster` object.

use serde_json::Value;

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;

use super::cluster_template::TemplateObject;
use super::convert::{Received, wanted, wire_model};
use super::tables::CLUSTER;

/// A cluster that arrived.
pub type ClusterObject = Received<Cluster>;

wire_model!(
    Cluster,
    CLUSTER,
    |object| {
        let uuid = object.text("uuid").map_or_else(ClusterUuid::random, ClusterUuid::from);
        Ok(Cluster::new(uuid, wanted(object, "cluster_template_id")?.into()))
    },
    [id uuid name project_id user_id cluster_template_id keypair docker_volume_size labels master_flavor_id
     flavor_id stack_id status status_reason health_status health_status_reason create_timeout api_address
     discovery_url ca_cert_ref magnum_cert_ref etcd_ca_cert_ref front_proxy_ca_cert_ref coe_version
     container_version fixed_network fixed_subnet floating_ip_enabled master_lb_enabled created_at updated_at]
);

impl Received<Cluster> {
    /// The cluster's uuid.
    ///
    /// # Errors
    /// `ValueError` when it is not set.
    pub fn uuid(&self) -> Result<ClusterUuid, Fault> {
        wanted(self.object(), "uuid").map(ClusterUuid::from)
    }

    /// The template inside, which a sender includes when it had loaded it.
    ///
    /// # Errors
    /// As decoding.
    pub fn template(&self) -> Result<Option<TemplateObject>, Fault> {
        self.object()
            .nested("cluster_template")?
            .map(Received::from_object)
            .transpose()
    }
}

/// A cluster as a row that was just read: all fields set, nothing changed.
pub fn encode(cluster: &Cluster) -> Value {
    super::encode(cluster)
}

/// Reads a cluster from a message.
///
/// # Errors
/// As [`super::VersionedObject::decode`].
pub fn decode(value: &Value) -> Result<ClusterObject, Fault> {
    Received::decode(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{encode_changed, encode_with_changes};
    use magnum_common::error::Exception;
    use magnum_common::model::ClusterStatus;

    fn sample() -> Cluster {
        let mut cluster = Cluster::new("u-1".into(), "t-1".into());
        cluster.name = Some("c1".into());
        cluster.labels.insert("k".into(), "v".into());
        cluster.status = Some(ClusterStatus::CreateComplete);
        cluster.create_timeout = Some(60);
        cluster.created_at = chrono::NaiveDate::from_ymd_opt(2026, 1, 2)
            .unwrap()
            .and_hms_milli_opt(3, 4, 5, 678);
        cluster
    }

    #[test]
    fn a_row_travels_with_all_fields_but_no_changes() {
        let sent = encode(&sample());
        assert_eq!(sent["magnum_object.data"]["created_at"], "2026-01-02T03:04:05Z");
        assert_eq!(sent["magnum_object.data"]["keypair"], Value::Null);
        assert_eq!(sent.get("magnum_object.changes"), None);
        // Not inserted yet: no id; and a cluster does not carry its template unless asked to.
        assert_eq!(sent["magnum_object.data"].get("id"), None);
        assert_eq!(sent["magnum_object.data"].get("cluster_template"), None);

        let mut read = decode(&sent).unwrap().model().unwrap();
        assert_ne!(read.created_at, sample().created_at, "fractions are cut");
        read.created_at = sample().created_at;
        assert_eq!(read, sample());
    }

    #[test]
    fn only_changed_fields_are_inserted() {
        let sent = encode_with_changes(&sample(), &["uuid", "name", "cluster_template_id"]);
        let created = decode(&sent).unwrap().created().unwrap();
        assert_eq!(
            (created.uuid.as_str(), created.name.as_deref()),
            ("u-1", Some("c1"))
        );
        assert_eq!((created.create_timeout, created.status), (None, None));
        assert!(created.floating_ip_enabled, "the object's default");
    }

    #[test]
    fn a_new_cluster_travels_with_exactly_the_fields_that_were_given() {
        let sent = encode_changed(&sample(), &["name", "uuid", "keypair"]);
        assert_eq!(
            sent["magnum_object.data"],
            json!({"uuid": "u-1", "name": "c1", "keypair": null})
        );
        assert_eq!(sent["magnum_object.changes"], json!(["uuid", "name", "keypair"]));
    }

    #[test]
    fn changes_go_onto_the_row_as_it_is_now() {
        let mut theirs = sample();
        theirs.name = Some("c2".into());
        theirs.status = Some(ClusterStatus::UpdateFailed);
        theirs.id = Some(9);
        let sent = encode_with_changes(&theirs, &["id", "name", "uuid", "created_at"]);
        let mut row = sample();
        let applied = decode(&sent).unwrap().apply(&mut row).unwrap();
        assert_eq!(applied, ["name"]);
        assert_eq!(row.name.as_deref(), Some("c2"));
        assert_eq!((row.status, row.id), (Some(ClusterStatus::CreateComplete), None));
    }

    #[test]
    fn a_uuid_cannot_be_changed() {
        let mut theirs = sample();
        theirs.uuid = "u-2".into();
        let sent = encode_with_changes(&theirs, &["uuid"]);
        let fault = decode(&sent).unwrap().apply(&mut sample()).unwrap_err();
        assert_eq!(fault.exception, Exception::InvalidParameterValue);
    }

    #[test]
    fn a_number_no_row_can_hold_is_refused_by_name() {
        let mut sent = encode(&sample());
        sent["magnum_object.data"]["create_timeout"] = json!(1_i64 << 40);
        let fault = decode(&sent).unwrap().model().unwrap_err();
        assert!(fault.message.contains("create_timeout"), "{fault}");
    }

    #[test]
    fn another_class_is_refused() {
        let sent = json!({"magnum_object.name": "Quota", "magnum_object.namespace": "magnum",
                          "magnum_object.version": "1.0", "magnum_object.data": {}});
        assert_eq!(
            decode(&sent).unwrap_err().message,
            "An object of type Cluster is required, not a Quota"
        );
    }
}
