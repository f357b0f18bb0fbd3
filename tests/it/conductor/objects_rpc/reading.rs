//! Every class method that reads: asked of Magnum's classes directly and through our conductor, by position and by
//! name, by a member of either project, by an administrator who asks for all tenants or does not, and by a user
//! without a project.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use magnum_conductor::objects_rpc::methods::CLASSES;
use magnum_tests::Backend;
use serde_json::{Map, Value, json};

use super::{NORTH, Outcome, SOUTH, World, admin, chosen, differences, member};

const TEMPLATE: u8 = 1;
const CLUSTER: u8 = 2;
const GROUP: u8 = 3;
const PAIR: u8 = 4;
const FEDERATION: u8 = 5;

/// One question.
struct Case {
    class: &'static str,
    method: &'static str,
    args: Vec<(&'static str, Value)>,
    answers: Answers,
}

/// How our answer compares with that of the class that reads the database itself.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    /// The same, exceptions included.
    Alike,
    /// Magnum's class fails, ours answers: `docs/differences.md`.
    OursWorks,
    /// Both fail, ours with this exception: `docs/differences.md`.
    OursSays(&'static str),
    /// Both answer, each in its own way: `docs/differences.md`.
    Differently,
}
use Answers::{Alike, Differently, OursSays, OursWorks};

fn case(class: &'static str, method: &'static str, args: Vec<(&'static str, Value)>) -> Case {
    Case {
        class,
        method,
        args,
        answers: Alike,
    }
}

fn but(answers: Answers, mut case: Case) -> Case {
    case.answers = answers;
    case
}

fn clusters() -> Vec<Case> {
    let mut cases = vec![
        case("Cluster", "get", vec![("cluster_id", json!(chosen(CLUSTER, 1)))]),
        case("Cluster", "get", vec![("cluster_id", json!(1))]),
        case("Cluster", "get", vec![("cluster_id", json!("1"))]),
        case("Cluster", "get", vec![("cluster_id", json!("alpha"))]),
        case("Cluster", "get_by_id", vec![("cluster_id", json!(3))]),
        case("Cluster", "get_by_id", vec![("cluster_id", json!(99))]),
        case(
            "Cluster",
            "get_by_uuid",
            vec![("uuid", json!(chosen(CLUSTER, 1)))],
        ),
        case(
            "Cluster",
            "get_by_uuid",
            vec![("uuid", json!(chosen(CLUSTER, 3)))],
        ),
        case(
            "Cluster",
            "get_by_uuid",
            vec![("uuid", json!(chosen(CLUSTER, 99)))],
        ),
        case("Cluster", "get_by_name", vec![("name", json!("alpha"))]),
        case("Cluster", "get_by_name", vec![("name", json!("twin"))]),
        case("Cluster", "get_by_name", vec![("name", json!("nobody"))]),
        case("Cluster", "get_stats", vec![]),
        but(
            Differently,
            case("Cluster", "get_stats", vec![("project_id", json!(SOUTH))]),
        ),
    ];
    for filters in [
        json!(null),
        json!({"name": "twin"}),
        json!({"name": null}),
        json!({"status": ["CREATE_COMPLETE", "UPDATE_FAILED"]}),
        json!({"status": ["NO_SUCH_STATUS"]}),
        json!({"status": []}),
        json!({"project_id": SOUTH, "user_id": "user-of-2"}),
        json!({"cluster_template_id": chosen(TEMPLATE, 2), "stack_id": "stack-3"}),
        json!({"api_address": "https://192.0.2.1:6443"}),
        json!({"node_count": 5}),
        json!({"master_count": 3, "node_count": 2}),
        json!({"colour": "red"}),
    ] {
        cases.push(case(
            "Cluster",
            "get_count_all",
            vec![("filters", filters.clone())],
        ));
        cases.push(case("Cluster", "list", vec![("filters", filters)]));
    }
    let old = json!({"node_addresses": "x"});
    let invalid = OursSays("magnum.common.exception.InvalidParameterValue");
    cases.push(but(invalid, case("Cluster", "list", vec![("filters", old)])));
    cases.extend(pages(
        "Cluster",
        &["name", "status", "id", "stack_id", "created_at", "coe"],
    ));
    cases
}

/// Columns in which some rows have no value.
const HAVE_NULLS: &[(&str, &str)] = &[("Cluster", "name"), ("ClusterTemplate", "driver")];

/// Pages of a list, in both directions, and wrong ones. The marker is what `get_by_id` gave for the second row.
fn pages(class: &'static str, keys: &[&'static str]) -> Vec<Case> {
    let mut cases = vec![
        case(class, "list", vec![]),
        case(class, "list", vec![("limit", json!(0))]),
        case(
            class,
            "list",
            vec![
                ("limit", json!(2)),
                ("marker", json!(null)),
                ("sort_key", json!(null)),
                ("sort_dir", json!(null)),
            ],
        ),
        case(
            class,
            "list",
            vec![("limit", json!(2)), ("marker", json!({"$": class}))],
        ),
        case(
            class,
            "list",
            vec![
                ("limit", json!(null)),
                ("marker", json!({"$": class})),
                ("sort_key", json!("id")),
                ("sort_dir", json!("desc")),
            ],
        ),
        case(
            class,
            "list",
            vec![
                ("limit", json!(null)),
                ("marker", json!(null)),
                ("sort_key", json!("no_such_column")),
                ("sort_dir", json!(null)),
            ],
        ),
    ];
    for key in keys {
        for direction in ["asc", "desc"] {
            let order = || {
                vec![
                    ("limit", json!(null)),
                    ("marker", json!(null)),
                    ("sort_key", json!(key)),
                    ("sort_dir", json!(direction)),
                ]
            };
            let mut after = order();
            after[1].1 = json!({"$": class});
            cases.push(case(class, "list", order()));
            // After a row without a value, or before one, Magnum loses its place.
            if !HAVE_NULLS.contains(&(class, key)) {
                cases.push(case(class, "list", after));
            }
        }
    }
    cases
}

fn templates() -> Vec<Case> {
    let mut cases: Vec<Case> = (1..=5)
        .flat_map(|number| {
            [
                case(
                    "ClusterTemplate",
                    "get",
                    vec![("cluster_template_id", json!(chosen(TEMPLATE, number)))],
                ),
                case(
                    "ClusterTemplate",
                    "get_by_uuid",
                    vec![("uuid", json!(chosen(TEMPLATE, number)))],
                ),
                case(
                    "ClusterTemplate",
                    "get_by_id",
                    vec![("cluster_template_id", json!(number))],
                ),
            ]
        })
        .collect();
    cases.extend([
        case("ClusterTemplate", "get", vec![("cluster_template_id", json!(2))]),
        case(
            "ClusterTemplate",
            "get",
            vec![("cluster_template_id", json!("template-1"))],
        ),
        case(
            "ClusterTemplate",
            "get",
            vec![("cluster_template_id", json!("nothing"))],
        ),
        case(
            "ClusterTemplate",
            "get_by_name",
            vec![("name", json!("template-2"))],
        ),
        case("ClusterTemplate", "get_by_name", vec![("name", json!("same"))]),
        case("ClusterTemplate", "get_by_name", vec![("name", json!("nothing"))]),
    ]);
    cases.extend(pages("ClusterTemplate", &["name", "driver", "public"]));
    cases
}

fn groups() -> Vec<Case> {
    let cluster = || json!(chosen(CLUSTER, 1));
    let mut cases = vec![
        case(
            "NodeGroup",
            "get",
            vec![
                ("cluster_id", cluster()),
                ("nodegroup_id", json!(chosen(GROUP, 1))),
            ],
        ),
        case(
            "NodeGroup",
            "get",
            vec![("cluster_id", cluster()), ("nodegroup_id", json!(2))],
        ),
        case(
            "NodeGroup",
            "get",
            vec![("cluster_id", cluster()), ("nodegroup_id", json!("workers"))],
        ),
        case(
            "NodeGroup",
            "get",
            vec![("cluster_id", cluster()), ("nodegroup_id", json!("nobody"))],
        ),
        case(
            "NodeGroup",
            "get_by_id",
            vec![("cluster", cluster()), ("id_", json!(1))],
        ),
        case(
            "NodeGroup",
            "get_by_id",
            vec![("cluster", cluster()), ("id_", json!(5))],
        ),
        case(
            "NodeGroup",
            "get_by_uuid",
            vec![("cluster", cluster()), ("uuid", json!(chosen(GROUP, 2)))],
        ),
        case(
            "NodeGroup",
            "get_by_name",
            vec![("cluster", json!(chosen(CLUSTER, 3))), ("name", json!("workers"))],
        ),
        case("NodeGroup", "get_count_all", vec![("cluster_id", cluster())]),
        case(
            "NodeGroup",
            "get_count_all",
            vec![("cluster_id", json!(chosen(CLUSTER, 3)))],
        ),
        case(
            "NodeGroup",
            "list",
            vec![("cluster_id", json!(chosen(CLUSTER, 3)))],
        ),
        case("NodeGroup", "list", vec![("cluster_id", json!("nobody"))]),
    ];
    for filters in [
        json!(null),
        json!({"role": "worker", "is_default": true}),
        json!({"is_default": false}),
        json!({"name": "workers"}),
        json!({"node_count": 3}),
        json!({"node_addresses": ["192.0.2.20"]}),
        json!({"status": ["CREATE_COMPLETE"]}),
        json!({"status": ["NO_SUCH_STATUS"]}),
    ] {
        cases.push(case(
            "NodeGroup",
            "list",
            vec![
                ("cluster_id", cluster()),
                ("limit", json!(null)),
                ("marker", json!(null)),
                ("sort_key", json!("name")),
                ("sort_dir", json!("desc")),
                ("filters", filters),
            ],
        ));
    }
    cases.push(case(
        "NodeGroup",
        "list",
        vec![
            ("cluster_id", cluster()),
            ("limit", json!(1)),
            ("marker", json!({"$": "NodeGroup"})),
            ("sort_key", json!("name")),
        ],
    ));
    cases.push(case(
        "NodeGroup",
        "list",
        vec![
            ("cluster_id", cluster()),
            ("limit", json!(1)),
            ("marker", json!(null)),
            ("sort_key", json!("colour")),
        ],
    ));
    cases
}

fn others() -> Vec<Case> {
    let mut cases = vec![
        case(
            "X509KeyPair",
            "get",
            vec![("x509keypair_id", json!(chosen(PAIR, 1)))],
        ),
        case("X509KeyPair", "get", vec![("x509keypair_id", json!(2))]),
        case("X509KeyPair", "get", vec![("x509keypair_id", json!("pair"))]),
        case("X509KeyPair", "get_by_id", vec![("x509keypair_id", json!(3))]),
        case(
            "X509KeyPair",
            "get_by_uuid",
            vec![("uuid", json!(chosen(PAIR, 3)))],
        ),
        case(
            "X509KeyPair",
            "get_by_uuid",
            vec![("uuid", json!(chosen(PAIR, 9)))],
        ),
        case(
            "X509KeyPair",
            "list",
            vec![("filters", json!({"project_id": NORTH, "user_id": "user-of-1"}))],
        ),
        case(
            "MagnumService",
            "get_by_host_and_binary",
            vec![("host", json!("host-1")), ("binary", json!("magnum-conductor"))],
        ),
        case(
            "MagnumService",
            "get_by_host_and_binary",
            vec![("host", json!("nobody")), ("binary", json!("magnum-conductor"))],
        ),
        case("Quota", "get_by_id", vec![("quota_id", json!(2))]),
        case("Quota", "get_by_id", vec![("quota_id", json!(99))]),
        case(
            "Quota",
            "get_quota_by_project_id_resource",
            vec![("project_id", json!(SOUTH)), ("resource", json!("Cluster"))],
        ),
        case(
            "Quota",
            "get_quota_by_project_id_resource",
            vec![("project_id", json!(SOUTH)), ("resource", json!("Nothing"))],
        ),
        but(
            OursWorks,
            case(
                "Quota",
                "quota_get_all_by_project_id",
                vec![("project_id", json!(NORTH))],
            ),
        ),
        case(
            "Quota",
            "list",
            vec![("filters", json!({"project_id": NORTH, "resource": "Cluster"}))],
        ),
        case(
            "Federation",
            "get",
            vec![("federation_id", json!(chosen(FEDERATION, 1)))],
        ),
        case("Federation", "get", vec![("federation_id", json!("2"))]),
        case("Federation", "get", vec![("federation_id", json!("fed"))]),
        case("Federation", "get_by_id", vec![("federation_id", json!(1))]),
        case(
            "Federation",
            "get_by_uuid",
            vec![("uuid", json!(chosen(FEDERATION, 2)))],
        ),
        case("Federation", "get_by_name", vec![("name", json!("twin"))]),
        case("Federation", "get_by_name", vec![("name", json!("fed"))]),
        case("Federation", "get_by_name", vec![("name", json!("nothing"))]),
        but(
            OursWorks,
            case(
                "Federation",
                "get_count_all",
                vec![("filters", json!({"name": "twin"}))],
            ),
        ),
        case("Stats", "get_cluster_stats", vec![]),
        case("Stats", "get_cluster_stats", vec![("project_id", json!(SOUTH))]),
        case(
            "Stats",
            "get_cluster_stats",
            vec![("project_id", json!("nobody"))],
        ),
    ];
    for filters in [
        json!({"hostcluster_id": chosen(CLUSTER, 1)}),
        json!({"status": ["CREATE_COMPLETE"]}),
        json!({"member_ids": ["a", "b"]}),
        json!({"properties": {"dns-zone": "example.com."}}),
        json!({"name": "twin", "project_id": SOUTH}),
    ] {
        cases.push(case("Federation", "list", vec![("filters", filters)]));
    }
    cases.extend(pages("X509KeyPair", &["uuid"]));
    cases.extend(pages("MagnumService", &["host", "binary"]));
    cases.extend(pages("Quota", &["hard_limit"]));
    cases.extend(pages("Federation", &["name"]));
    cases
}

fn cases() -> Vec<Case> {
    [clusters(), templates(), groups(), others()]
        .into_iter()
        .flatten()
        .collect()
}

/// Wrong arguments, which Python tells in its own words.
fn wrong_calls() -> Vec<(&'static str, &'static str, Value, Value)> {
    vec![
        ("Cluster", "get_by_uuid", json!([]), json!({})),
        ("Cluster", "get_by_uuid", json!(["a", "b"]), json!({})),
        ("Cluster", "get_by_uuid", json!(["a"]), json!({"uuid": "b"})),
        ("Cluster", "get_by_uuid", json!([]), json!({"colour": "red"})),
        (
            "Cluster",
            "list",
            json!([1, null, null, null, null, 7]),
            json!({}),
        ),
        ("NodeGroup", "get", json!([]), json!({})),
        ("NodeGroup", "update_nodegroup", json!([]), json!({})),
        ("NodeGroup", "update_nodegroup", json!(["a"]), json!({})),
    ]
}

fn object(class: &str, data: Value) -> Value {
    let version = CLASSES
        .iter()
        .find(|known| known.schema.name == class)
        .map(|known| known.schema.version_text())
        .unwrap_or_default();
    json!({"magnum_object.name": class, "magnum_object.namespace": "magnum", "magnum_object.version": version,
           "magnum_object.data": data})
}

/// Rows of two projects, made by Magnum's own classes.
async fn populate(world: &mut World) -> Result<()> {
    world.clear().await?;
    let mut rows = Vec::new();
    // (project, name, public, hidden)
    let kinds = [
        (NORTH, "template-1", false, false),
        (NORTH, "same", false, false),
        (SOUTH, "template-2", true, false),
        (SOUTH, "same", true, true),
        (SOUTH, "template-5", false, false),
    ];
    for (number, (project, name, public, hidden)) in (1_u8..).zip(kinds) {
        let user = format!("user-of-{}", &project[..1]);
        rows.push(object("ClusterTemplate", json!({
            "id": number, "uuid": chosen(TEMPLATE, number), "name": name, "project_id": project, "user_id": user,
            "public": public, "hidden": hidden, "coe": "kubernetes", "image_id": "image", "server_type": "vm",
            "labels": {"note": "ż 雲"}, "driver": if number % 2 == 0 { json!("scripted") } else { Value::Null },
            "created_at": "2026-01-02T03:04:05Z"})));
    }
    let kinds = [
        (NORTH, json!("alpha"), "CREATE_COMPLETE"),
        (NORTH, json!("twin"), "UPDATE_FAILED"),
        (SOUTH, json!("twin"), "CREATE_COMPLETE"),
        (NORTH, json!("twin"), "UPDATE_IN_PROGRESS"),
        (SOUTH, Value::Null, "CREATE_COMPLETE"),
    ];
    for (number, (project, name, status)) in (1_u8..).zip(kinds) {
        let user = format!("user-of-{}", &project[..1]);
        rows.push(object("Cluster", json!({
            "id": number, "uuid": chosen(CLUSTER, number), "name": name, "project_id": project, "user_id": user,
            "cluster_template_id": chosen(TEMPLATE, 1 + number % 2), "stack_id": format!("stack-{number}"), "status": status,
            "health_status": "HEALTHY", "health_status_reason": {"api": "ok"}, "labels": {"k": "v"}, "create_timeout": 60,
            "api_address": format!("https://192.0.2.{number}:6443"), "created_at": "2026-01-02T03:04:05Z",
            "updated_at": "2026-01-03T03:04:05Z"})));
        for (place, name, count) in [
            (1, "masters", 3),
            (2, "workers", 2),
            (3, "extra", i32::from(number)),
        ] {
            let group = 3 * (number - 1) + place;
            rows.push(object("NodeGroup", json!({
                "id": group, "uuid": chosen(GROUP, group), "name": name, "cluster_id": chosen(CLUSTER, number), "project_id": project,
                "role": if place == 1 { "master" } else { "worker" }, "node_count": count, "is_default": place < 3, "status": status,
                "node_addresses": [format!("192.0.2.{}", 10 * place)], "labels": {"k": "v"}, "node_labels": {"disk": "fast"},
                "node_taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}], "created_at": "2026-01-02T03:04:05Z"})));
        }
    }
    for (number, project) in (1_u8..).zip([NORTH, NORTH, SOUTH]) {
        let user = format!("user-of-{}", &project[..1]);
        rows.push(object("X509KeyPair", json!({
            "id": number, "uuid": chosen(PAIR, number), "certificate": "C", "private_key": "K", "private_key_passphrase": "P",
            "intermediates": null, "project_id": project, "user_id": user})));
        rows.push(object(
            "Quota",
            json!({"id": number, "project_id": if number == 2 { SOUTH } else { NORTH },
            "resource": if number == 3 { "Other" } else { "Cluster" }, "hard_limit": 10 * number}),
        ));
        rows.push(object("Federation", json!({
            "id": number, "uuid": chosen(FEDERATION, number), "name": if number == 3 { "fed" } else { "twin" }, "project_id": project,
            "hostcluster_id": chosen(CLUSTER, number), "member_ids": ["a", "b"], "status": "CREATE_COMPLETE",
            "properties": {"dns-zone": "example.com."}})));
        rows.push(object(
            "MagnumService",
            json!({"host": format!("host-{number}"), "binary": "magnum-conductor", "report_count": number}),
        ));
    }
    world.python(json!({"do": "plant", "objects": rows})).await?;
    // What the heartbeat of our conductor writes meanwhile must not differ between two looks.
    world
        .deployment
        .database
        .execute("DELETE FROM magnum_service WHERE host = 'one'")
        .await?;
    for (class, get, arguments) in [
        ("Cluster", "get_by_id", json!([2])),
        ("ClusterTemplate", "get_by_id", json!([2])),
        ("NodeGroup", "get_by_id", json!([chosen(CLUSTER, 1), 2])),
        ("X509KeyPair", "get_by_id", json!([2])),
        (
            "MagnumService",
            "get_by_host_and_binary",
            json!(["host-2", "magnum-conductor"]),
        ),
        ("Quota", "get_by_id", json!([2])),
        ("Federation", "get_by_id", json!([2])),
    ] {
        let ask = json!({"do": "call", "way": "direct", "class": class, "method": get, "context": admin(true), "args": arguments,
                         "kwargs": {}, "keep": class});
        world.python(ask).await?;
    }
    Ok(())
}

fn question(way: &str, class: &str, method: &str, context: &Value, args: Value, kwargs: Value) -> Value {
    json!({"do": "call", "way": way, "class": class, "method": method, "context": context, "args": args, "kwargs": kwargs})
}

async fn compare(world: &mut World, case: &Case, context: &Value) -> Result<()> {
    let by_position: Vec<&Value> = case.args.iter().map(|(_, value)| value).collect();
    let by_name: Map<String, Value> = case
        .args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    // A case names the arguments that it needs: those before them can be left out by name only.
    let is_in_order = CLASSES
        .iter()
        .flat_map(|class| class.class_methods)
        .find(|method| method.signature.owner == case.class && method.signature.name == case.method)
        .context("a method of the table")?
        .signature;
    let parameters: Vec<&str> = is_in_order
        .required
        .iter()
        .chain(is_in_order.optional)
        .copied()
        .collect();
    let is_in_order = case
        .args
        .iter()
        .zip(&parameters)
        .all(|((name, _), parameter)| name == parameter);
    let ask = |way, args, kwargs| question(way, case.class, case.method, context, args, kwargs);

    let direct = world.outcome(ask("direct", json!([]), json!(by_name))).await?;
    let mut answers = vec![world.outcome(ask("rpc", json!([]), json!(by_name))).await?];
    if is_in_order {
        answers.push(world.outcome(ask("rpc", json!(by_position), json!({}))).await?);
    }
    for ours in answers {
        let is_right = match (case.answers, &direct, &ours) {
            (Alike, direct, ours) => direct == ours,
            (OursWorks, Outcome::Raised(..), Outcome::Returned(_)) => true,
            (OursSays(wanted), Outcome::Raised(..), Outcome::Raised(class, _)) => class == wanted,
            (Differently, Outcome::Returned(direct), Outcome::Returned(ours)) => direct != ours,
            _ => false,
        };
        let (class, method) = (case.class, case.method);
        if let (false, Outcome::Returned(ours), Outcome::Returned(direct)) = (is_right, &ours, &direct) {
            bail!(
                "{class}.{method} {by_name:?} as {context}\n{}",
                differences(ours, direct)
            );
        }
        ensure!(
            is_right,
            "{class}.{method} {by_name:?} as {context}\nthrough our conductor: {ours:#?}\ndirectly: {direct:#?}"
        );
    }
    Ok(())
}

async fn everything_reads_alike(backend: Backend) -> Result<()> {
    let mut world = World::on(backend).await?;
    // The heartbeat would put the conductor's own row among the services.
    populate(&mut world).await?;
    let nobody = json!({"user_id": "user-of-1", "roles": ["member"], "is_admin": false});
    for context in [member(NORTH), member(SOUTH), admin(false), admin(true)] {
        for case in cases() {
            compare(&mut world, &case, &context).await?;
        }
    }
    for case in clusters().iter().chain(&templates()).chain(&groups()) {
        compare(&mut world, case, &nobody).await?;
    }
    for (class, method, args, kwargs) in wrong_calls() {
        let direct = world
            .outcome(question(
                "direct",
                class,
                method,
                &member(NORTH),
                args.clone(),
                kwargs.clone(),
            ))
            .await?;
        let ours = world
            .outcome(question("rpc", class, method, &member(NORTH), args, kwargs))
            .await?;
        ensure!(
            matches!(direct, Outcome::Raised(..)) && direct == ours,
            "{class}.{method}: {ours:?}, directly {direct:?}"
        );
    }
    Ok(())
}

#[test]
fn the_cases_have_every_method_that_reads() {
    let asked: BTreeSet<_> = cases().iter().map(|case| (case.class, case.method)).collect();
    let table: BTreeSet<_> = CLASSES
        .iter()
        .flat_map(|class| class.class_methods)
        .filter(|method| !method.changes)
        .map(|method| (method.signature.owner, method.signature.name))
        .collect();
    assert_eq!(asked, table);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_reads_alike_on_mariadb() -> Result<()> {
    everything_reads_alike(Backend::Mariadb).await
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_reads_alike_on_sqlite() -> Result<()> {
    everything_reads_alike(Backend::Sqlite).await
}
