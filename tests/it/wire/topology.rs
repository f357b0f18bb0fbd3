//! Declarations equal the recorded ones, method by method, for every option. What really goes to a
//! broker is compared in `broker/topology.rs`.

use magnum_rpc::topology::{self, Argument, Arguments, Declaration, ExchangeKind};
use magnum_rpc::{Names, RabbitOptions, RpcOptions};
use serde_json::{Map, Value, json};

use super::load_all;

fn names() -> Names {
    Names {
        exchange: "magnum".to_owned(),
        topic: "magnum-conductor".to_owned(),
    }
}

/// The recording's options, given as an operator would in the URL.
fn options(recording: &Value) -> RabbitOptions {
    let query: Vec<String> = recording["options"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| {
            format!(
                "{name}={}",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            )
        })
        .collect();
    let url = format!("rabbit://guest:guest@localhost/?{}", query.join("&"));
    RpcOptions::for_url(&url).unwrap().rabbit
}

fn arguments(arguments: &Arguments) -> Value {
    let value = |argument: &Argument| match argument {
        Argument::Text(text) => json!(text.as_ref()),
        Argument::Number(number) => json!(number),
        Argument::Flag(flag) => json!(flag),
    };
    Value::Object(
        arguments
            .iter()
            .map(|(name, a)| ((*name).to_owned(), value(a)))
            .collect(),
    )
}

/// A declaration in the recorder's words. What is constant here is constant in the rabbit transport too.
fn method(declaration: &Declaration) -> Value {
    match declaration {
        Declaration::Prefetch(count) => json!({
            "method": "basic.qos", "prefetch_size": 0, "prefetch_count": count, "global": false,
        }),
        Declaration::Exchange(exchange) => json!({
            "method": "exchange.declare", "exchange": exchange.name,
            "type": match exchange.kind { ExchangeKind::Topic => "topic", ExchangeKind::Fanout => "fanout" },
            "passive": false, "durable": exchange.durable, "auto_delete": exchange.auto_delete,
            "internal": false, "nowait": false, "arguments": {},
        }),
        Declaration::Queue(queue) => json!({
            "method": "queue.declare", "queue": queue.name, "passive": false, "durable": queue.durable,
            "exclusive": false, "auto_delete": queue.auto_delete, "nowait": false,
            "arguments": arguments(&queue.arguments),
        }),
        Declaration::Bind {
            queue,
            exchange,
            routing_key,
        } => json!({
            "method": "queue.bind", "queue": queue, "exchange": exchange, "routing_key": routing_key,
            "nowait": false, "arguments": {},
        }),
        Declaration::Consume {
            queue,
            tag,
            arguments: given,
        } => json!({
            "method": "basic.consume", "queue": queue, "consumer_tag": tag, "no_local": false, "no_ack": false,
            "exclusive": false, "nowait": false, "arguments": arguments(given),
        }),
    }
}

pub(super) fn methods(list: &[Declaration]) -> Vec<Value> {
    list.iter().map(method).collect()
}

/// The recorded methods without the recorder's own fields, publishes and confirm mode left out.
fn recorded(list: &Value) -> Vec<Value> {
    list.as_array()
        .unwrap()
        .iter()
        .filter(|method| {
            !matches!(
                method["method"].as_str(),
                Some("basic.publish" | "confirm.select")
            )
        })
        .map(|method| {
            let fields = method.as_object().unwrap().iter();
            let kept: Map<String, Value> = fields
                .filter(|(name, _)| !matches!(name.as_str(), "conn" | "from"))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            Value::Object(kept)
        })
        .collect()
}

/// The queue name in a recording that begins with `prefix`: some are random.
fn queue_named(list: &[Value], prefix: &str) -> String {
    let name = list.iter().find_map(|method| {
        let name = method["queue"].as_str()?;
        name.starts_with(prefix).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| panic!("no queue {prefix}…"))
}

#[test]
fn a_servers_start_equals_the_recording_for_each_option() {
    let mut compared = 0;
    for (name, recording) in load_all("rpc/topology", "") {
        let expected = recorded(&recording["server_start"]);
        let server_id = queue_named(&expected, "magnum-conductor.").replace("magnum-conductor.", "");
        let fanout = queue_named(&expected, "magnum-conductor_fanout");
        let ours = topology::server(&names(), &server_id, &fanout, &options(&recording));
        assert_eq!(methods(&ours), expected, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 16);
}

#[test]
fn a_callers_declarations_equal_the_recording_for_each_option() {
    for (name, recording) in load_all("rpc/topology", "") {
        let expected = recorded(&recording["call_and_fanout"]);
        let options = options(&recording);
        let mut ours = topology::reply_listener(&queue_named(&expected, "reply_"), &options);
        ours.push(topology::control_exchange(&names(), &options));
        ours.push(topology::fanout_exchange(&names(), &options));
        assert_eq!(methods(&ours), expected, "{name}");
    }
}
