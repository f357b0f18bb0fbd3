//! Every route × role × project: a caller can do what the policy allows, and nobody sees or changes a resource of
//! another project.
//!
//! The routes come from the API's own document, so a new one fails this test until it has a row in `table`. A row says
//! whom the policy allows a request, without policy rules; the expected status follows from it ([`expected_status`]).
//! The resources belong to one user of the project [`HOME`]; each caller (`callers`) comes from that project, from
//! another one, or without a project.
//!
//! A request that is allowed reaches a conductor that never replies: a cast is accepted at once, a call times out. A
//! request that is refused must not reach it.

mod callers;
mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use magnum_config::{AuthStrategy, Settings};
use tokio::time::timeout;

use self::callers::{CALLERS, Caller};
use self::table::{Allowed, NOT_IMPLEMENTED, Row, Subject, table};
use crate::api::rest::world::{Answer, World};

/// The project of the resources.
const HOME: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Another project.
const AWAY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const CLUSTER: &str = "000000c1-0000-4000-8000-000000000001";
const NODE_GROUP: &str = "00000096-0000-4000-8000-000000000003";
const PUBLIC_TEMPLATE: &str = "000000c7-0000-4000-8000-000000000001";
const PRIVATE_TEMPLATE: &str = "000000c7-0000-4000-8000-000000000002";
const FEDERATION: &str = "000000fe-0000-4000-8000-000000000001";

/// A cluster's name, its address, and a template: not to be seen in other projects.
const PRIVATE_TEXTS: [&str; 3] = ["prod-3f2a", "203.0.113.10", PRIVATE_TEMPLATE];

/// Time limit for a request to reach the conductor.
const SOON: Duration = Duration::from_secs(30);

const LATEST: (&str, &str) = ("openstack-api-version", "container-infra latest");

/// Saves the rows that requests change.
const SAVE: &str = "update cluster set cluster_template_id = '000000c7-0000-4000-8000-000000000001';
    update quotas set hard_limit = 1000;
    create table kept_templates as select * from cluster_template;
    create table kept_quotas as select * from quotas;";
/// What the cluster's driver offers by an API of its own, with rules of the three kinds.
const OWN_API: &str = r#"update conductor_driver set api_routes = '[
    {"path": "usage", "methods": ["GET"], "policy": "cluster:get", "read_only": true},
    {"path": "notes", "methods": ["POST", "PUT", "PATCH"], "policy": "cluster:driver_api", "read_only": false},
    {"path": "notes", "methods": ["DELETE"], "policy": "cluster:update_health_status", "read_only": false}
]' where name = 'fake_alpha'"#;
const RESTORE: &str =
    "delete from cluster_template; insert into cluster_template select * from kept_templates;
    delete from quotas; insert into quotas select * from kept_quotas;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_allows_and_refuses_callers_as_in_the_table() {
    let mut world = start_world().await;
    let table = table();
    let documented = documented_routes(&world).await;
    let in_table: BTreeSet<(String, String)> = table
        .iter()
        .map(|row| (row.route.0.to_owned(), row.route.1.to_owned()))
        .collect();
    assert_eq!(
        in_table, documented,
        "the table must have every documented route, and no other"
    );

    let mut wrong = Vec::new();
    let mut requests = 0;
    for row in &table {
        for caller in CALLERS {
            for project in [Some(HOME), Some(AWAY), None] {
                wrong.extend(check(&mut world, row, *caller, project).await);
                requests += 1;
                world.sql(RESTORE).await;
            }
        }
    }
    println!("{requests} requests");
    assert!(
        wrong.is_empty(),
        "{} problems in {requests} requests:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    world.stop().await;
}

async fn start_world() -> World {
    let mut settings = Settings::default();
    settings.api.accept_wait = Duration::ZERO;
    // Callers with any combination of roles and projects, without a Keystone that would have to have them all.
    settings.api.auth_strategy = AuthStrategy::Noauth;
    settings.default.rpc_response_timeout = Duration::from_millis(100);
    settings.drivers.custom_api = vec!["fake_alpha".to_owned()];
    let world = World::patient(settings).await;
    world.sql(SAVE).await;
    world.sql(OWN_API).await;
    world
}

/// Method and path of every route in the API's document.
async fn documented_routes(world: &World) -> BTreeSet<(String, String)> {
    let document = world
        .ask_with("", "GET", "/v1/openapi.json", "", &[LATEST])
        .await
        .body;
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.insert((method.clone(), path.clone()));
        }
    }
    routes
}

/// Sends one request, and says what is wrong with its response and its effect.
async fn check(world: &mut World, row: &Row, caller: Caller, project: Option<&str>) -> Vec<String> {
    let response = send(world, row, caller, project).await;
    let expected = expected_status(row, caller, project);
    let case = format!("{} {} as {} of {project:?}", row.route.0, row.path, caller.name);
    let mut wrong = Vec::new();
    if response.status != expected {
        wrong.push(format!(
            "{case}: {} instead of {expected}: {}",
            response.status, response.body
        ));
    }
    let is_allowed = expected == row.success && response.status == expected;
    // Waits for it, so that it is not taken for the request of the next case.
    if is_allowed && reaches_conductor(row) && timeout(SOON, world.asked.recv()).await.is_err() {
        wrong.push(format!("{case}: did not reach the conductor"));
    }
    if let Ok(request) = world.asked.try_recv() {
        wrong.push(format!(
            "{case}, or the case before: reached the conductor: {request:?}"
        ));
    }
    if !caller.has("admin") && project == Some(AWAY) {
        let text = response.body.to_string();
        for private in PRIVATE_TEXTS {
            if text.contains(private) && !row.path.contains(private) {
                wrong.push(format!("{case}: shows {private}"));
            }
        }
    }
    wrong
}

async fn send(world: &World, row: &Row, caller: Caller, project: Option<&str>) -> Answer {
    let mut headers = vec![LATEST, ("x-user-id", caller.user), ("x-roles", caller.roles)];
    headers.extend(project.map(|project| ("x-project-id", project)));
    let body = if row.body.is_null() {
        String::new()
    } else {
        row.body.to_string()
    };
    let method = row.route.0.to_uppercase();
    world.ask_with("", &method, &row.path, body, &headers).await
}

/// Whether a conductor gets the request if it is allowed.
fn reaches_conductor(row: &Row) -> bool {
    let (method, path) = row.route;
    let changes = method != "get" && row.success != NOT_IMPLEMENTED;
    // The API writes a reported health itself.
    let is_health = row.body.pointer("/0/path") == Some(&serde_json::Value::from("/health_status"));
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    is_below(&["/v1/certificates"])
        || path.contains("/driver/")
        || (changes && !is_health && is_below(&["/v1/clusters", "/v1/credentials", "/v1/federations"]))
}

/// The status that a row means for this caller.
fn expected_status(row: &Row, caller: Caller, project: Option<&str>) -> u16 {
    let is_admin = caller.has("admin");
    let in_home = project == Some(HOME);
    // A caller without a project sees resources of its own user, and may not change them.
    let sees = in_home || (project.is_none() && caller.is_creator());
    let allowed = |in_project: bool| match row.allowed {
        Allowed::Anybody => true,
        Allowed::Admins => is_admin,
        Allowed::Readers => is_admin || (in_project && caller.has("reader")),
        Allowed::Members => is_admin || (in_project && caller.has("member")),
        Allowed::OnlyMembers => in_project && caller.has("member"),
        Allowed::Creator => is_admin || (in_project && caller.has("reader") && caller.is_creator()),
        Allowed::CreatingMember => is_admin || (in_project && caller.has("member") && caller.is_creator()),
    };
    let in_any = allowed(project.is_some());
    let refused = match row.subject {
        Subject::Own | Subject::Public => (!in_any).then_some(403),
        Subject::OwnProject => (!in_any || project.is_none()).then_some(403),
        Subject::Resource if !is_admin && !sees => Some(404),
        Subject::NamedInBody if !is_admin && !sees => Some(400),
        Subject::Resource | Subject::NamedInBody => (!allowed(in_home)).then_some(403),
        Subject::NotForAdmins if !in_home => Some(404),
        Subject::NotForAdmins => (!allowed(true)).then_some(403),
        Subject::InCluster | Subject::MadeOfResource if !in_any => Some(403),
        Subject::InCluster => (!is_admin && !sees).then_some(404),
        Subject::MadeOfResource => (!sees).then_some(404),
        Subject::Figure => (!in_any || (!is_admin && !in_home)).then_some(403),
    };
    refused.unwrap_or(row.success)
}
