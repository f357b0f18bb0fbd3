//! Requests on their way to the broker: each by itself, with what its client hears.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::{ClusterUuid, MessageId, NodeGroupUuid, RequestId};
use magnum_common::model::{Cluster, NodeGroup};
use magnum_objects as objects;
use magnum_rpc::{
    Addressing, OutgoingMessage, PublishDeadlines, ReplyAddress, Request, Target, Transport, WireFormat,
    encode, publish_until, topology,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::conductor::Surroundings;
use super::database::template_of;
use super::plan::{Asked, LIMIT, Sent, What};
use crate::checker::history::{self, Heard, Told};

/// How long a client tries to send.
const PATIENCE: Duration = Duration::from_secs(60);

/// What clients know.
#[derive(Default)]
pub struct Clients(Mutex<State>);

#[derive(Default)]
struct State {
    told: Vec<Told>,
    calls: Vec<String>,
    arrived: usize,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What they were told, in the order in which they asked.
    pub fn told(&self) -> Vec<Told> {
        self.lock().told.clone()
    }

    /// Ids of the messages whose sender waits for an answer.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// How many messages have reached the broker, those that came twice counted once.
    pub fn arrived(&self) -> usize {
        self.lock().arrived
    }
}

/// A cluster that requests are about, as its client knows it.
pub struct Subject {
    cluster: Cluster,
    group: NodeGroup,
    tenant: String,
}

impl Subject {
    /// The cluster of this number in the plan.
    pub fn new(number: usize, driver: &str) -> Self {
        let tenant = format!("tenant-{}", number % 2);
        let mut cluster = Cluster::new(ClusterUuid::random(), template_of(driver).into());
        cluster.name = Some(format!("c{number}"));
        cluster.project_id = Some(tenant.clone());
        cluster.user_id = Some("u".into());
        let uuid = cluster.uuid.clone();
        let mut group = NodeGroup::new(NodeGroupUuid::random(), "pool", uuid, tenant.as_str(), "worker");
        group.node_count = 2;
        Self {
            cluster,
            group,
            tenant,
        }
    }

    fn request(&self, what: What) -> (&'static str, Value) {
        let cluster = || objects::encode(&self.cluster);
        match what {
            What::Create => {
                let sent = [
                    "uuid",
                    "name",
                    "project_id",
                    "user_id",
                    "cluster_template_id",
                    "labels",
                ];
                let cluster = objects::encode_changed(&self.cluster, &sent);
                let minutes = LIMIT.as_secs() / 60;
                let args = json!({"cluster": cluster, "master_count": 1, "node_count": 2, "create_timeout": minutes});
                ("cluster_create", args)
            }
            What::Update(workers) => {
                let args = json!({
                    "cluster": cluster(), "node_count": workers, "health_status": null,
                    "health_status_reason": null, "rollback": false});
                ("cluster_update", args)
            }
            What::AddGroup => (
                "nodegroup_create",
                json!({"cluster": cluster(), "nodegroup": objects::encode(&self.group)}),
            ),
            What::RemoveGroup => (
                "nodegroup_delete",
                json!({"cluster": cluster(), "nodegroup": objects::encode(&self.group)}),
            ),
            What::RotateCa => ("rotate_ca_certificate", json!({"cluster": cluster()})),
            What::Delete => ("cluster_delete", json!({"uuid": self.cluster.uuid})),
        }
    }
}

/// Sends one request when its time has come, and writes down what was heard.
pub async fn ask(
    around: Surroundings,
    asked: Asked,
    subject: Arc<Subject>,
    clients: Arc<Clients>,
) -> Result<()> {
    sleep(asked.at).await;
    let id = MessageId::random();
    let (method, args) = subject.request(asked.what);
    let at = around.stage.now_ms();
    let message = message(&around, &subject, method, args, &id, asked.is_call)?;
    let transport = around.transport()?;
    let place = {
        let mut state = clients.lock();
        if asked.is_call {
            state.calls.push(id.to_string());
        }
        state.told.push(Told {
            id: Some(history::RequestId::Message(id.to_string())),
            tenant: subject.tenant.clone(),
            kind: method.to_owned(),
            cluster: Some(subject.cluster.uuid.to_string()),
            asked: at,
            limit: i64::try_from(LIMIT.as_millis())?,
            heard: Heard::Nothing,
        });
        state.told.len() - 1
    };
    let heard = match asked.sent {
        Sent::Unconfirmed(false) => Heard::Nothing,
        sent => {
            let delivered = publish(&transport, &message).await;
            clients.lock().arrived += usize::from(delivered);
            if let (true, Sent::Twice(later)) = (delivered, sent) {
                sleep(later).await;
                publish(&transport, &message).await;
            }
            match (delivered, sent) {
                (true, Sent::Once | Sent::Twice(_)) => Heard::Confirmed,
                _ => Heard::Nothing,
            }
        }
    };
    around.stage.trace.note(
        "client",
        format_args!("{method} of {} {id}: {heard:?}", subject.cluster.uuid),
    );
    clients.lock().told[place].heard = heard;
    Ok(())
}

async fn publish(transport: &Arc<dyn Transport>, message: &OutgoingMessage) -> bool {
    let deadlines = PublishDeadlines {
        unconfirmed: Instant::now() + PATIENCE,
        unroutable: Instant::now() + PATIENCE,
    };
    publish_until(transport.as_ref(), message, deadlines)
        .await
        .is_ok()
}

fn message(
    around: &Surroundings,
    subject: &Subject,
    method: &str,
    args: Value,
    id: &MessageId,
    is_call: bool,
) -> Result<OutgoingMessage> {
    let Value::Object(args) = args else {
        bail!("arguments are named");
    };
    let caller = Caller {
        user_id: Some("u".into()),
        project_id: Some(subject.tenant.clone()),
        ..Caller::default()
    };
    let request = Request {
        method: method.to_owned(),
        args,
        context: RequestContext::for_caller(&caller, &RequestId::random()),
        unique_id: Some(id.clone()),
        reply: is_call.then(|| ReplyAddress {
            queue: "reply".into(),
            msg_id: id.to_string(),
            format: WireFormat::Json,
        }),
        call_monitor: None,
        namespace: None,
        version: None,
    };
    let addressing = Addressing::default();
    let body = encode(&request, addressing.format)?;
    let transport = around.transport()?;
    let mut message = OutgoingMessage::new(
        addressing.names.route(&Target::AnyServer),
        addressing.format,
        body,
    );
    message.declare = vec![topology::control_exchange(&addressing.names, transport.options())];
    Ok(message)
}
