//! Every route × role × project: who may do what, and nobody sees or touches what belongs to another project.
//!
//! The routes come from the API's own document, so a new one fails this test until the table below says who may ask for
//! it. The table is written as an operator would say it and knows nothing of rules; what a request must answer follows
//! from it. The resources belong to the user `maker` of the project `home`; callers come from there, from another
//! project, or without one.
//!
//! A request that passes reaches a conductor that never answers: what is handed over is accepted at once, what is asked
//! ends as the timeout that it is. A request that is refused must not reach it.

use std::collections::BTreeSet;
use std::time::Duration;

use magnum_config::{AuthStrategy, Settings};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::rest::world::{Answer, World};

const HOME: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const AWAY: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const CLUSTER: &str = "000000c1-0000-4000-8000-000000000001";
const GROUP: &str = "00000096-0000-4000-8000-000000000003";
const PUBLIC: &str = "000000c7-0000-4000-8000-000000000001";
const PRIVATE: &str = "000000c7-0000-4000-8000-000000000002";
const FEDERATION: &str = "000000fe-0000-4000-8000-000000000001";

/// A conductor hears of a request within this.
const SOON: Duration = Duration::from_secs(30);

/// What a conductor that never answers ends in.
const UNANSWERED: u16 = 503;

/// A federation cannot be made.
const NOT_IMPLEMENTED: u16 = 501;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Who {
    name: &'static str,
    user: &'static str,
    roles: &'static str,
}

const MAKER_ID: &str = "11111111111111111111111111111111";

const CALLERS: &[Who] = &[
    Who {
        name: "guest",
        user: "66666666666666666666666666666666",
        roles: "guest",
    },
    Who {
        name: "reader",
        user: "22222222222222222222222222222222",
        roles: "reader",
    },
    Who {
        name: "maker",
        user: MAKER_ID,
        roles: "member,reader",
    },
    Who {
        name: "colleague",
        user: "33333333333333333333333333333333",
        roles: "member,reader",
    },
    Who {
        name: "admin",
        user: "55555555555555555555555555555555",
        roles: "admin,member,reader",
    },
    Who {
        name: "service",
        user: "77777777777777777777777777777777",
        roles: "service",
    },
];

impl Who {
    fn has(&self, role: &str) -> bool {
        self.roles.split(',').any(|has| has == role)
    }
}

/// Who may.
#[derive(Debug, Clone, Copy, PartialEq)]
enum May {
    /// Everybody with an identity.
    Anybody,
    /// Readers of the project, and administrators.
    Readers,
    /// Members of the project, and administrators.
    Members,
    /// Members of the project, administrators among them.
    OnlyMembers,
    /// The reader who made it, and administrators.
    Maker,
    /// The member who made it, and administrators.
    MakingMember,
    /// Administrators.
    Admins,
}

/// What a request is about, which decides how a refusal looks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum About {
    /// The caller's own things, there or to be made.
    Own,
    /// The same, and it cannot be without a project, not even for an administrator.
    OwnProject,
    /// A thing: who cannot see it learns nothing of it (404), who may not is refused (403).
    Thing,
    /// A thing that is named in a body, where not to exist is a mistake (400).
    NamedThing,
    /// Something in a cluster: first whether the caller may at all (403), then whether it is there (404).
    Inside,
    /// As a thing, but administrators are let into no other project.
    HomeThing,
    /// A public thing: there for everybody.
    PublicThing,
    /// Made of something that has to be in the caller's project.
    OfHome,
    /// A number about a project: refused (403) for any other.
    Count,
}

/// A request, who may, and what success answers.
struct Row {
    route: (&'static str, &'static str),
    path: String,
    may: May,
    about: About,
    success: u16,
    body: Value,
}

fn row(
    route: (&'static str, &'static str),
    path: &str,
    may: May,
    about: About,
    success: u16,
    body: Value,
) -> Row {
    Row {
        route,
        path: path.to_owned(),
        may,
        about,
        success,
        body,
    }
}

/// The policy, as an operator would tell it.
fn table() -> Vec<Row> {
    use About::{Count, HomeThing, Inside, NamedThing, OfHome, Own, OwnProject, PublicThing, Thing};
    use May::{Admins, Anybody, Maker, MakingMember, Members, OnlyMembers, Readers};
    let template =
        json!({"name": "t", "coe": "kubernetes", "image_id": "ubuntu-plain", "driver": "fake_alpha"});
    let cluster = json!({"name": "c", "cluster_template_id": PUBLIC, "keypair": "k"});
    let csr = json!({"cluster_uuid": CLUSTER, "csr": "-----BEGIN CERTIFICATE REQUEST-----"});
    let federation = json!({"name": "f", "hostcluster_id": CLUSTER, "properties": {"dns-zone": "e."}});
    let tags = json!([{"op": "replace", "path": "/tags", "value": "x"}]);
    let count = json!([{"op": "replace", "path": "/node_count", "value": 2}]);
    let health = json!([{"op": "replace", "path": "/health_status", "value": "HEALTHY"}]);
    let bound = json!([{"op": "replace", "path": "/max_node_count", "value": 5}]);
    let properties = json!([{"op": "replace", "path": "/properties/dns-zone", "value": "x."}]);
    let none = Value::Null;
    let of = |part: &str| format!("/v1/clusters/{CLUSTER}{part}");
    let group = of(&format!("/nodegroups/{GROUP}"));
    let quota = format!("/v1/quotas/{HOME}/Cluster");
    vec![
        row(("get", "/v1"), "/v1", Anybody, Own, 200, none.clone()),
        row(
            ("get", "/v1/openapi.json"),
            "/v1/openapi.json",
            Anybody,
            Own,
            200,
            none.clone(),
        ),
        // Templates: a public one is there for everybody, and still needs a role.
        row(
            ("get", "/v1/clustertemplates"),
            "/v1/clustertemplates",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/clustertemplates/detail"),
            "/v1/clustertemplates/detail",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("post", "/v1/clustertemplates"),
            "/v1/clustertemplates",
            Members,
            OwnProject,
            201,
            template,
        ),
        row(
            ("get", "/v1/clustertemplates/{ident}"),
            &format!("/v1/clustertemplates/{PRIVATE}"),
            Readers,
            Thing,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/clustertemplates/{ident}"),
            &format!("/v1/clustertemplates/{PUBLIC}"),
            Readers,
            PublicThing,
            200,
            none.clone(),
        ),
        row(
            ("patch", "/v1/clustertemplates/{ident}"),
            &format!("/v1/clustertemplates/{PRIVATE}"),
            Members,
            Thing,
            200,
            tags,
        ),
        row(
            ("delete", "/v1/clustertemplates/{ident}"),
            &format!("/v1/clustertemplates/{PRIVATE}"),
            Members,
            Thing,
            204,
            none.clone(),
        ),
        // Clusters.
        row(
            ("get", "/v1/clusters"),
            "/v1/clusters",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/clusters/detail"),
            "/v1/clusters/detail",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("post", "/v1/clusters"),
            "/v1/clusters",
            Members,
            OwnProject,
            202,
            cluster,
        ),
        row(
            ("get", "/v1/clusters/{ident}"),
            &of(""),
            Readers,
            Thing,
            200,
            none.clone(),
        ),
        row(
            ("patch", "/v1/clusters/{ident}"),
            &of(""),
            Members,
            Thing,
            202,
            count,
        ),
        row(
            ("patch", "/v1/clusters/{ident}"),
            &of(""),
            MakingMember,
            Thing,
            202,
            health,
        ),
        row(
            ("delete", "/v1/clusters/{ident}"),
            &of(""),
            Members,
            Thing,
            204,
            none.clone(),
        ),
        row(
            ("post", "/v1/clusters/{ident}/actions/resize"),
            &of("/actions/resize"),
            Members,
            Thing,
            202,
            json!({"node_count": 2}),
        ),
        row(
            ("post", "/v1/clusters/{ident}/actions/upgrade"),
            &of("/actions/upgrade"),
            Members,
            Thing,
            UNANSWERED,
            json!({"cluster_template": PUBLIC}),
        ),
        row(
            ("post", "/v1/clusters/{ident}/actions/rebuild"),
            &of("/actions/rebuild"),
            Members,
            Thing,
            UNANSWERED,
            json!({}),
        ),
        row(
            ("post", "/v1/clusters/{ident}/actions/reboot"),
            &of("/actions/reboot"),
            Members,
            Thing,
            UNANSWERED,
            json!({"type": "soft"}),
        ),
        row(
            ("get", "/v1/clusters/{ident}/operations"),
            &of("/operations"),
            Readers,
            Thing,
            200,
            none.clone(),
        ),
        // Node groups.
        row(
            ("get", "/v1/clusters/{ident}/nodegroups"),
            &of("/nodegroups"),
            Readers,
            Inside,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/clusters/{ident}/nodegroups/{group}"),
            &group,
            Readers,
            Inside,
            200,
            none.clone(),
        ),
        row(
            ("post", "/v1/clusters/{ident}/nodegroups"),
            &of("/nodegroups"),
            Members,
            Inside,
            202,
            json!({"name": "n"}),
        ),
        row(
            ("patch", "/v1/clusters/{ident}/nodegroups/{group}"),
            &group,
            Members,
            Inside,
            202,
            bound,
        ),
        row(
            ("delete", "/v1/clusters/{ident}/nodegroups/{group}"),
            &group,
            Members,
            Inside,
            204,
            none.clone(),
        ),
        // Certificates are the business of who made the cluster; a new CA is not.
        row(
            ("get", "/v1/certificates/{cluster}"),
            &format!("/v1/certificates/{CLUSTER}"),
            Maker,
            Thing,
            UNANSWERED,
            none.clone(),
        ),
        row(
            ("get", "/v1/certificates/{cluster}/{kind}"),
            &format!("/v1/certificates/{CLUSTER}/etcd"),
            Maker,
            Thing,
            UNANSWERED,
            none.clone(),
        ),
        row(
            ("post", "/v1/certificates"),
            "/v1/certificates",
            MakingMember,
            NamedThing,
            UNANSWERED,
            csr,
        ),
        row(
            ("patch", "/v1/certificates/{cluster}"),
            &format!("/v1/certificates/{CLUSTER}"),
            Members,
            Thing,
            UNANSWERED,
            none.clone(),
        ),
        row(
            ("patch", "/v1/credentials/{cluster}"),
            &format!("/v1/credentials/{CLUSTER}"),
            OnlyMembers,
            Inside,
            UNANSWERED,
            none.clone(),
        ),
        // Quotas, statistics, services.
        row(
            ("get", "/v1/quotas"),
            "/v1/quotas",
            Admins,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/quotas/{project}/{resource}"),
            &quota,
            Readers,
            Count,
            200,
            none.clone(),
        ),
        row(
            ("post", "/v1/quotas"),
            "/v1/quotas",
            Admins,
            Own,
            201,
            json!({"project_id": "c", "hard_limit": 3}),
        ),
        row(
            ("patch", "/v1/quotas/{project}/{resource}"),
            &quota,
            Admins,
            Own,
            202,
            json!({"hard_limit": 9}),
        ),
        row(
            ("delete", "/v1/quotas/{project}/{resource}"),
            &quota,
            Admins,
            Own,
            204,
            none.clone(),
        ),
        row(
            ("get", "/v1/stats"),
            &format!("/v1/stats?project_id={HOME}"),
            Readers,
            Count,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/mservices"),
            "/v1/mservices",
            Admins,
            Own,
            200,
            none.clone(),
        ),
        // Federations: rows of old; administrators have no special way to them.
        row(
            ("get", "/v1/federations"),
            "/v1/federations",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/federations/detail"),
            "/v1/federations/detail",
            Readers,
            Own,
            200,
            none.clone(),
        ),
        row(
            ("get", "/v1/federations/{ident}"),
            &format!("/v1/federations/{FEDERATION}"),
            Readers,
            HomeThing,
            200,
            none.clone(),
        ),
        row(
            ("post", "/v1/federations"),
            "/v1/federations",
            Members,
            OfHome,
            NOT_IMPLEMENTED,
            federation,
        ),
        row(
            ("patch", "/v1/federations/{ident}"),
            &format!("/v1/federations/{FEDERATION}"),
            Members,
            HomeThing,
            202,
            properties,
        ),
        row(
            ("delete", "/v1/federations/{ident}"),
            &format!("/v1/federations/{FEDERATION}"),
            Members,
            HomeThing,
            204,
            none,
        ),
    ]
}

/// Whether a conductor hears of it when the request passes.
fn reaches_a_conductor(row: &Row) -> bool {
    let (method, path) = row.route;
    let changes = method != "get" && row.success != NOT_IMPLEMENTED;
    let is_about = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    is_about(&["/v1/certificates"])
        || (changes && is_about(&["/v1/clusters", "/v1/credentials", "/v1/federations"]))
}

/// What the request must answer.
fn expected(row: &Row, who: Who, project: Option<&str>) -> u16 {
    let is_admin = who.has("admin");
    let at_home = project == Some(HOME);
    // Who has no project sees what is the own user's, and may do nothing with it.
    let sees = at_home || (project.is_none() && who.user == MAKER_ID);
    let passes = |in_place: bool| match row.may {
        May::Anybody => true,
        May::Admins => is_admin,
        May::Readers => is_admin || (in_place && who.has("reader")),
        May::Members => is_admin || (in_place && who.has("member")),
        May::OnlyMembers => in_place && who.has("member"),
        May::Maker => is_admin || (in_place && who.has("reader") && who.user == MAKER_ID),
        May::MakingMember => is_admin || (in_place && who.has("member") && who.user == MAKER_ID),
    };
    let or = |passes: bool, refusal: u16, success: u16| if passes { success } else { refusal };
    let success = row.success;
    match row.about {
        About::Own | About::PublicThing => or(passes(project.is_some()), 403, success),
        About::OwnProject => or(passes(project.is_some()) && project.is_some(), 403, success),
        About::Thing | About::NamedThing if !is_admin && !sees => {
            if row.about == About::Thing {
                404
            } else {
                400
            }
        }
        About::Thing | About::NamedThing => or(passes(at_home), 403, success),
        About::HomeThing if !at_home => 404,
        About::HomeThing => or(passes(true), 403, success),
        About::Inside | About::OfHome if !passes(project.is_some()) => 403,
        About::Inside => or(is_admin || sees, 404, success),
        About::OfHome => or(sees, 404, success),
        About::Count => or(passes(project.is_some()) && (is_admin || at_home), 403, success),
    }
}

async fn ask(world: &World, row: &Row, who: Who, project: Option<&str>) -> Answer {
    let mut headers = vec![
        ("openstack-api-version", "container-infra latest"),
        ("x-user-id", who.user),
        ("x-roles", who.roles),
    ];
    headers.extend(project.map(|project| ("x-project-id", project)));
    let body = if row.body.is_null() {
        String::new()
    } else {
        row.body.to_string()
    };
    world
        .ask_with("", &row.route.0.to_uppercase(), &row.path, body, &headers)
        .await
}

/// Rows that requests change, as they were.
const KEEP: &str = "update cluster set cluster_template_id = '000000c7-0000-4000-8000-000000000001';
    update quotas set hard_limit = 1000;
    create table kept_templates as select * from cluster_template;
    create table kept_quotas as select * from quotas;";
const RESTORE: &str =
    "delete from cluster_template; insert into cluster_template select * from kept_templates;
    delete from quotas; insert into quotas select * from kept_quotas;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_every_role_of_every_project_as_the_table_says() {
    let mut settings = Settings::default();
    settings.api.accept_wait = Duration::ZERO;
    // Callers in any combination of roles and projects, which a Keystone would have to be taught.
    settings.api.auth_strategy = AuthStrategy::Noauth;
    settings.default.rpc_response_timeout = Duration::from_millis(100);
    let mut world = World::patient(settings).await;
    world.sql(KEEP).await;
    let table = table();

    let latest = [("openstack-api-version", "container-infra latest")];
    let document = world
        .ask_with("", "GET", "/v1/openapi.json", "", &latest)
        .await
        .body;
    let served: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods
                .as_object()
                .unwrap()
                .keys()
                .map(|method| (method.clone(), path.clone()))
        })
        .collect();
    let known: BTreeSet<(String, String)> = table
        .iter()
        .map(|row| (row.route.0.to_owned(), row.route.1.to_owned()))
        .collect();
    assert_eq!(
        known, served,
        "the table has to name every route that is served, and no other"
    );

    let mut wrong = Vec::new();
    let mut asked = 0;
    for row in &table {
        for who in CALLERS {
            for project in [Some(HOME), Some(AWAY), None] {
                let answer = ask(&world, row, *who, project).await;
                let must = expected(row, *who, project);
                asked += 1;
                let case = format!("{} {} as {} of {project:?}", row.route.0, row.path, who.name);
                if answer.status != must {
                    wrong.push(format!(
                        "{case}: {} instead of {must}: {}",
                        answer.status, answer.body
                    ));
                }
                if reaches_a_conductor(row) && must == row.success && answer.status == must {
                    // Until it has come, so that it is not taken for one of the next request.
                    if timeout(SOON, world.asked.recv()).await.is_err() {
                        wrong.push(format!("{case}: not handed to a conductor"));
                    }
                }
                if let Ok(request) = world.asked.try_recv() {
                    wrong.push(format!(
                        "{case}, or one before: handed to a conductor: {request:?}"
                    ));
                }
                // What is private must not stand in what a stranger is shown.
                let text = answer.body.to_string();
                let stranger = !who.has("admin") && project == Some(AWAY);
                for secret in ["prod-3f2a", "203.0.113.10", PRIVATE] {
                    let named = row.path.contains(secret);
                    if stranger && !named && text.contains(secret) {
                        wrong.push(format!("{case}: shows {secret}"));
                    }
                }
                world.sql(RESTORE).await;
            }
        }
    }
    println!("{asked} requests");
    assert!(
        wrong.is_empty(),
        "{} of {asked} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    world.stop().await;
}
