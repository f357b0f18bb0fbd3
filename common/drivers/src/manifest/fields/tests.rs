//! Every kind of mistake, with its line and words.

use std::time::Duration;

use super::*;
use crate::manifest::{ExecSpec, HealthSource};

const GOOD: &str = r#"[driver]
name = "disk"
version = "1.2.0"
engine = "exec"
beta = true
description = "Builds clusters as folders"

[[provides]]
server_type = "vm"
os = "ubuntu"
coe = "kubernetes"

[[provides]]
server_type = "bm"
os = "ubuntu"
coe = "kubernetes"

[capabilities]
upgrade = true
rotate_ca = false

[masters]
sizes = "any"

[exec]
program = "driver.py"
timeout = 10
observe_timeout = 5
observe_batch = 200
env = ["PATH", "HOME"]

[settings]
root = "/srv"
since = 2026-01-02
sizes = [1, 2.5, true]
"#;

/// The mistakes after replacing `from` by `to` in a good manifest.
fn told(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "{from}");
    let reading = read(&GOOD.replacen(from, to, 1));
    assert!(reading.manifest.is_none(), "{to}");
    reading.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_manifest_is_read() {
    let manifest = Manifest::parse(GOOD).unwrap();
    assert_eq!(manifest.info.to_string(), "disk 1.2.0");
    assert!(manifest.info.beta);
    assert_eq!(manifest.info.capabilities.present(), ["upgrade"]);
    assert_eq!(manifest.info.master_size, MasterSizeRule::Any);
    assert_eq!(
        manifest.info.cluster_types,
        [
            ClusterType::new("vm", "ubuntu", "kubernetes"),
            ClusterType::new("bm", "ubuntu", "kubernetes")
        ]
    );
    assert_eq!(
        manifest.engine,
        EngineSpec::Exec(ExecSpec {
            program: "driver.py".into(),
            timeout: Duration::from_secs(10),
            observe_timeout: Duration::from_secs(5),
            observe_batch: Some(200),
            env: vec!["PATH".into(), "HOME".into()],
            ca_files: false,
            run_as: None,
            health: HealthSource::Program,
        })
    );
    assert_eq!(
        Value::Object(manifest.settings),
        serde_json::json!({"root": "/srv", "since": "2026-01-02", "sizes": [1, 2.5, true]})
    );
}

#[test]
fn omitted_manifest_fields_have_defaults() {
    let manifest = Manifest::parse(
        "[driver]\nname='d'\nversion='0.1.0'\nengine='exec'\n[[provides]]\nserver_type='vm'\nos='u'\n\
         coe='kubernetes'\n[exec]\nprogram='p'\n",
    )
    .unwrap();
    assert!(!manifest.info.beta);
    assert_eq!(manifest.info.master_size, MasterSizeRule::Odd);
    let EngineSpec::Exec(exec) = manifest.engine else {
        panic!("exec");
    };
    assert_eq!(
        (exec.timeout, exec.observe_timeout),
        (Duration::from_secs(3600), Duration::from_secs(60))
    );
    assert_eq!(exec.observe_batch, None);
    assert!(exec.env.is_empty());
}

#[test]
fn ca_files_is_off_unless_the_manifest_sets_it() {
    let unset = Manifest::parse(GOOD).unwrap();
    assert!(matches!(unset.engine, EngineSpec::Exec(exec) if !exec.ca_files));
    let manifest = Manifest::parse(&GOOD.replace("observe_batch = 200", "ca_files = true")).unwrap();
    assert!(matches!(manifest.engine, EngineSpec::Exec(exec) if exec.ca_files));
}

#[test]
fn run_as_names_a_user() {
    let manifest = Manifest::parse(&GOOD.replace("observe_batch = 200", "run_as = \"x\"")).unwrap();
    assert!(matches!(manifest.engine, EngineSpec::Exec(exec) if exec.run_as.as_deref() == Some("x")));
}

#[test]
fn health_is_by_program_or_by_kubernetes() {
    let with = |line: &str| {
        let text = GOOD.replace("observe_batch = 200", line);
        let capable = text.replace("[capabilities]", "[capabilities]\nhealth = true");
        (Manifest::parse(&capable), Manifest::parse(&text))
    };
    let (manifest, without) = with("health = \"kubernetes\"");
    assert!(
        matches!(manifest.unwrap().engine, EngineSpec::Exec(exec) if exec.health == HealthSource::Kubernetes)
    );
    let problems = without.unwrap_err();
    assert!(
        problems[0].message.contains("health = true in [capabilities]"),
        "{problems:?}"
    );
    let problems = with("health = \"nagios\"").0.unwrap_err();
    assert!(
        problems[0].message.contains("use program or kubernetes"),
        "{problems:?}"
    );
}

#[test]
fn settings_of_other_engines_are_handed_on() {
    let text = GOOD.replace("\"exec\"", "\"heat\"");
    let (base, _) = text.split_once("[exec]").unwrap();
    let manifest = Manifest::parse(&format!("{base}[heat]\ntemplate = \"k8s.yaml\"\n")).unwrap();
    let EngineSpec::Heat(settings) = &manifest.engine else {
        panic!("heat");
    };
    assert_eq!(settings["template"].as_str(), Some("k8s.yaml"));
    assert_eq!(manifest.engine.name(), "heat");
}

#[test]
fn each_mistake_is_reported_with_its_line() {
    for (from, to, message) in [
        (
            "beta = true",
            "betta = true",
            "driver.toml:5: unknown key 'betta' in [driver], use: name, version, engine, beta, description",
        ),
        (
            "[masters]",
            "[master]",
            "driver.toml:22: unknown key 'master' in the file, use: driver, provides, capabilities, masters, api, \
             settings, exec, heat, cluster-api, python",
        ),
        (
            "upgrade = true",
            "upgrades = true",
            "driver.toml:19: unknown key 'upgrades' in [capabilities], use: resize_masters, \
             remove_named_nodes, upgrade, rotate_ca, rotate_credential, rebuild, soft_reboot, hard_reboot, health, \
             scale, node_names, monitor",
        ),
        (
            "rotate_ca = false",
            "scale = true",
            "driver.toml:20: 'scale' in [capabilities] needs 'remove_named_nodes', too: the nodes that the driver \
             chooses are given back to it by their names",
        ),
        (
            "rotate_ca = false",
            "node_names = true",
            "driver.toml:20: 'node_names' in [capabilities] needs 'remove_named_nodes', too: the names are those that \
             a resize may give to the driver",
        ),
        (
            "beta = true",
            "beta = \"yes\"",
            "driver.toml:5: 'beta' in [driver] must be true or false, not a string",
        ),
        (
            "upgrade = true",
            "upgrade = 1",
            "driver.toml:19: 'upgrade' in [capabilities] must be true or false, not an integer",
        ),
        (
            "name = \"disk\"",
            "name = 5",
            "driver.toml:2: 'name' in [driver] must be a string, not an integer",
        ),
        (
            "name = \"disk\"",
            "name = \"My Disk\"",
            "driver.toml:2: 'My Disk' is not a driver name: use 1 to 255 of a-z, 0-9, '_' and '-'",
        ),
        (
            "name = \"disk\"",
            "name = \"\"",
            "driver.toml:2: '' is not a driver name: use 1 to 255 of a-z, 0-9, '_' and '-'",
        ),
        (
            "version = \"1.2.0\"",
            "version = \"1.2\"",
            "driver.toml:3: '1.2' is not a version: use MAJOR.MINOR.PATCH as in 1.0.0 (semver.org), at most \
             64 characters",
        ),
        (
            "name = \"disk\"\n",
            "",
            "driver.toml:1: 'name' is missing in [driver], for example: name = \"disk\"",
        ),
        (
            "engine = \"exec\"",
            "engine = \"magic\"",
            "driver.toml:4: 'magic' is not an engine: use exec, heat, cluster-api, python",
        ),
        (
            "engine = \"exec\"",
            "engine = \"heat\"",
            "driver.toml:25: section [exec] has no meaning for a driver with the engine 'heat'",
        ),
        (
            "server_type = \"bm\"",
            "server_type = \"vm\"",
            "driver.toml:13: the cluster type (vm, ubuntu, kubernetes) is provided twice: remove one",
        ),
        (
            "server_type = \"vm\"",
            "server_type = \"VM\"",
            "driver.toml:9: 'VM' is not a value of 'server_type': use vm or bm",
        ),
        (
            "os = \"ubuntu\"",
            "os = \"\"",
            "driver.toml:10: '' is not a value of 'os': use one word",
        ),
        (
            "coe = \"kubernetes\"\n",
            "",
            "driver.toml:8: 'coe' is missing in [[provides]], for example: coe = \"kubernetes\"",
        ),
        (
            "sizes = \"any\"",
            "sizes = \"even\"",
            "driver.toml:23: 'even' is not a rule for master sizes: use odd or any",
        ),
        (
            "program = \"driver.py\"\n",
            "",
            "driver.toml:25: 'program' is missing in [exec], for example: program = \"driver.py\"",
        ),
        (
            "timeout = 10",
            "timeout = 0",
            "driver.toml:27: 'timeout' in [exec] must be 1 second or more",
        ),
        (
            "observe_batch = 200",
            "observe_batch = 0",
            "driver.toml:29: 'observe_batch' in [exec] must be 1 cluster or more",
        ),
        (
            "timeout = 10",
            "timeout = \"10s\"",
            "driver.toml:27: 'timeout' in [exec] must be a whole number of seconds, not a string",
        ),
        (
            "env = [\"PATH\", \"HOME\"]",
            "env = \"PATH\"",
            "driver.toml:30: 'env' in [exec] must be a list of strings, not a string",
        ),
        (
            "[settings]",
            "[[settings]]",
            "driver.toml:32: 'settings' in the file must be a section [settings], not an array",
        ),
        (
            "env = [\"PATH\", \"HOME\"]",
            "env = [\"A=B\"]",
            "driver.toml:30: 'A=B' is not the name of an environment variable",
        ),
    ] {
        assert_eq!(told(from, to), [message], "{to}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_by_line() {
    let text = "[driver]\nname = \"Bad Name\"\nversion = \"one\"\nengine = \"exec\"\ncolour = \"blue\"\n\
                [[provides]]\nserver_type = \"vm\"\nos = 7\n";
    let lines: Vec<_> = read(text).problems.iter().map(|problem| problem.line).collect();
    assert_eq!(
        lines,
        [Some(1), Some(2), Some(3), Some(5), Some(6), Some(8)],
        "no [exec], name, version, colour, no coe, os"
    );
}

#[test]
fn empty_manifest_names_the_required_fields() {
    let problems = read("").problems;
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "driver.toml:1: 'driver' is missing in the file, for example: [driver] with name, version and engine",
            "driver.toml:1: 'provides' is missing in the file, for example: [[provides]] with server_type = \
             \"vm\", os = \"ubuntu\", coe = \"kubernetes\"",
        ]
    );
}

#[test]
fn broken_toml_is_reported_with_its_line() {
    let problems = read("[driver]\nname = disk\n").problems;
    assert_eq!(problems[0].line, Some(1), "what is missing in [driver]");
    let broken = problems
        .iter()
        .find(|problem| problem.message.contains("not TOML"))
        .unwrap();
    assert_eq!(broken.line, Some(2));
}

#[test]
fn garbage_never_panics() {
    for text in [
        "\u{0}",
        "[[driver]]",
        "driver = 1",
        "provides = 1",
        "provides = [1]",
        "[exec",
        "a.b.c = {",
    ] {
        assert!(read(text).manifest.is_none(), "{text}");
    }
}
