//! Texts, steps, stored bytes and capabilities of all kinds.

use magnum_common::error::Exception;
use magnum_common::model::{NodeGroup, RebootType};
use magnum_drivers::{Capabilities, DriverInfo, MasterSizeRule};

use super::*;
use crate::workflows::Args;

#[test]
fn every_kind_reads_back_and_fits_its_column() {
    for kind in OperationKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(*kind));
        assert!(kind.as_str().len() <= 32);
    }
    assert!("cluster_paint".parse::<OperationKind>().is_err());
}

#[test]
fn every_step_reads_back_and_fits_its_column() {
    for step in OperationKind::ALL.iter().flat_map(|kind| kind.steps()) {
        assert_eq!(step.as_str().parse(), Ok(*step));
        assert!(step.as_str().len() <= 32);
    }
    assert!("paint_cluster".parse::<Step>().is_err());
}

#[test]
fn every_workflow_ends_with_the_call_of_the_driver_and_no_two_kinds_share_its_name() {
    let mut names: Vec<&str> = OperationKind::ALL
        .iter()
        .map(|kind| {
            assert_eq!(kind.steps().last(), Some(&Step::CallDriver(*kind)), "{kind}");
            kind.description().driver_step
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), OperationKind::ALL.len());
}

#[test]
fn walking_a_workflow_visits_each_step_once_and_ends() {
    for kind in OperationKind::ALL {
        let mut walked = Vec::new();
        let mut done = None;
        while let Some(step) = kind.step_after(done) {
            walked.push(step);
            done = Some(step);
        }
        assert_eq!(walked, kind.steps(), "{kind}");
    }
}

#[test]
fn a_step_of_another_workflow_leaves_nothing_to_do() {
    let other = Step::CallDriver(OperationKind::ClusterDelete);
    assert_eq!(OperationKind::ClusterCreate.step_after(Some(other)), None);
}

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
        api: Default::default(),
    }
}

fn resize(group: &str, node_count: i32, remove: &[&str]) -> Work {
    Work::from(ClusterResize {
        node_group: group.into(),
        node_count,
        nodes_to_remove: remove.iter().map(|name| (*name).to_owned()).collect(),
    })
}

fn refusal(work: &Work, capabilities: &[&str]) -> Option<Exception> {
    let groups = [
        NodeGroup::new("m".into(), "default-master", "c".into(), "p", "master"),
        NodeGroup::new("w".into(), "default-worker", "c".into(), "p", "worker"),
    ];
    work.workflow()
        .supported(&groups, &driver(capabilities))
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
fn unannounced_capability_is_not_supported() {
    let upgrade = ClusterUpgrade {
        template: "t".into(),
        node_group: "w".into(),
        max_batch_size: None,
        rollback: false,
    };
    let rebuild = ClusterRebuild {
        node_group: None,
        nodes: Vec::new(),
    };
    let reboot = |reboot_type| {
        Work::from(ClusterReboot {
            reboot_type,
            node_group: None,
            nodes: Vec::new(),
        })
    };
    for (work, capability) in [
        (upgrade.into(), "upgrade"),
        (resize("w", 1, &["server-1"]), "remove_named_nodes"),
        (RotateCaCertificate {}.into(), "rotate_ca"),
        (CredentialRotate {}.into(), "rotate_credential"),
        (rebuild.into(), "rebuild"),
        (reboot(RebootType::Soft), "soft_reboot"),
        (reboot(RebootType::Hard), "hard_reboot"),
    ] {
        assert_eq!(refusal(&work, &[]), Some(Exception::NotSupported), "{capability}");
        assert_eq!(refusal(&work, &[capability]), None, "{capability}");
    }
}

/// Each kind as conductors have written it into journals since their first release: the kind, its steps, and its
/// arguments. A conductor of another release may have to go on with any of it.
#[test]
fn the_texts_and_bytes_in_journals_stay_as_they_are() {
    let group = || "n-1".into();
    let journals: [(Work, &str, &[&str], &[u8]); 12] = [
        (
            ClusterCreate {
                create_timeout: Some(60),
            }
            .into(),
            "cluster_create",
            &["choose_driver", "generate_certificates", "create_cluster"],
            b"\x81\xaecluster_create\x81\xaecreate_timeout<",
        ),
        (
            ClusterUpdate {
                node_group: group(),
                node_count: 3,
                rollback: false,
            }
            .into(),
            "cluster_update",
            &["choose_driver", "update_cluster"],
            b"\x81\xaecluster_update\x83\xaanode_group\xa3n-1\xaanode_count\x03\xa8rollback\xc2",
        ),
        (
            ClusterDelete {}.into(),
            "cluster_delete",
            &["choose_driver", "delete_cluster"],
            b"\x81\xaecluster_delete\x80",
        ),
        (
            ClusterResize {
                node_group: group(),
                node_count: 3,
                nodes_to_remove: vec!["server-1".into()],
            }
            .into(),
            "cluster_resize",
            &["choose_driver", "choose_nodes", "resize_cluster"],
            b"\x81\xaecluster_resize\x83\xaanode_group\xa3n-1\xaanode_count\x03\xafnodes_to_remove\x91\xa8server-1",
        ),
        (
            ClusterUpgrade {
                template: "t-2".into(),
                node_group: group(),
                max_batch_size: None,
                rollback: true,
            }
            .into(),
            "cluster_upgrade",
            &["choose_driver", "upgrade_cluster"],
            b"\x81\xafcluster_upgrade\x84\xa8template\xa3t-2\xaanode_group\xa3n-1\xaemax_batch_size\xc0\xa8rollback\xc3",
        ),
        (
            NodegroupCreate { node_group: group() }.into(),
            "nodegroup_create",
            &["choose_driver", "create_nodegroup"],
            b"\x81\xb0nodegroup_create\x81\xaanode_group\xa3n-1",
        ),
        (
            NodegroupUpdate { node_group: group() }.into(),
            "nodegroup_update",
            &["choose_driver", "update_nodegroup"],
            b"\x81\xb0nodegroup_update\x81\xaanode_group\xa3n-1",
        ),
        (
            NodegroupDelete { node_group: group() }.into(),
            "nodegroup_delete",
            &["choose_driver", "delete_nodegroup"],
            b"\x81\xb0nodegroup_delete\x81\xaanode_group\xa3n-1",
        ),
        (
            RotateCaCertificate {}.into(),
            "rotate_ca_certificate",
            &["choose_driver", "generate_certificates", "rotate_ca"],
            b"\x81\xb5rotate_ca_certificate\x80",
        ),
        (
            CredentialRotate {}.into(),
            "credential_rotate",
            &["choose_driver", "rotate_credential"],
            b"\x81\xb1credential_rotate\x80",
        ),
        (
            ClusterRebuild {
                node_group: None,
                nodes: vec!["server-1".into()],
            }
            .into(),
            "cluster_rebuild",
            &["choose_driver", "rebuild_cluster"],
            b"\x81\xafcluster_rebuild\x82\xaanode_group\xc0\xa5nodes\x91\xa8server-1",
        ),
        (
            ClusterReboot {
                reboot_type: RebootType::Hard,
                node_group: Some(group()),
                nodes: Vec::new(),
            }
            .into(),
            "cluster_reboot",
            &["choose_driver", "reboot_cluster"],
            b"\x81\xaecluster_reboot\x83\xabreboot_type\xa4hard\xaanode_group\xa3n-1\xa5nodes\x90",
        ),
    ];
    assert_eq!(journals.len(), OperationKind::ALL.len(), "every kind");
    for (work, kind, steps, bytes) in journals {
        assert_eq!(work.kind().as_str(), kind);
        let texts: Vec<&str> = work.kind().steps().iter().map(|step| step.as_str()).collect();
        assert_eq!(texts, steps, "{kind}");
        let args = Args::from(work);
        let written = [b"\x83\xa4work", bytes, b"\xa7started\xc0\xaccertificates\xc0"].concat();
        assert_eq!(args.to_bytes().unwrap(), written, "{kind}");
        assert_eq!(Args::from_bytes(&written).unwrap(), args, "{kind}");
    }
}
