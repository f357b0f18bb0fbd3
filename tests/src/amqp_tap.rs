//! A proxy before a broker that records the AMQP methods of its clients, in the format of the recordings in
//! `tests/fixtures/rpc/topology`.
//!
//! It forwards bytes as they are and reads a copy of the client's side. Acknowledgements and bodies are left out.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use amq_protocol::frame::{AMQPFrame, parsing::parse_frame};
use amq_protocol::protocol::{AMQPClass, basic, channel, confirm, connection, exchange, queue};
use amq_protocol::types::{AMQPValue, FieldTable};
use anyhow::Result;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The recorded methods of one connection.
#[derive(Debug, Clone, Default)]
pub struct RecordedConnection {
    /// Its `connection_name`.
    pub name: String,
    /// The methods that the client sent, in order.
    pub methods: Vec<Value>,
}

/// The proxy. After a drop it accepts no new connections.
#[derive(Debug)]
pub struct AmqpTap {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<RecordedConnection>>>,
    acceptor: JoinHandle<()>,
}

impl AmqpTap {
    /// Listens on a free port and forwards to `upstream`.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&connections);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let index = {
                    let mut connections = notes.lock().unwrap_or_else(PoisonError::into_inner);
                    connections.push(RecordedConnection::default());
                    connections.len() - 1
                };
                tokio::spawn(carry(client, upstream, Arc::clone(&notes), index));
            }
        });
        Ok(Self {
            address,
            connections,
            acceptor,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections so far whose names contain `part`, oldest first.
    pub fn connections_named(&self, part: &str) -> Vec<RecordedConnection> {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections
            .iter()
            .filter(|one| one.name.contains(part))
            .cloned()
            .collect()
    }
}

impl Drop for AmqpTap {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn carry(
    mut client: TcpStream,
    upstream: SocketAddr,
    notes: Arc<Mutex<Vec<RecordedConnection>>>,
    index: usize,
) {
    let Ok(mut server) = TcpStream::connect(upstream).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let (mut unread, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let bytes = buffer.get(..count).unwrap_or_default();
            unread.extend_from_slice(bytes);
            note(&mut unread, &notes, index);
            if to_server.write_all(bytes).await.is_err() {
                return;
            }
        }
    };
    let down = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::select! {
        () = up => {}
        _ = down => {}
    }
}

/// Reads the whole frames of `unread` into the notes.
fn note(unread: &mut Vec<u8>, notes: &Mutex<Vec<RecordedConnection>>, index: usize) {
    loop {
        let (frame, rest) = match parse_frame(unread.as_slice()) {
            Ok((rest, frame)) => (frame, rest.len()),
            // Half a frame, or something that is no AMQP: nothing to note.
            Err(_) => return,
        };
        unread.drain(..unread.len() - rest);
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(connection) = notes.get_mut(index) else {
            return;
        };
        match frame {
            AMQPFrame::Method(_, class) => {
                if let AMQPClass::Connection(connection::AMQPMethod::StartOk(ok)) = &class {
                    connection.name = table(&ok.client_properties)["connection_name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned();
                }
                connection.methods.extend(method(class));
            }
            AMQPFrame::Header(_, header) => {
                if let Some(publish) = connection.methods.last_mut() {
                    publish["properties"] = properties(&header.properties);
                }
            }
            AMQPFrame::Heartbeat => connection.methods.push(json!({"method": "heartbeat"})),
            _ => {}
        }
    }
}

/// A method in the recorder's format; `None` for methods that are not recorded.
fn method(class: AMQPClass) -> Option<Value> {
    Some(match class {
        AMQPClass::Connection(method) => match method {
            connection::AMQPMethod::StartOk(ok) => json!({
                "method": "connection.start-ok", "client_properties": table(&ok.client_properties),
                "mechanism": ok.mechanism.as_str(), "locale": ok.locale.as_str(),
            }),
            connection::AMQPMethod::TuneOk(ok) => json!({
                "method": "connection.tune-ok", "channel_max": ok.channel_max, "frame_max": ok.frame_max,
                "heartbeat": ok.heartbeat,
            }),
            connection::AMQPMethod::Open(open) => json!({
                "method": "connection.open", "virtual_host": open.virtual_host.as_str(),
            }),
            connection::AMQPMethod::Close(_) => json!({"method": "connection.close"}),
            _ => return None,
        },
        AMQPClass::Channel(channel::AMQPMethod::Open(_)) => json!({"method": "channel.open"}),
        AMQPClass::Confirm(confirm::AMQPMethod::Select(select)) => json!({
            "method": "confirm.select", "nowait": select.nowait,
        }),
        AMQPClass::Exchange(exchange::AMQPMethod::Declare(one)) => json!({
            "method": "exchange.declare", "exchange": one.exchange.as_str(), "type": one.kind.as_str(),
            "passive": one.passive, "durable": one.durable, "auto_delete": one.auto_delete,
            "internal": one.internal, "nowait": one.nowait, "arguments": table(&one.arguments),
        }),
        AMQPClass::Queue(queue::AMQPMethod::Declare(one)) => json!({
            "method": "queue.declare", "queue": one.queue.as_str(), "passive": one.passive,
            "durable": one.durable, "exclusive": one.exclusive, "auto_delete": one.auto_delete,
            "nowait": one.nowait, "arguments": table(&one.arguments),
        }),
        AMQPClass::Queue(queue::AMQPMethod::Bind(bind)) => json!({
            "method": "queue.bind", "queue": bind.queue.as_str(), "exchange": bind.exchange.as_str(),
            "routing_key": bind.routing_key.as_str(), "nowait": bind.nowait, "arguments": table(&bind.arguments),
        }),
        AMQPClass::Queue(queue::AMQPMethod::Delete(delete)) => json!({
            "method": "queue.delete", "queue": delete.queue.as_str(), "if_unused": delete.if_unused,
            "if_empty": delete.if_empty, "nowait": delete.nowait,
        }),
        AMQPClass::Basic(basic::AMQPMethod::Qos(qos)) => json!({
            "method": "basic.qos", "prefetch_size": 0, "prefetch_count": qos.prefetch_count, "global": qos.global,
        }),
        AMQPClass::Basic(basic::AMQPMethod::Consume(one)) => json!({
            "method": "basic.consume", "queue": one.queue.as_str(), "consumer_tag": one.consumer_tag.as_str(),
            "no_local": one.no_local, "no_ack": one.no_ack, "exclusive": one.exclusive, "nowait": one.nowait,
            "arguments": table(&one.arguments),
        }),
        AMQPClass::Basic(basic::AMQPMethod::Publish(one)) => json!({
            "method": "basic.publish", "exchange": one.exchange.as_str(), "routing_key": one.routing_key.as_str(),
            "mandatory": one.mandatory, "immediate": one.immediate,
        }),
        _ => return None,
    })
}

fn properties(properties: &basic::AMQPProperties) -> Value {
    let mut all = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    let text =
        |text: &Option<amq_protocol::types::ShortString>| text.as_ref().map(|text| json!(text.as_str()));
    put("content_type", text(properties.content_type()));
    put("content_encoding", text(properties.content_encoding()));
    put("headers", properties.headers().as_ref().map(table));
    put(
        "delivery_mode",
        properties.delivery_mode().map(|mode| json!(mode)),
    );
    put("priority", properties.priority().map(|priority| json!(priority)));
    put("correlation_id", text(properties.correlation_id()));
    put("reply_to", text(properties.reply_to()));
    put("expiration", text(properties.expiration()));
    put("message_id", text(properties.message_id()));
    Value::Object(all)
}

fn table(table: &FieldTable) -> Value {
    let fields = table.inner().iter();
    Value::Object(
        fields
            .map(|(name, value)| (name.to_string(), field(value)))
            .collect(),
    )
}

fn field(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::LongString(text) => json!(String::from_utf8_lossy(text.as_bytes())),
        AMQPValue::ShortString(text) => json!(text.as_str()),
        AMQPValue::Boolean(flag) => json!(flag),
        AMQPValue::ShortInt(number) => json!(number),
        AMQPValue::LongInt(number) => json!(number),
        AMQPValue::LongLongInt(number) => json!(number),
        AMQPValue::FieldTable(fields) => table(fields),
        other => json!(format!("{other:?}")),
    }
}
