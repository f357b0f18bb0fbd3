//! What an operation needs to know beyond the rows, as it lies in the journal.
//!
//! A conductor of an older release may go on with what a newer one has written, and rewrites the arguments when it does. What it
//! does not know of them stays as it is ([`Unread`]).

mod unread;

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::ClusterStatus;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CertificateRefs, OperationKind, Work};
pub use unread::Unread;

/// How the rows were before the operation started: the way back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The cluster's status.
    #[serde(default, with = "status_text")]
    pub status: Option<ClusterStatus>,
    /// Its reason.
    #[serde(default)]
    pub status_reason: Option<String>,
    /// The status of the node group that the operation is about.
    #[serde(default, with = "status_text")]
    pub group_status: Option<ClusterStatus>,
    /// A node count that was changed.
    #[serde(default)]
    pub resized: Option<Resized>,
}

/// A changed node count and how to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resized {
    /// The group.
    pub node_group: NodeGroupUuid,
    /// Its count before.
    pub from: i32,
    /// Its count wanted.
    pub to: i32,
}

/// The arguments of an operation: what to do, and, once it has started, the way back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Args {
    /// What to do.
    pub work: Work,
    /// `None` while another operation of the cluster is in the way: then the rows do not show this one yet.
    #[serde(default)]
    pub started: Option<Started>,
    /// New certificates that are not the cluster's yet.
    #[serde(default)]
    pub certificates: Option<CertificateRefs>,
    /// What a newer release knows of them.
    #[serde(skip)]
    pub unread: Unread,
}

/// Arguments in the journal that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the operation cannot be read: {0}; was it written by a newer release?")]
pub struct UnreadableArgs(String);

/// Arguments that MessagePack cannot hold. They come from JSON, so there are none.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the operation cannot be written: {0}")]
pub struct UnwritableArgs(String);

impl Args {
    /// The kind these arguments belong to.
    pub const fn kind(&self) -> OperationKind {
        self.work.kind()
    }

    /// A node count that the operation has changed.
    pub fn resized(&self) -> Option<&Resized> {
        self.started.as_ref()?.resized.as_ref()
    }

    /// The same request, to be started anew: without the way back of the last time, and its certificates.
    #[must_use]
    pub fn started_anew(&self, started: Started) -> Self {
        Self {
            work: self.work.clone(),
            started: Some(started),
            certificates: None,
            unread: self.unread.clone().without("started").without("certificates"),
        }
    }

    /// The bytes for the journal.
    ///
    /// # Errors
    /// See [`UnwritableArgs`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, UnwritableArgs> {
        let unwritable = |error: &dyn std::error::Error| UnwritableArgs(error.to_string());
        let known = rmp_serde::to_vec_named(self).map_err(|error| unwritable(&error))?;
        if self.unread.is_empty() {
            return Ok(known);
        }
        let whole = self
            .unread
            .clone()
            .into(tree(&known).map_err(|error| unwritable(&error))?);
        let mut bytes = Vec::with_capacity(known.len());
        rmpv::encode::write_value(&mut bytes, &whole).map_err(|error| unwritable(&error))?;
        Ok(bytes)
    }

    /// Reads them back.
    ///
    /// # Errors
    /// See [`UnreadableArgs`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableArgs> {
        let unreadable = |error: &dyn std::error::Error| UnreadableArgs(error.to_string());
        let mut args: Self = rmp_serde::from_slice(bytes).map_err(|error| unreadable(&error))?;
        let known = rmp_serde::to_vec_named(&args).map_err(|error| unreadable(&error))?;
        if known != bytes {
            let stored = tree(bytes).map_err(|error| unreadable(&error))?;
            let known = tree(&known).map_err(|error| unreadable(&error))?;
            args.unread = Unread::of(stored, &known);
        }
        Ok(args)
    }
}

fn tree(mut bytes: &[u8]) -> Result<rmpv::Value, rmpv::decode::Error> {
    rmpv::decode::read_value(&mut bytes)
}

impl<W: Into<Work>> From<W> for Args {
    fn from(work: W) -> Self {
        Self {
            work: work.into(),
            started: None,
            certificates: None,
            unread: Unread::default(),
        }
    }
}

/// Statuses by their texts. One that a newer release knows reads as none: it is not put back by this one.
mod status_text {
    use super::{ClusterStatus, Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        status: &Option<ClusterStatus>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        status.map(ClusterStatus::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ClusterStatus>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::super::kinds::{ClusterDelete, ClusterResize};
    use super::*;

    #[test]
    fn arguments_survive_the_journal() {
        let started = Started {
            status: Some(ClusterStatus::UpdateFailed),
            status_reason: Some("no room".into()),
            group_status: None,
            resized: Some(Resized {
                node_group: "n-1".into(),
                from: 1,
                to: 3,
            }),
        };
        for (work, started) in [
            (
                Work::from(ClusterResize {
                    node_group: "n-1".into(),
                    node_count: 3,
                    nodes_to_remove: vec!["server-1".into()],
                }),
                Some(started),
            ),
            (ClusterDelete {}.into(), Some(Started::default())),
            (ClusterDelete {}.into(), None),
        ] {
            let args = Args {
                work,
                started,
                certificates: None,
                unread: Unread::default(),
            };
            let bytes = args.to_bytes().unwrap();
            assert_eq!(Args::from_bytes(&bytes).unwrap(), args);
        }
    }

    #[test]
    fn foreign_bytes_are_an_error_and_not_a_panic() {
        assert!(Args::from_bytes(b"").is_err());
        assert!(Args::from_bytes(&[0x81, 0xa3, b'f', b'o', b'o', 0xc0]).is_err());
    }

    fn map(entries: &[(&str, Value)]) -> Value {
        let entries = entries
            .iter()
            .map(|(name, value)| ((*name).into(), value.clone()));
        Value::Map(entries.collect())
    }

    fn bytes_of(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    /// A resize as a newer release might write it: at every level there is something that this one does not know.
    fn written_by_a_newer_release(status: &str) -> Value {
        let resize = map(&[
            ("node_group", "g".into()),
            ("node_count", 1.into()),
            ("nodes_to_remove", Value::Array(vec![])),
            ("drain", map(&[("within", 60.into())])),
        ]);
        let resized = map(&[
            ("node_group", "g".into()),
            ("from", 3.into()),
            ("to", 1.into()),
            ("unit", "nodes".into()),
        ]);
        let started = map(&[
            ("status", status.into()),
            ("status_reason", Value::Nil),
            ("group_status", Value::Nil),
            ("resized", resized),
            ("labels", Value::Binary(vec![0, 255])),
        ]);
        let certificates = map(&[
            ("ca", "1".into()),
            ("magnum", "2".into()),
            ("etcd_ca", "3".into()),
            ("front_proxy_ca", "4".into()),
            ("service_account", "5".into()),
        ]);
        map(&[
            ("work", map(&[("cluster_resize", resize)])),
            ("started", started),
            ("certificates", certificates),
            ("priority", 7.into()),
        ])
    }

    #[test]
    fn unknown_arguments_survive_rewriting_at_every_level() {
        for status in ["UPDATE_COMPLETE", "ASLEEP"] {
            let stored = written_by_a_newer_release(status);
            let mut args = Args::from_bytes(&bytes_of(&stored)).unwrap();
            assert_eq!(
                args.started.as_ref().unwrap().status.is_none(),
                status == "ASLEEP"
            );
            let again = tree(&args.to_bytes().unwrap()).unwrap();
            assert_eq!(sorted(again), sorted(stored.clone()));
            // What this release changes is changed, beside what it does not know.
            let Work::ClusterResize(resize) = &mut args.work else {
                panic!("{args:?}");
            };
            resize.nodes_to_remove = vec!["node-1".into()];
            let changed = tree(&args.to_bytes().unwrap()).unwrap();
            let resize = &changed["work"]["cluster_resize"];
            assert_eq!(resize["nodes_to_remove"][0], "node-1".into());
            assert_eq!(resize["drain"]["within"], 60.into());
            assert_eq!(changed["started"]["labels"], Value::Binary(vec![0, 255]));
            assert_eq!(changed["started"]["resized"]["unit"], "nodes".into());
            assert_eq!(changed["started"]["status"], status.into());
            // What it takes away is gone as a whole.
            args.certificates = None;
            let changed = tree(&args.to_bytes().unwrap()).unwrap();
            assert_eq!(changed["certificates"], Value::Nil);
        }
    }

    #[test]
    fn a_request_that_is_started_anew_keeps_what_was_asked_and_not_the_old_way_back() {
        let stored = bytes_of(&written_by_a_newer_release("UPDATE_COMPLETE"));
        let anew = Args::from_bytes(&stored)
            .unwrap()
            .started_anew(Started::default());
        let written = tree(&anew.to_bytes().unwrap()).unwrap();
        assert_eq!(written["work"]["cluster_resize"]["drain"]["within"], 60.into());
        assert_eq!(written["priority"], 7.into());
        assert_eq!(written["started"]["labels"], Value::Nil);
        assert_eq!(written["certificates"], Value::Nil);
    }

    /// Maps of MessagePack have an order, which says nothing here.
    fn sorted(value: Value) -> Value {
        match value {
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (key, sorted(value)));
                let mut entries: Vec<_> = entries.collect();
                entries.sort_by_key(|(key, _)| key.to_string());
                Value::Map(entries)
            }
            other => other,
        }
    }
}
