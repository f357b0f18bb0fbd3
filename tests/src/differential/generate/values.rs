//! Values: such as a client sends, at a bound, and broken.

use serde_json::{Value, json};

use super::super::request::raw;
use super::super::saved::Saved;
use super::bodies::Attribute;
use super::dice::Dice;
use crate::python_magnum::{NORTH, UBUNTU};

const TEMPLATES: [&str; 5] = [
    "000000c7-0000-4000-8000-000000000001",
    "k8s-1.31",
    "000000c7-0000-4000-8000-000000000002",
    "k8s-1.32-bm",
    "000000c7-0000-4000-8000-000000000003",
];
const CLUSTERS: [&str; 5] = [
    "000000c1-0000-4000-8000-000000000001",
    "000000c1-0000-4000-8000-000000000001",
    "prod",
    "000000c1-0000-4000-8000-000000000002",
    "staging",
];
const GROUPS: [&str; 6] = [
    "default-master",
    "default-worker",
    "gpu",
    "00000096-0000-4000-8000-000000000003",
    "00000096-0000-4000-8000-000000000002",
    "3",
];
/// Labels with which the test's driver fails.
const FAILING: [&str; 4] = [
    "scripted_create",
    "scripted_update",
    "scripted_delete",
    "scripted_create_nodegroup",
];
const CSR: &str = include_str!("../../../fixtures/csr/rsa-2048.pem");
const SOUTH: &str = "22222222222222222222222222222222";
const ODD_IDENTS: [&str; 14] = [
    "000000c1-0000-4000-8000-000000000003",
    "000000c1-0000-4000-8000-000000000004",
    "none",
    "00000000-0000-4000-8000-00000000dead",
    "000000C1-0000-4000-8000-000000000001",
    "1",
    "0",
    "-1",
    "%E2%98%83",
    "a%20b",
    "%63lusters",
    "null",
    "detail",
    "PROD",
];

/// A word of a path.
pub fn ident(template: &str, name: &str, dice: &mut Dice, saved: &Saved) -> String {
    if name == "resource" {
        return (if dice.mistake(4) {
            dice.pick(&["cluster", "Nodes", "detail"])
        } else {
            "Cluster"
        })
        .to_owned();
    }
    if dice.mistake(6) {
        return dice.pick(&ODD_IDENTS).to_owned();
    }
    if saved.count() > 0 && name == "ident" && dice.once_in(2) {
        return Saved::placeholder(dice.below(saved.count()));
    }
    let known: &[&str] = match (name, template) {
        ("group", _) => &GROUPS,
        ("kind", _) => &["kubernetes", "etcd", "front-proxy"],
        ("project", _) => &[NORTH, NORTH, SOUTH, "33333333333333333333333333333333"],
        (_, template) if template.contains("clustertemplates") => &TEMPLATES,
        (_, template) if template.contains("federations") => &["fed", "000000fe-0000-4000-8000-000000000001"],
        _ => &CLUSTERS,
    };
    dice.pick(known).to_owned()
}

/// A good one, or a mistake: at a bound or broken.
pub fn value(attribute: &Attribute, dice: &mut Dice) -> Value {
    if !dice.mistake(3) {
        return good(attribute, dice);
    }
    if dice.once_in(3) {
        broken(dice)
    } else {
        borderline(attribute, dice)
    }
}

fn good(attribute: &Attribute, dice: &mut Dice) -> Value {
    if let Some(value) = by_name(&attribute.name, dice) {
        return value;
    }
    if let Some(choices) = attribute.schema["enum"].as_array()
        && let Some(choice) = dice.one(choices)
    {
        return choice.clone();
    }
    match kind(attribute) {
        "integer" => json!(1 + dice.below(4)),
        "boolean" => json!(dice.once_in(2)),
        "object" => json!({"key": "value"}),
        "array" => json!([]),
        _ => json!(dice.pick(&["some", "text", "a-b_c.d"])),
    }
}

fn by_name(name: &str, dice: &mut Dice) -> Option<Value> {
    let one = |dice: &mut Dice, of: &[&str]| Some(json!(dice.pick(of)));
    match name {
        "cluster_template_id" | "cluster_template" => one(dice, &TEMPLATES),
        "hostcluster_id" | "cluster_uuid" | "member_ids" => one(dice, &CLUSTERS),
        "nodegroup" => one(dice, &GROUPS),
        "csr" => one(dice, &[CSR]),
        "max_batch_size" => Some(json!(1)),
        "image_id" => one(dice, &[UBUNTU, "ubuntu-24.04", "ubuntu-26.04"]),
        "flavor_id" | "master_flavor_id" => one(dice, &["m1.small", "m1.large", "m1.medium", "1"]),
        "keypair" | "keypair_id" => one(dice, &["key", "default-key"]),
        "external_network_id" => one(dice, &["public", "6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b01"]),
        "fixed_network" => one(dice, &["private", "inner"]),
        "fixed_subnet" => one(dice, &["private-subnet", "6f1c34ab-2a0f-4c5e-8a9e-0f6c7a1d2b04"]),
        "dns_nameserver" => one(dice, &["8.8.8.8", "8.8.8.8,1.1.1.1"]),
        "network_driver" => one(dice, &["calico", "flannel"]),
        "server_type" => one(dice, &["vm", "bm"]),
        "volume_driver" => one(dice, &["cinder"]),
        "docker_storage_driver" => one(dice, &["overlay2", "overlay"]),
        "coe" => one(dice, &["kubernetes"]),
        "project_id" => one(dice, &[NORTH, SOUTH, "33333333333333333333333333333333"]),
        "resource" => one(dice, &["Cluster"]),
        "id" => Some(json!(1000 + dice.below(1000))),
        "uuid" | "cluster_id" => one(dice, &["000000aa-0000-4000-8000-000000000001"]),
        "discovery_url" => one(dice, &["https://discovery.example/1"]),
        "apiserver_port" => Some(json!(1024 + dice.below(60000))),
        // A driver does with a cluster what its labels say.
        "labels" if dice.once_in(5) => Some(json!({dice.pick(&FAILING): "permanent"})),
        "labels" => {
            Some(json!({dice.pick(&["kube_tag", "boot_volume_size", "etcd_volume_size"]): label(dice)}))
        }
        "node_labels" => Some(json!({"a": "b"})),
        "node_taints" => Some(json!([{"key": "a", "value": "b", "effect": "NoSchedule"}])),
        "nodes_to_remove" => Some(json!(["a"])),
        "health_status_reason" => Some(json!({"api": "ok"})),
        _ => None,
    }
}

/// What a label may be.
pub fn label(dice: &mut Dice) -> Value {
    if !dice.mistake(3) {
        return json!(dice.pick(&["20", "v1.31.4", "5", "true"]));
    }
    match dice.below(6) {
        0 => json!(5),
        1 => json!(true),
        2 => raw(dice.pick(&[
            "18446744073709551616",
            "9007199254740993.0",
            "1e-7",
            "1e-5",
            "-0",
            "0.1",
            "1E3",
            "100000000000000000000000",
        ])),
        3 => broken(dice),
        4 => json!("zażółć 雲 🚀"),
        _ => json!(dice.pick(&["0", ""])),
    }
}

fn borderline(attribute: &Attribute, dice: &mut Dice) -> Value {
    if let Some(choices) = attribute.schema["enum"].as_array()
        && let Some(Value::String(choice)) = dice.one(choices)
    {
        return match dice.below(4) {
            0 => json!(choice.to_lowercase()),
            1 => json!(format!("{choice} ")),
            2 => json!({choice: 1}),
            _ => json!(choice.to_uppercase()),
        };
    }
    match kind(attribute) {
        "integer" => match dice.below(4) {
            0 => json!(dice.pick(&["1", "-1", "0", " 5 ", "+5", "1_0", "0x10", "1.0", "", "007", "٣"])),
            1 => raw(dice.pick(&[
                "2147483647",
                "2147483648",
                "1e3",
                "1.0",
                "-0",
                "1e999",
                "99999999999999999999",
            ])),
            2 => [json!(0), json!(-1), json!(1.5), json!(true)][dice.below(4)].clone(),
            _ => [json!(1023), json!(1024), json!(65535), json!(65536)][dice.below(4)].clone(),
        },
        "boolean" => match dice.below(3) {
            0 => [json!(-1), json!(0), json!(1), json!(2)][dice.below(4)].clone(),
            _ => json!(dice.pick(&[
                "true", "FALSE", "yes", "no", "on", "off", "1", "0", "t", "maybe", "", " true"
            ])),
        },
        "object" => match dice.below(3) {
            0 => json!(dice.pick(&[
                "{'a': 'b'}",
                "{'a': 1}",
                "{\"a\": true}",
                "{u'a': 'b'}",
                "{'a': '\\q'}",
                "{'a': None}",
                "{b'a': b'b'}",
                "a=b",
                "{",
                "{'a': 0x10}",
                "{'a': 1_0}",
                "{'a': 007}",
                "{'a': '\\101\\x41\\u0041'}",
                "{1: 2}",
                "{}",
                "[]",
            ])),
            1 => json!({"a": label(dice)}),
            _ => json!({"a": label(dice), "": "empty", "a/b": "slash"}),
        },
        "array" => match dice.below(3) {
            0 => json!(dice.pick(&["a", "['a', 'b']", "[]"])),
            1 => json!([broken(dice)]),
            _ => json!([{"key": "a", "effect": dice.pick(&["NoExecute", "none", ""])}]),
        },
        _ => json!(odd_text(dice)),
    }
}

fn odd_text(dice: &mut Dice) -> String {
    match dice.below(9) {
        0 => "x".repeat([255, 256, 242, 243, 65][dice.below(5)]),
        1 => "雲".repeat([85, 255, 256][dice.below(3)]),
        _ => dice
            .pick(&[
                "",
                " ",
                "none",
                "-a",
                "9a",
                "a b",
                "a/b",
                "żółć",
                "🚀",
                "a\nb",
                "a\u{0}b",
                "'",
                "\"",
                "%",
                "<b>",
                "null",
                "1",
                "8.8.8.8,",
                "8.8.8",
                "8.8.8.8, 1.1.1.1",
                "1.1.1.1;2.2.2.2",
                "::1",
                "http://a b",
                "kubernetes ",
                "swarm",
                "VM",
                "devicemapper",
                "master",
                "worker",
            ])
            .to_owned(),
    }
}

/// Anything.
pub fn broken(dice: &mut Dice) -> Value {
    match dice.below(14) {
        0 | 1 => Value::Null,
        2 => json!(""),
        3 => json!([]),
        4 => json!({}),
        5 => json!(0),
        6 => json!(-1),
        7 => json!(true),
        8 => json!(1.5),
        9 => json!(["a"]),
        10 => json!({"a": {"b": [null]}}),
        11 => json!([null]),
        12 => raw(dice.pick(&[
            "1e308",
            "1e999",
            "-1e999",
            "123456789012345678901234567890",
            "NaN",
            "0.30000000000000004",
        ])),
        _ => json!(odd_text(dice)),
    }
}

fn kind(attribute: &Attribute) -> &str {
    let kind = &attribute.schema["type"];
    kind.as_str()
        .or_else(|| {
            kind.as_array()?
                .iter()
                .find_map(|one| one.as_str().filter(|one| *one != "null"))
        })
        .unwrap_or("string")
}

/// What clients send along with what is needed.
pub fn usual_companions(attributes: &[Attribute]) -> Vec<(&'static str, Value)> {
    let has = |name: &str| attributes.iter().any(|attribute| attribute.name == name);
    let mut found = Vec::new();
    if has("coe") && has("image_id") {
        found.extend([
            ("name", json!("made")),
            ("coe", json!("kubernetes")),
            ("flavor_id", json!("m1.small")),
            ("master_flavor_id", json!("m1.small")),
            ("external_network_id", json!("public")),
        ]);
    } else if has("max_batch_size") {
        found.push(("max_batch_size", json!(1)));
    } else if has("cluster_template_id") {
        found.extend([("keypair", json!("key")), ("name", json!("made"))]);
    }
    found
}

/// An attribute for a patch, those that can be changed more often.
pub fn changeable<'a>(attributes: &'a [Attribute], dice: &mut Dice) -> Option<&'a Attribute> {
    let weight = |attribute: &Attribute| match attribute.name.as_str() {
        "node_count"
        | "labels"
        | "name"
        | "min_node_count"
        | "max_node_count"
        | "node_labels"
        | "node_taints"
        | "health_status"
        | "health_status_reason" => 4,
        _ => 1,
    };
    dice.weighted(attributes, weight)
}

/// A value for an argument of a query.
pub fn argument(argument: &Attribute, dice: &mut Dice) -> String {
    let (good, odd): (&[&str], &[&str]) = match argument.name.as_str() {
        "marker" => (
            &[
                "000000c1-0000-4000-8000-000000000001",
                "000000c7-0000-4000-8000-000000000001",
                "1",
            ],
            &["0", "prod", "none", "", "99"],
        ),
        "limit" => (
            &["1", "2", "1000"],
            &["0", "-1", "x", "", "1.0", "99999999999999999999"],
        ),
        "sort_key" => (
            &["id", "name", "uuid", "created_at"],
            &[
                "node_count",
                "unknown",
                "",
                "links",
                "labels",
                "cluster_template_id",
                "status",
                "NAME",
            ],
        ),
        "sort_dir" => (&["asc", "desc"], &["ASC", "", "up", "asc-nullsfirst"]),
        "all_tenants" | "rollback" => (&["true", "True", "1", "false"], &["yes", "maybe", "", "2"]),
        "role" => (&["worker", "master", "gpu"], &["", "none"]),
        "project_id" => (&[NORTH, SOUTH], &["none", ""]),
        "ca_cert_type" => (&["kubernetes", "etcd", "front-proxy"], &["", "none"]),
        "type" => (&["cluster"], &["statistics", ""]),
        _ => (&["1"], &["true", "x", ""]),
    };
    let values = if dice.mistake(4) { odd } else { good };
    dice.pick(values).to_owned()
}

/// One that another route has, or a path's word.
pub fn other_argument(dice: &mut Dice) -> (String, String) {
    let name = dice.pick(&[
        "limit",
        "project_id",
        "sort_dir",
        "all_tenants",
        "ident",
        "name",
        "",
    ]);
    (name.to_owned(), dice.pick(&["1", "prod", NORTH, ""]).to_owned())
}

/// A version that is none, or that we alone have.
pub fn odd_version(dice: &mut Dice) -> String {
    dice.pick(&[
        "latest", "LATEST", "1.0", "1.17", "2.0", "1", "x", "1.1.1", "1.01", "", "-1.5",
    ])
    .to_owned()
}

pub fn accept(dice: &mut Dice) -> Option<&'static str> {
    match dice.pick(&[
        "",
        "*/*",
        "text/html",
        "application/json;q=0.5",
        "text/plain, */*",
        "x",
    ]) {
        "" => None,
        kind => Some(kind),
    }
}

pub fn content_type(dice: &mut Dice) -> Option<&'static str> {
    match dice.pick(&[
        "",
        "text/plain",
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
        "application/json-patch+json",
    ]) {
        "" => None,
        kind => Some(kind),
    }
}

pub fn broken_body(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "",
        " ",
        "{",
        "[]",
        "null",
        "{}",
        "{\"name\": }",
        "{\"name\": \"a\", \"name\": \"b\"}",
        "\u{feff}{}",
        "'",
        "{\"a\": 'b'}",
        "0",
        "\"\"",
    ])
}
