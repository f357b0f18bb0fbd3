//! What the clusters of the database need that may not be there.

use std::collections::{BTreeMap, HashSet};

use magnum_common::model::{Cluster, ClusterStatus};
use magnum_config::{CertManagerType, Settings};
use magnum_drivers::{
    DriverInfo, Registry, ResolutionRules, for_existing_cluster, for_unrecorded_cluster, type_of,
};

use super::report::Finding;
use crate::store::upgrade_facts::Facts;

/// Drivers that Magnum had in its own tree and removed. Their clusters can be shown and nothing else.
const REMOVED_DRIVERS: &[&str] = &[
    "k8s_coreos_v1",
    "k8s_fedora_atomic_v1",
    "k8s_fedora_coreos_v1",
    "k8s_fedora_ironic_v1",
    "k8s_ubuntu_bionic_v1",
    "mesos_ubuntu_v1",
    "swarm_fedora_atomic_v1",
    "swarm_fedora_atomic_v2",
];

/// How many of a thing, in words.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The clusters, and the drivers that there are for them.
pub(super) struct Clusters<'a> {
    settings: &'a Settings,
    facts: &'a Facts,
    drivers: Registry,
}

impl<'a> Clusters<'a> {
    /// With the drivers of this host's folders; what running conductors announced is added.
    pub(super) fn new(settings: &'a Settings, facts: &'a Facts, mut drivers: Registry) -> Self {
        for announced in facts.announced.iter().filter(|one| one.error.is_none()) {
            // One that cannot be read is a later release's, and no use to this one.
            if let Ok(info) = DriverInfo::try_from(&announced.announcement) {
                drivers.insert(info);
            }
        }
        Self {
            settings,
            facts,
            drivers,
        }
    }

    /// Whether every cluster has a driver, by this host's folders or a running conductor.
    pub(super) fn drivers(&self) -> Finding {
        let mut finding = Finding::of("Drivers of clusters");
        let mut missing: BTreeMap<String, usize> = BTreeMap::new();
        for cluster in &self.facts.clusters {
            if let Some(wanted) = self.missing_driver(cluster) {
                *missing.entry(wanted).or_default() += 1;
            }
        }
        for (wanted, number) in missing {
            finding.fail(format!(
                "{} {wanted}, neither in [drivers] driver_path nor announced by a running conductor: they are shown, \
                 and cannot be changed or deleted.",
                count(number, "cluster needs", "clusters need"),
            ));
        }
        finding
    }

    /// The driver that a cluster needs and no conductor has, for the message.
    fn missing_driver(&self, cluster: &Cluster) -> Option<String> {
        if let Some(built) = self.facts.built_by.get(cluster.uuid.as_str()) {
            let found = for_existing_cluster(&built.name, &built.version, &self.drivers);
            return found.is_err().then(|| {
                format!(
                    "the driver {} {} or a later compatible one",
                    built.name, built.version
                )
            });
        }
        let Some(template) = self.facts.templates.get(cluster.cluster_template_id.as_str()) else {
            return Some("a cluster template that is not there any more".to_owned());
        };
        let rules = ResolutionRules::from(&self.settings.drivers);
        if for_unrecorded_cluster(template, &rules, &self.drivers).is_ok() {
            return None;
        }
        Some(match template.driver.as_deref().filter(|name| !name.is_empty()) {
            Some(name) if REMOVED_DRIVERS.contains(&name) => {
                format!("the driver {name}, which Magnum has removed")
            }
            Some(name) => format!("the driver {name}"),
            None => format!("a driver for {}", type_of(template)),
        })
    }

    /// What is left of Heat, trusts, and other engines than Kubernetes.
    pub(super) fn former_releases(&self) -> Finding {
        let mut finding = Finding::of("Clusters of former releases");
        if self.facts.with_trust > 0 {
            finding.warn(format!(
                "{} a user or a trust in Keystone (trust_id, trustee_user_id), in columns that Magnum 23 drops: \
                 `magnum-db-manage upgrade` keeps them. Before a magnum-db-manage of Magnum 23 runs, \
                 run `magnum-db-manage save-trusts`.",
                count(usize::try_from(self.facts.with_trust).unwrap_or(usize::MAX), "cluster has", "clusters have")
            ));
        }
        let mut engines: BTreeMap<String, usize> = BTreeMap::new();
        for cluster in &self.facts.clusters {
            let template = self.facts.templates.get(cluster.cluster_template_id.as_str());
            if let Some(coe) = template
                .and_then(|one| one.coe.as_deref())
                .filter(|coe| *coe != "kubernetes")
            {
                *engines.entry(coe.to_owned()).or_default() += 1;
            }
        }
        for (coe, number) in engines {
            finding.warn(format!(
                "{} of the COE {coe}, which Magnum has removed.",
                count(number, "cluster is", "clusters are")
            ));
        }
        finding
    }

    /// Clusters whose creation has neither a stack nor an open operation of ours.
    pub(super) fn unfinished(&self) -> Finding {
        let mut finding = Finding::of("Unfinished clusters");
        let ours: HashSet<&str> = self.facts.open.iter().map(|open| open.cluster.as_str()).collect();
        let stuck = self.facts.clusters.iter().filter(|cluster| {
            cluster.status == Some(ClusterStatus::CreateInProgress)
                && cluster.stack_id.is_none()
                && !ours.contains(cluster.uuid.as_str())
        });
        let stuck = stuck.count();
        if stuck > 0 {
            finding.warn(format!(
                "{} CREATE_IN_PROGRESS without a stack. If no Python conductor is at work on them, one was stopped \
                 before it called the driver, and nobody goes on: delete them.",
                count(stuck, "cluster is", "clusters are")
            ));
        }
        finding
    }

    /// Checks that the certificates of clusters are in the store of `[certificates] cert_manager_type`.
    pub(super) fn certificates(&self) -> Finding {
        let mut finding = Finding::of("Certificates");
        let is_stored = |reference: &str| match self.settings.certificates.cert_manager_type {
            CertManagerType::X509KeyPair => self.facts.key_pairs.contains(reference),
            CertManagerType::Local => {
                let folder = &self.settings.certificates.storage_path;
                uuid::Uuid::try_parse(reference).is_ok() && folder.join(format!("{reference}.crt")).exists()
            }
            // Whether it answers is another check. Its references are URLs.
            CertManagerType::Barbican => reference.contains("://"),
        };
        let (mut without, mut elsewhere) = (0, 0);
        for cluster in self.facts.clusters.iter().filter(|cluster| is_complete(cluster)) {
            let references = [&cluster.ca_cert_ref, &cluster.magnum_cert_ref];
            if references.iter().any(|reference| reference.is_none()) {
                without += 1;
            } else if references
                .into_iter()
                .flatten()
                .any(|reference| !is_stored(reference))
            {
                elsewhere += 1;
            }
        }
        if without > 0 {
            finding.warn(format!(
                "{} no certificates: `openstack coe cluster config` fails for them.",
                count(without, "cluster has", "clusters have")
            ));
        }
        if elsewhere > 0 {
            finding.fail(format!(
                "The certificates of {} are not where [certificates] cert_manager_type = {} has them: set the type \
                 that they were made with.",
                count(elsewhere, "cluster", "clusters"),
                self.settings.certificates.cert_manager_type,
            ));
        }
        finding
    }
}

/// Whether a cluster should have everything by now.
fn is_complete(cluster: &Cluster) -> bool {
    cluster
        .status
        .is_some_and(|status| status.as_str().ends_with("_COMPLETE"))
}
