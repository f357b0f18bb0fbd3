//! The values of the recorded package: what its conductor gives helm for the same rows, ours gives, too.

use std::path::Path;

use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{Cluster, StringMap};
use magnum_config::{ConfigArgs, Settings};
use magnum_driver_api::EngineOptions;

use super::*;

/// The double's images: id, name, `kube_version`, `os_distro`.
const IMAGES: [(&str, &str, Option<&str>, &str); 5] = [
    (
        "00000001-1111-4111-8111-111111111111",
        "ubuntu-kube-1.33",
        Some("v1.33.4"),
        "ubuntu",
    ),
    (
        "00000002-1111-4111-8111-111111111111",
        "ubuntu-kube-1.34",
        Some("v1.34.1"),
        "ubuntu",
    ),
    (
        "00000003-1111-4111-8111-111111111111",
        "fcos",
        None,
        "fedora-coreos",
    ),
    (
        "00000004-1111-4111-8111-111111111111",
        "flatcar-kube-1.33",
        Some("1.33.4"),
        "flatcar",
    ),
    (
        "00000005-1111-4111-8111-111111111111",
        "ubuntu-plain",
        None,
        "ubuntu",
    ),
];
const PUBLIC: &str = "0000000a-2222-4222-8222-222222222222";
const PRIVATE: &str = "0000000b-2222-4222-8222-222222222222";
const SUBNET: &str = "0000000b-3333-4333-8333-333333333333";
const PROJECT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn recorded() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/plugins/capi-helm.json");
    // The release's random part, which stands there in capitals that no release has.
    let file = std::fs::read_to_string(file).unwrap().replace("RANDOM", "random");
    let mut file: Value = serde_json::from_str(&file).unwrap();
    match file["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("no cases but {other}"),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn labels(value: &Value) -> StringMap {
    let all = value.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.clone(), text(value).unwrap()))
        .collect()
}

fn cluster(given: &Value) -> Cluster {
    let uuid = ClusterUuid::new("c0000000-0000-4000-8000-000000000001");
    let template = TemplateUuid::new("c0000000-0000-4000-8000-000000000002");
    Cluster {
        name: text(&given["name"]),
        project_id: Some(PROJECT.to_owned()),
        user_id: text(&given["user_id"]),
        keypair: text(&given["keypair"]),
        labels: labels(&given["labels"]),
        master_flavor_id: text(&given["master_flavor_id"]),
        ..Cluster::new(uuid, template)
    }
}

fn groups(given: &Value, cluster: &Cluster) -> Vec<NodeGroup> {
    let number = |value: &Value| value.as_i64().map(|number| i32::try_from(number).unwrap());
    let all = given.as_array().unwrap().iter().enumerate();
    all.map(|(at, given)| {
        let uuid = NodeGroupUuid::new(format!("c0000000-0000-4000-8000-0000000001{at:02}"));
        let (name, role) = (text(&given["name"]).unwrap(), text(&given["role"]).unwrap());
        NodeGroup {
            flavor_id: text(&given["flavor_id"]),
            node_count: number(&given["node_count"]).unwrap(),
            min_node_count: number(&given["min_node_count"]).unwrap_or_default(),
            max_node_count: number(&given["max_node_count"]),
            is_default: given["is_default"] == true,
            ..NodeGroup::new(uuid, &name, cluster.uuid.clone(), PROJECT, &role)
        }
    })
    .collect()
}

fn found(case: &Value, template: &ClusterTemplate) -> Found {
    let wanted = template.image_id.as_deref().unwrap();
    let image = IMAGES
        .iter()
        .find(|one| one.0 == wanted || one.1 == wanted)
        .unwrap();
    let id_of = |name: &Value, id: &str| text(name).map(|_| id.to_owned());
    let given = &case["given"]["cluster"];
    Found {
        image: Image {
            id: image.0.to_owned(),
            kube_version: image.2.map(str::to_owned),
            os_distro: Some(image.3.to_owned()),
        },
        external_network: PUBLIC.to_owned(),
        network: id_of(&given["fixed_network"], PRIVATE),
        subnet: id_of(&given["fixed_subnet"], SUBNET),
        volume_types: ["fast_SSD", "slow"].map(str::to_owned).to_vec(),
        keystone: Keystone {
            auth_url: Some("http://cloud.test/identity/v3".to_owned()),
            project: Some(PROJECT.to_owned()),
        },
    }
}

fn settings(case: &Value) -> Settings {
    let lines = case["given"]["options"].as_array().into_iter().flatten();
    let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("magnum.conf");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let args = ConfigArgs {
        files: vec![file],
        dirs: vec![folder.path().to_owned()],
    };
    Settings::load(&args).unwrap().settings
}

/// What ours gives helm, or why it gives it nothing.
fn ours(case: &Value) -> Result<Value, String> {
    let given = &case["given"];
    let mut cluster = cluster(&given["cluster"]);
    cluster.stack_id = case["steps"]
        .as_array()
        .and_then(|steps| steps.iter().find_map(|step| step["helm"]["argv"][1].as_str()))
        .map(str::to_owned);
    let groups = groups(&given["node_groups"], &cluster);
    let mut template = ClusterTemplate::new(cluster.cluster_template_id.clone());
    let of_template = &given["template"];
    template.image_id = text(&of_template["image_id"]);
    template.labels = labels(&of_template["labels"]);
    template.dns_nameserver = text(&of_template["dns_nameserver"]);
    template.network_driver = text(&of_template["network_driver"]);
    let settings = settings(case);
    let options = EngineOptions::new(&settings);
    let choices = Choices {
        helm: &options.section().unwrap(),
        labels: &options.section().unwrap(),
        boot_volume_type: &settings.cinder.default_boot_volume_type,
        boot_volume_size: i64::from(settings.cinder.default_boot_volume_size),
    };
    let rows = Rows {
        named: Named::of(&cluster).unwrap(),
        groups: &groups,
        without: None,
        template: &template,
    };
    values(rows, choices, &found(case, &template)).map_err(|error| error.to_string())
}

/// The places at which two values differ.
fn differing(at: &str, package: &Value, ours: &Value) -> String {
    let (Some(package), Some(ours)) = (package.as_object(), ours.as_object()) else {
        return if package == ours {
            String::new()
        } else {
            format!("{at} is {ours}, the package's {package}; ")
        };
    };
    let names: std::collections::BTreeSet<_> = package.keys().chain(ours.keys()).collect();
    let part =
        |all: &Map<String, Value>, name: &str| all.get(name).cloned().unwrap_or_else(|| json!("missing"));
    names
        .into_iter()
        .map(|name| differing(&format!("{at}.{name}"), &part(package, name), &part(ours, name)))
        .collect()
}

#[test]
fn helm_gets_what_the_package_was_recorded_to_give_it() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for case in recorded() {
        let name = case["name"].as_str().unwrap();
        // What is asked for with a call is put into the rows by whoever calls.
        if !name.starts_with("create/") && !name.starts_with("autoscale/") && !name.starts_with("options/") {
            continue;
        }
        let steps = case["steps"].as_array().unwrap();
        let Some(values) = steps
            .iter()
            .map(|step| &step["helm"]["values"])
            .find(|one| one.is_object())
        else {
            continue;
        };
        compared += 1;
        let mut values = values.clone();
        // The one that we add, in the other spelling.
        let allowed = values["apiServer"]["allowedCidrs"].clone();
        if allowed.is_array() {
            values["apiServer"]["allowedCIDRs"] = allowed;
        }
        match ours(&case) {
            Ok(ours) if ours == values => {}
            Ok(ours) => wrong.push(format!("{name}: {}", differing("", &values, &ours))),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 40, "{compared}");
}
