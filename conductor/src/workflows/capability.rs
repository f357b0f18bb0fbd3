//! Whether a driver can do what is asked, by what its manifest says. Pure.
//!
//! Asked before anything changes: when a request is accepted, if the driver is loaded there, and else when an
//! operation has found its driver. Magnum finds out by calling the driver, after it has changed the rows.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::NodeGroup;
use magnum_drivers::DriverInfo;

use super::args::Work;

/// Whether `driver` can do `work` on a cluster with these groups.
///
/// # Errors
/// What the caller is told: `NotSupported` and its like, in Magnum's words where Magnum has some.
pub fn check(work: &Work, groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
    let can = driver.capabilities;
    match work {
        Work::ClusterResize {
            node_group,
            node_count,
            nodes_to_remove,
        } => {
            let of_masters = groups
                .iter()
                .any(|group| group.uuid == *node_group && group.is_master());
            if of_masters && !can.resize_masters {
                return Err(Fault::new(
                    Exception::MasterNGResizeNotSupported,
                    "Resizing the master nodegroup is not supported by this driver.",
                ));
            }
            if of_masters {
                driver.master_size.check(*node_count)?;
            }
            if !nodes_to_remove.is_empty() && !can.remove_named_nodes {
                return Err(Fault::not_supported(&format!(
                    "Removing the nodes that nodes_to_remove names from a cluster of driver {}",
                    driver.name
                )));
            }
            Ok(())
        }
        Work::ClusterUpgrade { .. } if !can.upgrade => Err(Fault::not_supported(&format!(
            "Upgrading a cluster of driver {}",
            driver.name
        ))),
        Work::RotateCaCertificate {} if !can.rotate_ca => Err(Fault::new(
            Exception::NotSupported,
            "'rotate_ca_certificate' is not supported by this driver.",
        )),
        Work::CredentialRotate {} if !can.rotate_credential => Err(Fault::new(
            Exception::NotSupported,
            "Credential rotation is not supported by driver.",
        )),
        Work::ClusterCreate { .. }
        | Work::ClusterUpdate { .. }
        | Work::ClusterDelete {}
        | Work::ClusterUpgrade { .. }
        | Work::NodegroupCreate { .. }
        | Work::NodegroupUpdate { .. }
        | Work::NodegroupDelete { .. }
        | Work::RotateCaCertificate {}
        | Work::CredentialRotate {} => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use magnum_drivers::{Capabilities, MasterSizeRule};

    use super::*;

    fn driver(capabilities: &[&str]) -> DriverInfo {
        let mut can = Capabilities::default();
        for name in capabilities {
            assert!(can.set(name, true), "{name}");
        }
        DriverInfo {
            name: "disk".into(),
            version: "1.0.0".parse().unwrap(),
            cluster_types: Vec::new(),
            beta: false,
            capabilities: can,
            master_size: MasterSizeRule::Odd,
        }
    }

    fn resize(group: &str, node_count: i32, remove: &[&str]) -> Work {
        Work::ClusterResize {
            node_group: group.into(),
            node_count,
            nodes_to_remove: remove.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn refusal(work: &Work, capabilities: &[&str]) -> Option<Exception> {
        let groups = [
            NodeGroup::new("m".into(), "default-master", "c".into(), "p", "master"),
            NodeGroup::new("w".into(), "default-worker", "c".into(), "p", "worker"),
        ];
        check(work, &groups, &driver(capabilities))
            .err()
            .map(|fault| fault.exception)
    }

    #[test]
    fn masters_are_resized_only_by_a_driver_that_can_and_to_a_size_it_builds() {
        let not_supported = Some(Exception::MasterNGResizeNotSupported);
        assert_eq!(refusal(&resize("m", 3, &[]), &[]), not_supported);
        assert_eq!(refusal(&resize("m", 3, &[]), &["resize_masters"]), None);
        let invalid = Some(Exception::MasterNGSizeInvalid);
        assert_eq!(refusal(&resize("m", 2, &[]), &["resize_masters"]), invalid);
        assert_eq!(refusal(&resize("w", 2, &[]), &[]), None);
    }

    #[test]
    fn what_a_driver_does_not_announce_is_not_supported() {
        let upgrade = Work::ClusterUpgrade {
            template: "t".into(),
            node_group: "w".into(),
            max_batch_size: None,
            rollback: false,
        };
        for (work, capability) in [
            (upgrade, "upgrade"),
            (resize("w", 1, &["server-1"]), "remove_named_nodes"),
            (Work::RotateCaCertificate {}, "rotate_ca"),
            (Work::CredentialRotate {}, "rotate_credential"),
        ] {
            assert_eq!(refusal(&work, &[]), Some(Exception::NotSupported), "{capability}");
            assert_eq!(refusal(&work, &[capability]), None, "{capability}");
        }
    }
}
