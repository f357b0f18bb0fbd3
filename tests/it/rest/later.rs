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
];

const NOVA: &str = "flavors and key pairs are looked up in Nova with the caller's token";
const NEUTRON: &str = "networks are looked up in Neutron with the caller's token";

/// What a case waits for.
pub fn reason(case: &str) -> Option<&'static str> {
    LATER
        .iter()
        .find(|(name, _)| super::differences::matches(name, case))
        .map(|(_, reason)| *reason)
}
