//! Replies sent to a caller.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use lapin::options::{BasicConsumeOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, Consumer};
use magnum_objects::{VersionedObject, is_object};
use magnum_rpc::{MAX_BODY_BYTES, RawMessage, decode};
use magnum_rpc_client::{CallError, CallOptions};
use magnum_tests::rabbitmq::{self, Vhost};
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use super::super::{Bed, SOON, nobody};
use super::{assert_documented, assert_recorded, experiments, properties, publish, raw_channel};

/// What ours does otherwise.
#[derive(Debug)]
enum Otherwise {
    /// It returns `ok`.
    Returns,
    /// It raises an exception of this class.
    Raises(&'static str),
    /// It gives up when its time is over.
    TimesOut,
}

use Otherwise::{Raises, Returns, TimesOut};

const LIBERAL: &str = "MessagePack; `application/json` with parameters or without a content type";
const SPARSE: &str = "A reply without `ending` or without `failure`";

/// The name of an experiment, what ours does, and the row that says so.
type Different = (&'static str, Otherwise, &'static str);

const DIFFERENT: &[Different] = &[
    ("msgpack with envelope", Returns, LIBERAL),
    ("msgpack without envelope", Returns, LIBERAL),
    ("no content_type", Returns, LIBERAL),
    ("no ending", Returns, SPARSE),
    ("no failure key", Returns, SPARSE),
    (
        "ending false without result, no call_monitor_timeout",
        TimesOut,
        "A sign of life that the caller did not ask for",
    ),
    (
        "failure as an object, not a string",
        Raises("ValueError"),
        "A `failure` that is an object instead of a text",
    ),
];

/// The recorded body is for another call on purpose.
const FOR_ANOTHER: &str = "wrong _msg_id";

/// A server that answers with recorded bytes.
struct Replier {
    channel: Channel,
    requests: Consumer,
    _connection: Connection,
}

impl Replier {
    async fn new(vhost: &Vhost) -> Result<Self> {
        let (connection, channel) = raw_channel(vhost).await?;
        let nothing = FieldTable::default;
        let topic = "magnum-conductor";
        let exchange = ExchangeDeclareOptions::default();
        channel
            .exchange_declare("magnum".into(), lapin::ExchangeKind::Topic, exchange, nothing())
            .await?;
        channel
            .queue_declare(topic.into(), QueueDeclareOptions::default(), nothing())
            .await?;
        let bind = QueueBindOptions::default();
        channel
            .queue_bind(topic.into(), "magnum".into(), topic.into(), bind, nothing())
            .await?;
        let no_ack = BasicConsumeOptions {
            no_ack: true,
            ..Default::default()
        };
        Ok(Self {
            requests: channel
                .basic_consume(topic.into(), "".into(), no_ack, nothing())
                .await?,
            channel,
            _connection: connection,
        })
    }

    /// Answers the next call with what was sent in the experiment.
    async fn answer(&mut self, name: &str, experiment: &Value) -> Result<()> {
        let delivery = timeout(SOON, self.requests.next())
            .await?
            .context("no request")??;
        let content_type = delivery.properties.content_type();
        let request = RawMessage {
            content_type: content_type.as_ref().map(ToString::to_string),
            body: delivery.data.clone().into(),
            ..RawMessage::default()
        };
        let (request, _) = decode::<Value>(&request, MAX_BODY_BYTES)?;
        let queue = request["_reply_q"].as_str().context("a reply queue")?;
        let id = request["_msg_id"].as_str().context("an id")?;
        let sent = experiment["sent"].as_array().context("sent")?;
        let is_monitored = !experiment["call_monitor_timeout"].is_null();
        for reply in sent {
            // As recorded: a sign of life each second, or a reply after the monitor's two.
            match (is_monitored, sent.len()) {
                (true, 1) => sleep(Duration::from_secs(3)).await,
                (true, _) => sleep(Duration::from_secs(1)).await,
                (false, _) => {}
            }
            let body = if name == FOR_ANOTHER {
                bytes_of(reply)
            } else {
                addressed(reply, id)?
            };
            publish(&self.channel, queue, &body, properties(reply)).await?;
        }
        Ok(())
    }
}

fn bytes_of(reply: &Value) -> Vec<u8> {
    let body = reply["body"].as_str().unwrap();
    match body.strip_prefix("base64:") {
        Some(encoded) => STANDARD.decode(encoded).unwrap(),
        None => body.as_bytes().to_vec(),
    }
}

/// The recorded bytes with the id of our call in the place of the recorded one.
fn addressed(reply: &Value, id: &str) -> Result<Vec<u8>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut body = bytes_of(reply);
    let message = RawMessage {
        content_type: text(&reply["properties"]["content_type"]),
        compression: text(&reply["headers"]["compression"]),
        body: Bytes::from(body.clone()),
        ..RawMessage::default()
    };
    let Ok((inner, _)) = decode::<Value>(&message, MAX_BODY_BYTES) else {
        return Ok(body);
    };
    let Some(recorded) = inner["_msg_id"].as_str() else {
        return Ok(body);
    };
    if message.compression.is_some() {
        let bare = inner.to_string().replace(recorded, id);
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bare.as_bytes())?;
        return Ok(encoder.finish()?);
    }
    // Both ids have 32 characters, so what is around them still fits in every format.
    assert_eq!(recorded.len(), id.len());
    let at = body
        .windows(recorded.len())
        .position(|window| window == recorded.as_bytes());
    let at = at.context("the recorded id")?;
    body[at..at + id.len()].copy_from_slice(id.as_bytes());
    Ok(body)
}

fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

/// Whether the call is to end because its time is over. Only such a call gets the seconds of the recording: the first
/// of the others makes two connections as well, which takes longer than those where all tests run at once.
fn runs_out(observed: &Value, different: Option<&Different>) -> bool {
    match different {
        Some((_, otherwise, _)) => matches!(otherwise, TimesOut),
        None => observed["raised"]["class"] == "MessagingTimeout",
    }
}

fn sorted(values: &Value) -> Vec<String> {
    let mut texts: Vec<String> = values
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    texts.sort();
    texts
}

fn assert_returned(name: &str, ours: &Value, recorded: &Value) {
    match recorded {
        Value::Object(_) => {
            let object = VersionedObject::decode(ours).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let object = object.encode();
            assert_eq!(object["magnum_object.name"], recorded["object"], "{name}");
            let (ours, recorded) = (&object["magnum_object.changes"], &recorded["what_changed"]);
            assert_eq!(sorted(ours), sorted(recorded), "{name}");
        }
        Value::Array(list) => {
            let ours = ours.as_array().unwrap();
            assert_eq!(ours.len(), list.len(), "{name}");
            for (ours, recorded) in ours.iter().zip(list) {
                assert_returned(name, ours, recorded);
            }
        }
        plain => assert_eq!(ours, plain, "{name}"),
    }
}

fn assert_raised(name: &str, ours: Result<Value, CallError>, raised: &Value) {
    let class = raised["class"].as_str().unwrap();
    match (class, ours) {
        ("MessagingTimeout", Err(CallError::TimedOut { .. }))
        | ("JSONDecodeError", Err(CallError::BadReply { .. })) => {}
        ("IncompatibleObjectVersion", Ok(value)) => {
            assert!(is_object(&value), "{name}");
            let fault = VersionedObject::decode(&value).unwrap_err();
            assert_eq!(fault.exception.name(), class, "{name}");
        }
        ("RemoteError", Err(CallError::Remote(failure))) => {
            assert_eq!(raised["exc_type"], format!("'{}'", failure.class), "{name}");
            assert_eq!(raised["value"], format!("'{}'", failure.message), "{name}");
        }
        (class, Err(CallError::Remote(failure))) => {
            let fault = failure.to_fault();
            let fault = fault.unwrap_or_else(|| panic!("{name}: {failure} is foreign"));
            assert_eq!(
                fault.exception.name(),
                class.trim_end_matches("_Remote"),
                "{name}"
            );
            let told = [&raised["str"], &raised["args"][0]].map(|text| text.as_str().unwrap_or_default());
            let ours = &failure.message;
            assert!(!ours.is_empty(), "{name}");
            assert!(
                told.iter().any(|text| text.starts_with(ours)),
                "{name}: {ours:?}, recorded {told:?}"
            );
            if let Some(code) = raised["code"].as_str() {
                assert_eq!(fault.code().to_string(), code, "{name}: the class's code counts");
            }
        }
        (class, ours) => panic!("{name}: {ours:?}, recorded {class}"),
    }
}

#[tokio::test]
async fn every_experiment_with_a_caller_ends_as_recorded_or_as_documented() -> Result<()> {
    let all = experiments("experiments-client");
    let mut named: Vec<&str> = DIFFERENT.iter().map(|(name, ..)| *name).collect();
    named.push(FOR_ANOTHER);
    assert_recorded(&named, &all);
    let vhost = rabbitmq::vhost().await?;
    let mut replier = Replier::new(&vhost).await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let client = bed.client();
    for (name, experiment) in &all {
        let observed = &experiment["observed"];
        let different = DIFFERENT.iter().find(|(other, ..)| other == name);
        let options = CallOptions {
            timeout: if runs_out(observed, different) {
                seconds(&experiment["call_timeout"])
            } else {
                Some(SOON)
            },
            monitor: seconds(&experiment["call_monitor_timeout"]),
            ..CallOptions::default()
        };
        let context = nobody();
        let call = client.call_with(&context, "x_echo", Map::new(), options);
        let (ours, answered) = tokio::join!(call, replier.answer(name, experiment));
        answered.with_context(|| format!("{name}: the call ended with {ours:?}"))?;
        let Some((_, otherwise, row)) = different else {
            match observed.get("raised") {
                Some(raised) => assert_raised(name, ours, raised),
                None => {
                    let ours = ours.with_context(|| name.clone())?;
                    assert_returned(name, &ours, &observed["returned"]);
                }
            }
            continue;
        };
        assert_documented(row);
        match (otherwise, ours) {
            (Returns, Ok(value)) => assert_eq!(value, json!("ok"), "{name}"),
            (Raises(class), Err(CallError::Remote(failure))) => {
                assert_eq!(failure.class, *class, "{name}");
            }
            (TimesOut, Err(CallError::TimedOut { .. })) => {}
            (otherwise, ours) => panic!("{name}: {ours:?} instead of {otherwise:?}"),
        }
    }
    Ok(())
}
