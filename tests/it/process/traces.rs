//! One request, followed: by its id through the lines of every program, and by its trace from the client's header to
//! the driver's environment and to a collector.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::amqp_tap::AmqpTap;
use magnum_tests::collector::{Collector, Span};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::ports::free_port;
use magnum_tests::process::Program;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";
const SAYS: &str = "asking the cloud";

/// `traceparent` of a client that records.
fn parent() -> String {
    format!("00-{TRACE}-{CLIENT_SPAN}-01")
}

/// What came of a request for a cluster.
struct Asked {
    request: String,
    cluster: String,
}

/// Who asks.
fn caller(api: &Api) -> Rest {
    api.rest.as_somebody("the-project", "the-user")
}

/// Asks for a cluster with these headers.
async fn ask(api: &Api, labels: Value, headers: &[(&str, &str)]) -> Result<Asked> {
    let template = caller(api).create_template("small").await?;
    let body = json!({"name": "one", "cluster_template_id": template, "node_count": 1, "labels": labels});
    let mut request = reqwest::Client::new()
        .post(format!("{}/clusters", api.rest.base()))
        .header("X-Project-Id", "the-project")
        .header("X-User-Id", "the-user")
        .json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await?;
    let request = answer.headers()["x-openstack-request-id"].to_str()?.to_owned();
    let status = answer.status();
    let body: Value = answer.json().await?;
    ensure!(status.as_u16() == 202, "{status} {body}");
    Ok(Asked {
        request,
        cluster: body["uuid"].as_str().context("uuid")?.to_owned(),
    })
}

/// The value of a field of a text line.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}="))?;
    rest.split_whitespace().next()
}

/// The lines of a log that have the request's id, each as message and look-up of a field.
fn lines_of(program: &Program, request: &str, is_json: bool) -> Result<Vec<Line>> {
    let log = program.log();
    let lines = log.lines().filter(|line| line.contains(request));
    lines
        .map(|line| {
            let names = [
                "request.id",
                "project.id",
                "magnum.cluster.uuid",
                "magnum.operation.id",
            ];
            if !is_json {
                let twice = names
                    .iter()
                    .find(|name| line.matches(&format!(" {name}=")).count() > 1);
                ensure!(twice.is_none(), "{twice:?} stands twice: {line}");
                return Ok(Line {
                    text: line.to_owned(),
                    fields: names.map(|name| field(line, name).map(str::to_owned)),
                });
            }
            let parsed: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let fields = parsed.as_object().context("an object")?;
            ensure!(
                fields.values().all(|value| !value.is_object()),
                "not flat: {line}"
            );
            Ok(Line {
                text: parsed["message"].as_str().context("message")?.to_owned(),
                fields: names.map(|name| parsed[name].as_str().map(str::to_owned)),
            })
        })
        .collect()
}

struct Line {
    text: String,
    /// Request, project, cluster, operation.
    fields: [Option<String>; 4],
}

async fn followed_by_its_id(is_json: bool) -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("DEFAULT", "use_json", is_json);
    deployment.set("DEFAULT", "debug", true);
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let asked = ask(&api, json!({"scripted_says": SAYS}), &[]).await?;
    let operations = deployment.settled(PATIENCE).await?;
    let operation = operations[0]["id"].as_str().context("id")?;

    let at_api = lines_of(&api.program, &asked.request, is_json)?;
    for (text, names_cluster) in [("handed to the conductors", true), ("request answered", true)] {
        let line = at_api
            .iter()
            .find(|line| line.text.contains(text))
            .with_context(|| text.to_owned())?;
        let [request, project, cluster, _] = &line.fields;
        ensure!(
            request.as_deref() == Some(asked.request.as_str()),
            "{}",
            line.text
        );
        ensure!(project.as_deref() == Some("the-project"), "{}", line.text);
        ensure!(
            !names_cluster || cluster.as_deref() == Some(asked.cluster.as_str()),
            "{}",
            line.text
        );
    }
    let at_conductor = lines_of(&conductor, &asked.request, is_json)?;
    let driver = format!("driver: {SAYS}");
    for text in ["request recorded", driver.as_str(), "operation moved on"] {
        let line = at_conductor
            .iter()
            .find(|line| line.text.contains(text))
            .with_context(|| text.to_owned())?;
        let wanted = [
            asked.request.as_str(),
            "the-project",
            asked.cluster.as_str(),
            operation,
        ];
        ensure!(
            line.fields.iter().map(Option::as_deref).eq(wanted.map(Some)),
            "{}: {:?}",
            line.text,
            line.fields
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_is_followed_through_all_logs_by_its_id_in_text() -> Result<()> {
    followed_by_its_id(false).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_is_followed_through_all_logs_by_its_id_in_json() -> Result<()> {
    followed_by_its_id(true).await
}

/// The spans of the trace, when all of these are there: programs export each for itself.
async fn spans_with(collector: &Collector, names: &[&str]) -> Result<Vec<Span>> {
    wait::until("the spans", PATIENCE, async || {
        let mut spans = collector.spans();
        spans.retain(|span| span.trace == TRACE);
        for name in names {
            let is_there = spans.iter().any(|span| span.name == *name);
            ensure!(is_there, "no {name} in {spans:?}");
        }
        Ok::<_, anyhow::Error>(spans)
    })
    .await
}

/// The names from a span up to the client.
fn way_up(spans: &[Span], from: &Span) -> Result<Vec<String>> {
    let mut way = vec![from.name.clone()];
    let mut at = from;
    while at.parent != CLIENT_SPAN {
        at = spans
            .iter()
            .find(|span| span.id == at.parent)
            .with_context(|| format!("the parent of {at:?}"))?;
        way.push(at.name.clone());
    }
    Ok(way)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_has_the_request_the_message_each_step_and_the_driver_call_in_one_tree() -> Result<()> {
    let collector = Collector::start().await?;
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("otlp", "endpoint", collector.url());
    deployment.set("otlp", "headers", "authorization=Bearer hunter2");
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let asked = ask(
        &api,
        json!({}),
        &[("traceparent", &parent()), ("tracestate", "congo=1")],
    )
    .await?;
    deployment.settled(PATIENCE).await?;

    let spans = spans_with(
        &collector,
        &["POST /v1/clusters", "publish", "message", "operation"],
    )
    .await?;
    let spans_named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let only = |name: &str| match spans_named(name).as_slice() {
        [only] => Ok(*only),
        other => Err(anyhow::anyhow!("{name}: {other:?}")),
    };
    let run = ["attempt", "operation", "message", "publish", "POST /v1/clusters"];
    let call = only("driver call")?;
    ensure!(
        way_up(&spans, call)? == [&["driver call", "step"], &run[..]].concat(),
        "{:?}",
        way_up(&spans, call)
    );
    let steps: Vec<&Span> = spans_named("step");
    for step in &steps {
        ensure!(way_up(&spans, step)? == [&["step"], &run[..]].concat());
    }
    let mut names: Vec<&str> = steps
        .iter()
        .map(|step| step.attributes["magnum.operation.step"].as_str())
        .collect();
    names.sort_unstable();
    ensure!(
        names == ["choose_driver", "create_cluster", "generate_certificates"],
        "{names:?}"
    );
    ensure!(way_up(&spans, only("accept")?)? == ["accept", "message", "publish", "POST /v1/clusters"]);
    for (name, service, kind) in [
        ("POST /v1/clusters", "magnum-api", 2),
        ("publish", "magnum-api", 4),
        ("message", "magnum-conductor", 5),
    ] {
        let span = only(name)?;
        ensure!(span.service == service && span.kind == kind, "{span:?}");
    }
    ensure!(only("operation")?.attributes["magnum.cluster.uuid"] == asked.cluster);
    ensure!(only("message")?.attributes["request.id"] == asked.request);

    let calls = deployment.record.begun("create", &asked.cluster)?;
    let given = format!("00-{TRACE}-{}-01", call.id);
    ensure!(
        calls[0].traceparent.as_deref() == Some(given.as_str()),
        "{calls:?}"
    );
    ensure!(calls[0].tracestate.as_deref() == Some("congo=1"), "{calls:?}");
    let headers = collector.headers();
    ensure!(
        headers
            .iter()
            .all(|headers| headers["authorization"] == "Bearer hunter2")
    );
    for program in [&conductor, &api.program] {
        ensure!(!program.log().contains("hunter2"), "a secret is in the log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_export_the_trace_of_the_client_reaches_the_driver() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let asked = ask(
        &api,
        json!({}),
        &[("traceparent", &parent()), ("tracestate", "congo=1")],
    )
    .await?;
    deployment.settled(PATIENCE).await?;
    let calls = deployment.record.begun("create", &asked.cluster)?;
    ensure!(calls[0].traceparent == Some(parent()), "{calls:?}");
    ensure!(calls[0].tracestate.as_deref() == Some("congo=1"), "{calls:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_trace_is_ignored_and_another_one_begun() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let malformed = parent().to_uppercase();
    let asked = ask(
        &api,
        json!({}),
        &[("traceparent", &malformed), ("tracestate", "congo=1")],
    )
    .await?;
    deployment.settled(PATIENCE).await?;
    let calls = deployment.record.begun("create", &asked.cluster)?;
    let given = calls[0].traceparent.as_deref().context("a trace")?;
    ensure!(
        given.starts_with("00-") && !given.contains(TRACE) && given.ends_with("-00"),
        "{given}"
    );
    ensure!(calls[0].tracestate.is_none(), "{calls:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_in_another_conductor_continues_the_trace() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("conductor", "operation_lease", 2);
    let mut first = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let headers = [("traceparent", parent()), ("tracestate", "congo=1".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let asked = ask(&api, json!({"scripted_create": "wait"}), &headers).await?;
    let begun = async |count: usize| {
        wait::until("the driver's call", PATIENCE, async || {
            let calls = deployment.record.begun("create", &asked.cluster)?;
            ensure!(calls.len() == count, "{calls:?}");
            Ok::<_, anyhow::Error>(calls)
        })
        .await
    };
    begun(1).await?;
    first.kill().await?;
    let _second = deployment.conductor("two").await?;
    let calls = begun(2).await?;
    deployment.record.let_go(&asked.cluster)?;
    deployment.settled(PATIENCE).await?;
    for call in calls {
        ensure!(call.traceparent == Some(parent()), "{call:?}");
        ensure!(call.tracestate.as_deref() == Some("congo=1"), "{call:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_disturbs_no_request_and_is_logged_once() -> Result<()> {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("otlp", "endpoint", format!("http://{address}"));
    let api = deployment
        .api_on(|launch| launch.env("OTEL_BSP_SCHEDULE_DELAY", "100"))
        .await?;
    let away = "takes no spans";
    for round in 0..5 {
        api.rest.get("/clusters").await?.expect(200)?;
        if round == 0 {
            api.program.wait_log(away, PATIENCE).await?;
        }
    }
    // It is back: what is exported from now on arrives.
    let collector = Collector::on(address).await?;
    wait::until("a span", PATIENCE, async || {
        api.rest.get("/clusters").await?.expect(200)?;
        ensure!(!collector.spans().is_empty(), "none yet");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    api.program.wait_log("takes spans again", PATIENCE).await?;
    ensure!(
        api.program.log().matches(away).count() == 1,
        "{}",
        api.program.log()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oslo_server_takes_a_message_with_a_trace() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("api", "accept_wait", 0);
    let tap = AmqpTap::start(deployment.vhost.address).await?;
    let config = deployment.config_file("peer")?.display().to_string();
    let mut python = OsloPeer::start("oslo_server.py", &[&config]).await?;
    deployment.connect_via(Some(tap.address()), None);
    let api = deployment.api().await?;
    let asked = ask(
        &api,
        json!({}),
        &[("traceparent", &parent()), ("tracestate", "congo=1")],
    )
    .await?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_create"
            && seen["args"]["cluster"]["fields"]["uuid"] == asked.cluster.as_str(),
        "{seen}"
    );
    let said = tap.connections_named("sender");
    let headers: Vec<&Value> = said
        .iter()
        .flat_map(|said| &said.methods)
        .filter(|method| method["method"] == "basic.publish")
        .map(|method| &method["properties"]["headers"])
        .collect();
    ensure!(
        headers
            .iter()
            .any(|headers| headers["traceparent"] == parent() && headers["tracestate"] == "congo=1"),
        "{headers:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_an_oslo_client_begins_a_trace() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let asked = ask(&api, json!({}), &[]).await?;
    deployment.settled(PATIENCE).await?;
    let config = deployment.config_file("peer")?.display().to_string();
    let mut python = OsloPeer::start("oslo_client.py", &[&config]).await?;
    let delete = json!({"do": "cast", "method": "cluster_delete", "args": {"uuid": asked.cluster}, "context": {"project_id": "the-project"}});
    python.ask(delete).await??;
    caller(&api).wait_gone(&asked.cluster, PATIENCE).await?;
    let calls = deployment.record.begun("delete", &asked.cluster)?;
    let given = calls[0].traceparent.as_deref().context("a trace")?;
    let begun = deployment.record.begun("create", &asked.cluster)?;
    ensure!(
        given.len() == 55 && begun[0].traceparent.as_deref() != Some(given),
        "{given}"
    );
    Ok(())
}
