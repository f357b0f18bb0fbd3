//! The objects of the small records: quotas, services, key pairs, federations, certificates, statistics.

use magnum_common::error::Fault;
use magnum_common::model::{Federation, MagnumService, Quota, StringMap, Timestamp, X509KeyPair};

use super::convert::wire_model;
use super::object::VersionedObject;
use super::tables;

/// A certificate that is asked for or handed out. Never stored.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct Certificate {
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub cluster_uuid: Option<String>,
    pub csr: Option<String>,
    pub pem: Option<String>,
    /// `None`, also when the sender did not set it, means the Kubernetes CA.
    pub ca_cert_type: Option<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// Counts of clusters and of their nodes.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stats {
    pub clusters: i32,
    pub nodes: Option<i32>,
}

type Blank<M> = Result<M, Fault>;

fn quota(_: &VersionedObject) -> Blank<Quota> {
    Ok(Quota {
        id: None,
        project_id: None,
        resource: None,
        hard_limit: 0,
        created_at: None,
        updated_at: None,
    })
}

fn service(_: &VersionedObject) -> Blank<MagnumService> {
    Ok(MagnumService {
        id: None,
        host: None,
        binary: None,
        disabled: false,
        disabled_reason: None,
        last_seen_up: None,
        forced_down: false,
        report_count: 0,
        created_at: None,
        updated_at: None,
    })
}

fn key_pair(_: &VersionedObject) -> Blank<X509KeyPair> {
    Ok(X509KeyPair {
        id: None,
        uuid: None,
        certificate: None,
        private_key: None,
        intermediates: None,
        private_key_passphrase: None,
        project_id: None,
        user_id: None,
        created_at: None,
        updated_at: None,
    })
}

fn federation(_: &VersionedObject) -> Blank<Federation> {
    Ok(Federation {
        id: None,
        uuid: None,
        name: None,
        project_id: None,
        hostcluster_id: None,
        member_ids: Vec::new(),
        status: None,
        status_reason: None,
        properties: StringMap::new(),
        created_at: None,
        updated_at: None,
    })
}

wire_model!(
    Quota,
    tables::QUOTA,
    quota,
    [id project_id resource hard_limit created_at updated_at]
);
wire_model!(
    MagnumService,
    tables::MAGNUM_SERVICE,
    service,
    [id host binary disabled disabled_reason last_seen_up forced_down report_count created_at updated_at]
);
wire_model!(
    X509KeyPair,
    tables::X509_KEY_PAIR,
    key_pair,
    [id uuid certificate private_key intermediates private_key_passphrase project_id user_id created_at
     updated_at]
);
wire_model!(
    Federation,
    tables::FEDERATION,
    federation,
    [id uuid name project_id hostcluster_id member_ids status status_reason properties created_at updated_at]
);
wire_model!(
    Certificate,
    tables::CERTIFICATE,
    |_| Ok(Certificate::default()),
    [project_id user_id cluster_uuid csr pem ca_cert_type created_at updated_at]
);
wire_model!(Stats, tables::STATS, |_| Ok(Stats::default()), [clusters nodes]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Received, WireModel, encode, encode_changed};
    use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
    use magnum_common::secret::Secret;

    fn missing<M: WireModel>(model: &M) -> Vec<&'static str> {
        let held = |name: &str| model.field(name).is_some();
        M::SCHEMA
            .fields
            .iter()
            .map(|field| field.name)
            .filter(|name| !held(name))
            .collect()
    }

    #[test]
    fn every_field_of_every_class_has_its_place_in_the_domain() {
        let none: [&str; 0] = [];
        assert_eq!(
            missing(&Cluster::new("u".into(), "t".into())),
            ["cluster_template"]
        );
        assert_eq!(missing(&ClusterTemplate::new("t".into())), none);
        assert_eq!(
            missing(&NodeGroup::new("n".into(), "w", "c".into(), "p", "worker")),
            none
        );
        let object = |schema| VersionedObject::new(schema);
        assert_eq!(missing(&quota(&object(&tables::QUOTA)).unwrap()), none);
        assert_eq!(missing(&service(&object(&tables::MAGNUM_SERVICE)).unwrap()), none);
        assert_eq!(missing(&key_pair(&object(&tables::X509_KEY_PAIR)).unwrap()), none);
        assert_eq!(missing(&federation(&object(&tables::FEDERATION)).unwrap()), none);
        assert_eq!(missing(&Certificate::default()), none);
        assert_eq!(missing(&Stats::default()), none);
    }

    #[test]
    fn a_key_pair_carries_its_key_and_still_does_not_print_it() {
        let mut pair = key_pair(&VersionedObject::new(&tables::X509_KEY_PAIR)).unwrap();
        pair.private_key = Some(Secret::new("hunter2"));
        let read: X509KeyPair = Received::decode(&encode(&pair)).unwrap().model().unwrap();
        assert_eq!(read, pair);
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    #[test]
    fn statistics_travel_as_python_sends_them() {
        let stats = Stats {
            clusters: 1,
            nodes: Some(3),
        };
        assert_eq!(
            encode_changed(&stats, &["clusters", "nodes"]).to_string(),
            r#"{"magnum_object.name":"Stats","magnum_object.namespace":"magnum","magnum_object.version":"1.0","magnum_object.data":{"clusters":1,"nodes":3},"magnum_object.changes":["clusters","nodes"]}"#
        );
    }
}
