//! Deployments whose page is looked at.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_rpc::{
    self as rpc, Declaration, ListenSpec, Listener, OutgoingMessage, OwnQueues, Queue, Route, Transport,
    WireFormat,
};
use magnum_tests::api_alone::World;
use magnum_tests::recorded_cloud::RecordedCloud;

/// What somebody may have called a cluster, a driver, or a reason.
pub const HOSTILE: &str =
    "<img src=x onerror=\"document.title=''owned''\"><script>document.title=''owned''</script>&amp;";

/// The cluster of most operations.
pub const CLUSTER: &str = "0c1f7b1e-0000-4000-8000-000000000001";

const NOW: &str = "cast(strftime('%s', 'now') as integer) * 1000";

/// The id of an operation by its number.
pub fn operation_id(number: u32) -> String {
    format!("7d3c92aa-5b1e-4c07-9f60-{number:012}")
}

/// An operation, as a row of the journal. Times are seconds before now.
pub struct Operation {
    pub number: u32,
    pub kind: &'static str,
    pub cluster: String,
    pub project: &'static str,
    pub state: &'static str,
    pub step: &'static str,
    pub says: String,
    pub accepted: i64,
    /// Seconds until the limit.
    pub limit: Option<i64>,
    pub attempts: u32,
}

impl Operation {
    pub fn new(number: u32, kind: &'static str, state: &'static str) -> Self {
        Self {
            number,
            kind,
            cluster: CLUSTER.to_owned(),
            project: "p-blue",
            state,
            step: "update_cluster",
            says: String::new(),
            accepted: 600,
            limit: None,
            attempts: 1,
        }
    }

    pub fn sql(&self) -> String {
        let Self {
            number,
            kind,
            cluster,
            project,
            state,
            step,
            says,
            accepted,
            limit,
            attempts,
        } = self;
        let uuid = operation_id(*number);
        let has_ended = ["succeeded", "failed", "refused", "cancelled"].contains(state);
        let at = |seconds: i64| format!("{NOW} - {seconds} * 1000");
        let ended = if has_ended {
            at(accepted / 4)
        } else {
            "null".to_owned()
        };
        let limit = limit.map_or_else(|| "null".to_owned(), |limit| at(-limit));
        let next = if *state == "retrying" {
            at(-95)
        } else {
            "null".to_owned()
        };
        let begun = *state != "queued" && *state != "refused";
        let owner = if begun && !has_ended {
            "'ctl1:4711'"
        } else {
            "null"
        };
        let driver = if begun { "'capi', '2.3.1'" } else { "null, null" };
        let failures = if *state == "retrying" { attempts - 1 } else { 0 };
        format!(
            "insert into conductor_operation (uuid, message_id, kind, cluster_uuid, project_id, user_id, request_id, state, \
             step, args, attempts, failures, next_attempt_ms, owner, reason, created_ms, updated_ms, ended_ms, deadline_ms, \
             driver, driver_version, traceparent, reply, context) values ('{uuid}', 'aaaabbbbccccddddeeeeffff{number:08}', \
             '{kind}', '{cluster}', '{project}', 'u-1', 'req-{number}', '{state}', nullif('{step}', ''), x'00', {attempts}, {failures}, \
             {next}, {owner}, nullif('{says}', ''), {}, {NOW}, {ended}, {limit}, {driver}, \
             '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', x'00', 'hunter2'); \
             insert into conductor_operation_event (operation_uuid, at_ms, attempt, epoch, kind) \
             values ('{uuid}', {}, 0, 0, 'accepted');",
            at(*accepted),
            at(*accepted),
        )
    }
}

/// An event of an operation.
pub fn event(number: u32, seconds_ago: i64, kind: &str, step: &str, detail: &str) -> String {
    format!(
        "insert into conductor_operation_event (operation_uuid, at_ms, attempt, epoch, kind, step, conductor, detail) values \
         ('{}', {NOW} - {seconds_ago} * 1000, 1, 3, '{kind}', '{step}', 'ctl1:4711', nullif('{detail}', ''));",
        operation_id(number)
    )
}

pub fn service(host: &str, seen: &str) -> String {
    format!(
        "insert into magnum_service (host, \"binary\", disabled, forced_down, report_count, last_seen_up, created_at) \
         values ('{host}', 'magnum-conductor', 0, 0, 7, {seen}, datetime('now', '-2 days'));"
    )
}

pub fn driver(name: &str, error: &str) -> String {
    format!(
        "insert into conductor_driver (conductor, host, name, version, beta, cluster_types, capabilities, \
         master_size_rule, error, announced_ms) values ('ctl1:4711', 'ctl1', '{name}', '2.3.1', 0, \
         '[{{\"server_type\": \"vm\", \"os\": \"ubuntu\", \"coe\": \"kubernetes\"}}]', '{{}}', 'odd', {error}, {NOW});"
    )
}

pub fn cluster(uuid: &str, name: &str) -> String {
    format!("insert into cluster (uuid, name, status) values ('{uuid}', '{name}', 'UPDATE_IN_PROGRESS');")
}

/// A deployment that has seen better days, and whose names and reasons are hostile.
pub async fn hostile() -> Result<World> {
    let world = World::start(|_| {}).await?;
    let says = |number, state, says: &str| {
        Operation {
            says: says.to_owned(),
            attempts: 3,
            ..Operation::new(number, "cluster_update", state)
        }
        .sql()
    };
    world
        .sql(
            &[
                service("ctl1", "datetime('now')"),
                service("ctl2", "datetime('now', '-1 day')"),
                driver("capi", "null"),
                driver(HOSTILE, &format!("'driver.toml: line 3: {HOSTILE}'")),
                cluster(CLUSTER, HOSTILE),
                says(1, "running", ""),
                says(2, "retrying", "the cloud is busy"),
                says(3, "failed", &format!("quota exceeded {HOSTILE}")),
                event(3, 5, "failed", "update_cluster", &format!("attempt 1 {HOSTILE}")),
            ]
            .concat(),
        )
        .await?;
    Ok(world)
}

/// Somebody who takes requests, for as long as he is kept.
pub struct Conductor {
    _listener: Listener,
    _transport: Arc<dyn Transport>,
}

/// A deployment on an ordinary day, with a broker whose queues hold something, and a Keystone.
pub async fn ordinary() -> Result<(World, Conductor)> {
    let cloud = RecordedCloud::shared().await?;
    let mut settings = None;
    let world = World::start_as(
        |changed| {
            cloud.configure(changed);
            settings = Some(changed.clone());
        },
        // What the page says of both, which are reached already.
        |told| {
            told.database.connection = Secret::new("mysql+pymysql://magnum:hunter2@db.example/magnum");
            told.default.transport_url =
                Secret::new("rabbit://magnum:hunter2@mq1.example,magnum:hunter2@mq2.example/");
        },
    )
    .await?;
    let settings = settings.context("the settings")?;
    let conductor = fill_queues(&settings).await?;
    world.sql(&ordinary_rows()).await?;
    Ok((world, conductor))
}

fn queue(name: &str) -> Declaration {
    Declaration::Queue(Queue {
        name: name.to_owned(),
        durable: false,
        auto_delete: false,
        arguments: Vec::new(),
    })
}

/// Two dead letters, one conductor that takes requests.
async fn fill_queues(settings: &Settings) -> Result<Conductor> {
    let transport: Arc<dyn Transport> = rpc::connect(settings, "stage").await?;
    for _ in 0..2 {
        let route = Route {
            exchange: String::new(),
            routing_key: "magnum-conductor.dead".to_owned(),
        };
        let mut message = OutgoingMessage::new(route, WireFormat::Json, "{}");
        message.declare.push(queue("magnum-conductor.dead"));
        transport.publish(message).await?;
    }
    let consume = Declaration::Consume {
        queue: "magnum-conductor".to_owned(),
        tag: "1".to_owned(),
        arguments: Vec::new(),
    };
    let spec = ListenSpec {
        purpose: "stage",
        declarations: vec![queue("magnum-conductor"), consume],
        default_prefetch: 1,
        heartbeat: None,
        delete_at_stop: None,
        own_queues: OwnQueues::default(),
    };
    let listener = transport.listen(spec).await?;
    Ok(Conductor {
        _listener: listener,
        _transport: transport,
    })
}

fn ordinary_rows() -> String {
    let names = [
        "billing-prod",
        "search-staging",
        "ml-training",
        "web-eu",
        "ci-runners",
        "edge-07",
    ];
    let uuid = |number: usize| format!("9b2f4c5{number}-61d8-4e0a-8f3b-2c7d5e1a90f4");
    let mut rows = vec![
        service("ctl1", "datetime('now', '-12 seconds')"),
        service("ctl2", "datetime('now', '-3 seconds')"),
        service("ctl3", "datetime('now', '-26 hours')"),
        driver("capi", "null"),
        driver("heat-ubuntu", "null"),
        driver(
            "metal",
            "'driver.toml: line 12: capabilities: \"resise\" is not known; it may mean \"resize\"'",
        ),
    ];
    rows.extend(
        names
            .iter()
            .enumerate()
            .map(|(number, name)| cluster(&uuid(number), name)),
    );
    let of = |number, kind, state, of: usize| Operation {
        cluster: uuid(of),
        ..Operation::new(number, kind, state)
    };
    for (number, accepted) in (40..52).zip((1..).map(|hours| hours * 5400)) {
        let kind = ["cluster_create", "cluster_resize", "nodegroup_update"][number as usize % 3];
        rows.push(
            Operation {
                accepted,
                ..of(number, kind, "succeeded", number as usize % 6)
            }
            .sql(),
        );
    }
    let told = [
        Operation {
            says: "Quota exceeded for cores: requested 32, but already used 180 of 200 cores (HTTP 403) (Request-ID: \
                   req-6d2b8c1e-0a57-4f33-b7c5-0c2f9a4e7d18)"
                .to_owned(),
            step: "create_cluster",
            accepted: 9000,
            attempts: 4,
            ..of(60, "cluster_create", "failed", 5)
        },
        Operation {
            says: "Cluster ci-runners is being deleted.".to_owned(),
            accepted: 4000,
            ..of(61, "cluster_resize", "refused", 4)
        },
        Operation {
            says: "Neutron does not answer: connection to network.example:9696 refused after 3 attempts; the security \
                   group of node group gpu-large could not be made"
                .to_owned(),
            step: "resize_cluster",
            accepted: 1500,
            limit: Some(2130),
            attempts: 5,
            ..of(62, "cluster_resize", "retrying", 2)
        },
        Operation {
            says: "2 of 5 machines are ready".to_owned(),
            step: "create_cluster",
            accepted: 3300,
            limit: Some(330),
            ..of(63, "cluster_create", "observing", 1)
        },
        Operation {
            says: "1 of 3 control plane machines is upgraded".to_owned(),
            step: "upgrade_cluster",
            accepted: 4500,
            limit: Some(-840),
            ..of(64, "cluster_upgrade", "observing", 0)
        },
        Operation {
            step: "rotate_ca",
            accepted: 75,
            limit: Some(3525),
            ..of(65, "rotate_ca_certificate", "running", 3)
        },
        Operation {
            step: "",
            accepted: 40,
            ..of(66, "nodegroup_create", "queued", 2)
        },
    ];
    rows.extend(told.iter().map(Operation::sql));
    rows.extend([
        event(62, 1495, "claimed", "", ""),
        event(62, 1494, "intent", "choose_driver", ""),
        event(62, 1494, "result", "choose_driver", "capi 2.3.1"),
        event(62, 1490, "intent", "resize_cluster", ""),
        event(
            62,
            1420,
            "failed",
            "resize_cluster",
            "Neutron does not answer: connection to network.example:9696 refused",
        ),
        event(62, 1290, "claimed", "", ""),
        event(62, 1289, "intent", "resize_cluster", ""),
        event(
            62,
            60,
            "failed",
            "resize_cluster",
            "Neutron does not answer: connection to network.example:9696 refused after 3 attempts; the security group of \
             node group gpu-large could not be made",
        ),
    ]);
    rows.concat()
}

/// So many operations in every state, of a thousand clusters, with three events each.
pub fn many(count: u32) -> String {
    format!(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < {count}) \
         insert into conductor_operation (uuid, kind, cluster_uuid, project_id, state, args, attempts, failures, reason, \
         created_ms, updated_ms, ended_ms, driver) select printf('7d3c92aa-5b1e-4c07-9f60-%012d', i), \
         case i % 3 when 0 then 'cluster_create' when 1 then 'cluster_resize' else 'cluster_delete' end, \
         printf('9b2f4c50-61d8-4e0a-8f3b-%012d', i % 1000), printf('p-%d', i % 50), \
         case i % 20 when 0 then 'queued' when 1 then 'running' when 2 then 'retrying' when 3 then 'observing' \
         when 4 then 'failed' when 5 then 'refused' when 6 then 'cancelled' else 'succeeded' end, \
         zeroblob(2000), 1, 1, printf('%.*c', 300, 'x'), {NOW} - 900000, {NOW}, \
         case when i % 20 > 3 then {NOW} else null end, 'capi' from n; \
         with recursive n(i) as (select 0 union all select i + 1 from n where i < 999) \
         insert into cluster (uuid, name, status) \
         select printf('9b2f4c50-61d8-4e0a-8f3b-%012d', i), 'c-' || i, 'CREATE_COMPLETE' from n; \
         insert into conductor_operation_event (operation_uuid, at_ms, attempt, epoch, kind) \
         select uuid, created_ms, 1, 1, kinds.kind from conductor_operation, \
         (select 'accepted' as kind union all select 'claimed' union all select 'ended') as kinds;"
    )
}
