//! Cases that need what does not exist yet.

/// Name (a `*` at the end stands for any rest) and what it waits for.
pub const LATER: &[(&str, &str)] = &[
    // Nova and Neutron are asked when Keystone comes.
    ("clustertemplates/create-master-flavor-missing/post", NOVA),
    ("clustertemplates/create-external-missing/post", NEUTRON),
    ("clustertemplates/create-external-private/post", NEUTRON),
    ("clustertemplates/create-fixed-missing/post", NEUTRON),
    ("clustertemplates/create-subnet-missing/post", NEUTRON),
    ("clustertemplates_patch/flavor-missing/*", NOVA),
    ("clusters/create-keypair-missing/post", NOVA),
    ("clusters/create-master-flavor-missing/post", NOVA),
    ("clusters/create-fixed-missing/post", NEUTRON),
    ("clusters/create-subnet-missing/post", NEUTRON),
    // Routes of a later issue.
    ("clusters/create-minimal/ngs", NODE_GROUPS),
    ("clusters/create-minimal/ng", NODE_GROUPS),
    ("clusters/create-full/master-ng", NODE_GROUPS),
    ("clusters/create-min-node-count-label/ng", NODE_GROUPS),
    ("clusters/create-driver-fails/ngs", NODE_GROUPS),
    ("clusters_patch/effect-node-count/ng", NODE_GROUPS),
    ("clusters_patch/effect-driver-fails/ng", NODE_GROUPS),
    // What a driver has done is shown by a conductor with that driver.
    ("clusters/create-minimal/get", CONDUCTOR),
    ("clusters/create-full/get", CONDUCTOR),
    ("clusters/create-full/get-1.12", CONDUCTOR),
    ("clusters/create-labels-no-merge/get", CONDUCTOR),
    ("clusters/create-labels-merge/get", CONDUCTOR),
    ("clusters/create-driver-fails/get", CONDUCTOR),
    ("clusters/create-driver-fails/list", CONDUCTOR),
    ("clusters/create-node-count-0/get", CONDUCTOR),
    ("clusters/delete/after", CONDUCTOR),
    ("clusters/delete-by-name/after", CONDUCTOR),
    ("clusters/delete-root/after", CONDUCTOR),
    ("clusters/delete-driver-fails/after", CONDUCTOR),
    ("clusters_patch/effect-node-count/after", CONDUCTOR),
    ("clusters_patch/effect-health/after", CONDUCTOR),
    ("clusters_patch/effect-driver-fails/after", CONDUCTOR),
    ("driver_resolution/fallback-alphabetical/cluster-get", CONDUCTOR),
    ("driver_resolution/user-given/cluster-get", CONDUCTOR),
    ("driver_resolution/user-disabled/cluster-get", REFUSED),
    ("driver_resolution/user-beta-and-disabled/cluster-get", REFUSED),
    ("driver_resolution/user-alpha-explicit/cluster-get", CONDUCTOR),
    ("driver_resolution/default-driver/cluster-get", CONDUCTOR),
    ("driver_resolution/beta-enabled-named/cluster-get", CONDUCTOR),
    ("driver_resolution/beta-enabled-image/cluster-get", CONDUCTOR),
    ("driver_resolution/old-template-without-driver/get", CONDUCTOR),
    ("driver_resolution/old-template-empty-driver/get", CONDUCTOR),
];

const NOVA: &str = "flavors and key pairs are looked up in Nova with the caller's token";
const NEUTRON: &str = "networks are looked up in Neutron with the caller's token";
const NODE_GROUPS: &str = "the routes of node groups";
const REFUSED: &str = "nothing: its template is refused here (docs/differences.md), so there is no cluster";
const CONDUCTOR: &str = "a conductor with the recording's drivers";

/// What a case waits for.
pub fn reason(case: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(name, _)| super::differences::matches(name, case))
        .map(|(_, reason)| *reason)
}
