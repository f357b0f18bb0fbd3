//! Crates are walls: which crate may list which is a table here, and Cargo keeps it.

use super::sources::files;

/// Which crates a crate of ours may list: the walls that Cargo then keeps. A crate that is not here fails the test.
/// `tests` and `deploy/dev` may list any.
pub(super) const MAY_LIST: &[(&str, &[&str])] = &[
    ("common", &[]),
    ("common/tls", &[]),
    ("common/config", &["magnum-common"]),
    ("common/telemetry", &["magnum-config"]),
    ("common/objects", &["magnum-common"]),
    (
        "common/otlp",
        &["magnum-common", "magnum-config", "magnum-telemetry"],
    ),
    ("common/drivers", &["magnum-common", "magnum-config"]),
    (
        "common/rpc",
        &["magnum-common", "magnum-config", "magnum-telemetry", "magnum-tls"],
    ),
    (
        "common/openstack",
        &["magnum-common", "magnum-config", "magnum-tls"],
    ),
    ("common/db", &["magnum-common", "magnum-config", "magnum-drivers"]),
    ("common/service", &[]),
    ("conductor", BELOW_THE_CONDUCTOR),
    (
        "conductor/driver-api",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-drivers",
            "magnum-openstack",
        ],
    ),
    (
        "conductor/engines/exec",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-driver-api",
            "magnum-drivers",
            "magnum-engine-process",
            "magnum-kubernetes",
            "magnum-telemetry",
        ],
    ),
    (
        "conductor/engines/cluster-api",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-driver-api",
            "magnum-drivers",
            "magnum-engine-process",
            "magnum-management-cluster",
            "magnum-openstack",
            "magnum-telemetry",
        ],
    ),
    ("conductor/engines/process", &["magnum-driver-api"]),
    (
        "conductor/engines/python",
        &[
            "magnum-common",
            "magnum-config",
            "magnum-driver-api",
            "magnum-drivers",
            "magnum-engine-process",
            "magnum-objects",
            "magnum-telemetry",
        ],
    ),
    ("conductor/kubernetes", &["magnum-common", "magnum-driver-api"]),
    ("conductor/management-cluster", &["magnum-common"]),
    ("conductor/x509", &["magnum-common", "magnum-config"]),
    (
        "conductor/rpc-server",
        &["magnum-common", "magnum-rpc", "magnum-telemetry"],
    ),
    ("api-shim", BELOW_THE_API),
    (
        "api-shim/rpc-client",
        &["magnum-common", "magnum-rpc", "magnum-telemetry"],
    ),
    ("deploy/dev", ANY),
    ("tests", ANY),
    ("tests/fuzz", ANY),
];

/// What the API is made of.
const BELOW_THE_API: &[&str] = &[
    "magnum-common",
    "magnum-config",
    "magnum-db",
    "magnum-drivers",
    "magnum-objects",
    "magnum-openstack",
    "magnum-otlp",
    "magnum-rpc",
    "magnum-rpc-client",
    "magnum-service",
    "magnum-telemetry",
    "magnum-tls",
];

/// What the conductor is made of.
const BELOW_THE_CONDUCTOR: &[&str] = &[
    "magnum-common",
    "magnum-config",
    "magnum-db",
    "magnum-driver-api",
    "magnum-drivers",
    "magnum-engine-cluster-api",
    "magnum-engine-exec",
    "magnum-engine-process",
    "magnum-engine-python",
    "magnum-management-cluster",
    "magnum-objects",
    "magnum-openstack",
    "magnum-otlp",
    "magnum-rpc",
    "magnum-rpc-server",
    "magnum-service",
    "magnum-telemetry",
    "magnum-x509",
];

/// Every crate of ours.
const ANY: &[&str] = &["magnum-"];

/// Crates of others that only these of ours may list.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("async-compat", &["common/rpc"]),
    ("lapin", &["common/rpc", "conductor/rpc-server", "tests"]),
    ("backoff", &["common"]),
    ("diesel", &["common/db", "conductor", "tests"]),
    ("diesel_migrations", &["common/db"]),
    ("r2d2", &["common/db"]),
];

/// The names under `[dependencies]` and `[dev-dependencies]` of a manifest.
fn listed(manifest: &str) -> Vec<&str> {
    let mut listed = Vec::new();
    let mut is_dependency = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency = line.ends_with("dependencies]") && !line.starts_with("[workspace");
        } else if is_dependency && let Some((name, _)) = line.split_once([' ', '.', '=']) {
            listed.push(name);
        }
    }
    listed
}

#[test]
fn crates_depend_only_on_crates_allowed_by_their_layer() {
    let mut wrong = Vec::new();
    for manifest in files(&["Cargo.toml"]) {
        let place = manifest.path.trim_end_matches("/Cargo.toml");
        if place == "Cargo.toml" {
            continue;
        }
        let Some((_, allowed)) = MAY_LIST.iter().find(|(known, _)| *known == place) else {
            wrong.push(format!(
                "{place}: which crates of ours may it list? Say so in MAY_LIST"
            ));
            continue;
        };
        for name in listed(&manifest.text) {
            let is_ours = name.starts_with("magnum-");
            let is_allowed = allowed.contains(&name) || *allowed == ANY;
            let is_elsewhere = ONLY_IN
                .iter()
                .any(|(only, places)| *only == name && !places.contains(&place));
            if (is_ours && !is_allowed) || is_elsewhere {
                wrong.push(format!("{place} may not list {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "walls:\n  {}", wrong.join("\n  "));
}
