//! Options of `[oslo_messaging_rabbit]` and their kin, by what they do on a real broker and for a Python peer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_rpc::{Transport, WireFormat, connect_with};
use magnum_rpc_server::{Incoming, RpcServer, reply};
use magnum_tests::certificates::{Authority, Signed};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::rabbitmq::{self, PASSWORD, Rabbitmq, USER};
use magnum_tests::wait;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::interop::peer;
use super::{Bed, SOON, args, next, nobody};

/// Answers every call with its arguments until the server ends.
async fn echo(mut server: RpcServer, transport: Arc<dyn Transport>) {
    while let Some(Incoming { request, delivery }) = server.recv().await {
        if let Some(address) = &request.reply {
            let answer = Ok(Value::Object(request.args));
            reply(transport.as_ref(), address, answer).await.expect("a reply");
        }
        delivery.ack().await;
    }
}

#[tokio::test]
async fn compressed_requests_and_replies_are_read_by_python_and_by_us() -> Result<()> {
    for compression in ["gzip", "bzip2"] {
        let query = format!("rabbit_quorum_queue=true&kombu_compression={compression}");
        let vhost = rabbitmq::vhost().await?;
        let mut python = peer("oslo_server.py", &vhost).await?;
        let bed = Bed::new(&vhost.transport_url(), &query)?;
        bed.client().cast(&nobody(), "squeezed", args(1)).await?;
        let seen = python.next_event(SOON).await?;
        assert_eq!(
            (&seen["method"], &seen["args"]),
            (&json!("squeezed"), &json!({"n": 1}))
        );
        drop(python);

        let vhost = rabbitmq::vhost().await?;
        let bed = Bed::new(&vhost.transport_url(), &query)?;
        let server = bed.server("one").await?;
        server.stop_consuming().await;
        bed.client().cast(&nobody(), "squeezed", args(2)).await?;
        let waiting = vhost.management().peek("magnum-conductor", 1).await?;
        let label = waiting[0]["properties"]["headers"]["compression"].as_str();
        let expected = if compression == "gzip" {
            "application/x-gzip"
        } else {
            "application/x-bz2"
        };
        assert_eq!(label, Some(expected));
        server.resume().await;
        tokio::spawn(echo(server, Arc::clone(&bed.transport)));
        assert_eq!(bed.client().call(&nobody(), "m", args(3)).await?, json!({"n": 3}));
        let mut client = peer("oslo_client.py", &vhost).await?;
        let call = json!({"do": "call", "method": "echo", "args": {"n": 4}, "context": {}});
        assert_eq!(client.ask(call).await??, json!({"n": 4}));
    }
    Ok(())
}

#[tokio::test]
async fn message_pack_goes_between_our_programs_and_is_lost_at_a_python_server() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let mut bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    bed.options.addressing.format = WireFormat::MessagePack;
    let mut server = bed.server("one").await?;
    bed.client().cast(&nobody(), "m", args(1)).await?;
    let incoming = next(&mut server).await;
    assert_eq!(incoming.request.args, args(1));
    let message = incoming.delivery.message();
    assert_eq!(message.content_type.as_deref(), Some("application/x-msgpack"));
    incoming.delivery.ack().await;
    tokio::spawn(echo(server, Arc::clone(&bed.transport)));
    assert_eq!(bed.client().call(&nobody(), "m", args(2)).await?, json!({"n": 2}));
    // The same server answers a Python caller in JSON.
    let mut client = peer("oslo_client.py", &vhost).await?;
    let call = json!({"do": "call", "method": "echo", "args": {"n": 3}, "context": {}});
    assert_eq!(client.ask(call).await??, json!({"n": 3}));

    let vhost = rabbitmq::vhost().await?;
    let mut python = peer("oslo_server.py", &vhost).await?;
    let mut bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    bed.options.addressing.format = WireFormat::MessagePack;
    bed.client().cast(&nobody(), "packed", args(1)).await?;
    bed.options.addressing.format = WireFormat::Json;
    bed.client().cast(&nobody(), "plain", args(2)).await?;
    let seen = python.next_event(SOON).await?;
    assert_eq!(
        seen["method"], "plain",
        "the packed one was rejected, as documented"
    );
    Ok(())
}

#[tokio::test]
async fn a_server_that_starts_again_finds_its_queues_by_their_names() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let locks = tempfile::tempdir()?;
    // Without a directory for the locks it is refused by name.
    let query = "use_queue_manager=true&hostname=n1&processname=p";
    let refused = Bed::new(&vhost.transport_url(), query).map(drop).unwrap_err();
    ensure!(
        refused.to_string().contains("[oslo_concurrency] lock_path"),
        "{refused}"
    );
    let mut bed = Bed::new(&vhost.transport_url(), "hostname=n1&processname=p")?;
    bed.options.rabbit.use_queue_manager = true;
    bed.options.rabbit.lock_path = Some(locks.path().to_owned());
    bed.transport = connect_with(bed.options.clone(), "test")?;

    let (one, two) = (bed.server("one").await?, bed.server("two").await?);
    let queue = |number: u32| format!("magnum-conductor_fanout_n1:p:{number}");
    let management = vhost.management();
    for number in [1, 2] {
        management.queue(&queue(number)).await?;
    }
    // Two that live never share one; one that comes after the first takes its place.
    one.stop().await;
    let again = bed.server("one").await?;
    management.queue(&queue(1)).await?;
    assert!(management.queue(&queue(3)).await.is_err());
    tokio::spawn(echo(two, Arc::clone(&bed.transport)));
    tokio::spawn(echo(again, Arc::clone(&bed.transport)));
    assert_eq!(bed.client().call(&nobody(), "m", args(1)).await?, json!({"n": 1}));
    management.queue("reply_n1:p:3").await?;
    Ok(())
}

#[tokio::test]
async fn a_stream_gives_every_fanout_to_every_server_once_also_over_a_loss() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let query = "rabbit_stream_fanout=true&rabbit_transient_quorum_queue=true&rabbit_qos_prefetch_count=10";
    let proxy = ChaosProxy::start(vhost.address).await?;
    let behind = Bed::new(&vhost.transport_url_via(proxy.address()), query)?;
    let direct = Bed::new(&vhost.transport_url(), query)?;
    let (mut lost, mut kept) = (behind.server("one").await?, direct.server("two").await?);
    let seen = async |server: &mut RpcServer, n: u64| {
        let Incoming { request, delivery } = next(server).await;
        assert_eq!((request.method.as_str(), request.args), ("all", args(n)));
        delivery.ack().await;
    };
    direct.client().fanout_cast(&nobody(), "all", args(1)).await?;
    seen(&mut lost, 1).await;
    seen(&mut kept, 1).await;
    proxy.cut();
    for n in 2..5 {
        direct.client().fanout_cast(&nobody(), "all", args(n)).await?;
        seen(&mut kept, n).await;
    }
    proxy.restore();
    for n in 2..5 {
        seen(&mut lost, n).await;
    }
    lost.stop().await;
    let stream = vhost.management().queue("magnum-conductor_fanout").await?;
    assert_eq!(
        stream["arguments"]["x-queue-type"], "stream",
        "it outlives its readers"
    );
    Ok(())
}

#[tokio::test]
async fn when_one_of_two_hosts_dies_the_other_carries_on() -> Result<()> {
    for strategy in ["round-robin", "shuffle"] {
        let vhost = rabbitmq::vhost().await?;
        let hosts = [
            ChaosProxy::start(vhost.address).await?,
            ChaosProxy::start(vhost.address).await?,
        ];
        let [a, b] = [&hosts[0], &hosts[1]].map(ChaosProxy::address);
        let url = format!(
            "rabbit://{USER}:{PASSWORD}@{a},{USER}:{PASSWORD}@{b}/{}",
            vhost.name
        );
        let query = format!("rabbit_quorum_queue=true&kombu_failover_strategy={strategy}");
        let bed = Bed::new(&url, &query)?;
        let mut server = bed.server("one").await?;
        for (acknowledged, (dies, lives)) in (1..).zip([(0, 1), (1, 0), (0, 1)]) {
            hosts[lives].restore();
            hosts[dies].cut();
            let before = hosts[lives].accepted();
            let cast = timeout(SOON, bed.client().cast(&nobody(), "m", args(dies as u64))).await?;
            cast.with_context(|| format!("host {dies} is dead"))?;
            let Incoming { request, delivery } = next(&mut server).await;
            assert_eq!(request.args, args(dies as u64));
            delivery.ack().await;
            // An acknowledgement that was under way when its line was cut would bring the message again. How many came
            // is a count that only rises; the queue's length may still be that of the time before the message.
            wait::until("the acknowledgement to arrive", SOON, async || {
                let queue = vhost.management().queue("magnum-conductor").await?;
                let count: u64 = queue["message_stats"]["ack"].as_u64().unwrap_or(0);
                ensure!(count >= acknowledged, "{count} of {acknowledged}");
                Ok(())
            })
            .await?;
            assert!(hosts[lives].accepted() >= before);
        }
    }
    Ok(())
}

/// A host that takes connections and never says a word is not asked again and again.
#[tokio::test]
async fn a_host_that_hangs_from_the_beginning_does_not_hide_the_other() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let (hangs, lives) = (
        ChaosProxy::start(vhost.address).await?,
        ChaosProxy::start(vhost.address).await?,
    );
    let direct = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let _server = direct.server("one").await?;
    hangs.stall();
    let [a, b] = [&hangs, &lives].map(ChaosProxy::address);
    let url = format!(
        "rabbit://{USER}:{PASSWORD}@{a},{USER}:{PASSWORD}@{b}/{}",
        vhost.name
    );
    // Each begins with either host, at random: ten begin with the one that lives once in a thousand runs.
    let casts = (0..10).map(async |n| {
        let mut bed = Bed::new(&url, "rabbit_quorum_queue=true")?;
        bed.options.addressing.publish_timeout = Duration::from_secs(20);
        bed.client().cast(&nobody(), "m", args(n)).await?;
        anyhow::Ok(())
    });
    for outcome in futures::future::join_all(casts).await {
        outcome?;
    }
    assert!(hangs.accepted() > 0, "nobody began with it");
    Ok(())
}

#[tokio::test]
async fn a_ping_of_oslos_is_answered_if_that_is_enabled() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let mut bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    bed.options.addressing.ping_enabled = true;
    let server = bed.server("one").await?;
    let serving = tokio::spawn(echo(server, Arc::clone(&bed.transport)));
    let mut client = peer("oslo_client.py", &vhost).await?;
    let ping = json!({"do": "call", "method": "oslo_rpc_server_ping", "args": {"x": 1}, "context": {}});
    assert_eq!(client.ask(ping.clone()).await??, "pong");
    serving.abort();

    // Otherwise it is a request like any other.
    bed.options.addressing.ping_enabled = false;
    tokio::spawn(echo(bed.server("two").await?, Arc::clone(&bed.transport)));
    assert_eq!(client.ask(ping).await??, json!({"x": 1}));
    Ok(())
}

#[tokio::test]
async fn a_client_certificate_is_demanded_and_can_be_the_login() -> Result<()> {
    let authority = Authority::new()?;
    let broker = authority.sign("broker", "IP:127.0.0.1")?;
    let node = Rabbitmq::with_mutual_tls(&authority, &broker).await?;
    let vhost = node.vhost().await?;
    node.management()
        .create_passwordless_user("conductor", &vhost.name)
        .await?;
    let port = node.tls_address().context("no TLS")?.port();
    let ca = format!("ssl=true&ssl_ca_file={}", authority.certificate().display());
    let Signed { certificate, key } = authority.sign("conductor", "DNS:conductor")?;
    let own = format!(
        "{ca}&ssl_cert_file={}&ssl_key_file={}",
        certificate.display(),
        key.display()
    );
    let url = format!("rabbit://{USER}:{PASSWORD}@127.0.0.1:{port}/{}", vhost.name);
    let nameless = format!("rabbit://127.0.0.1:{port}/{}", vhost.name);
    for (url, query) in [
        (&url, own.clone()),
        (&url, format!("{own}&rabbit_login_method=PLAIN")),
        (&nameless, format!("{own}&rabbit_login_method=EXTERNAL")),
    ] {
        let bed = Bed::new(url, &query)?;
        let mut server = bed.server("one").await?;
        bed.client().cast(&nobody(), "m", args(1)).await?;
        next(&mut server).await.delivery.ack().await;
        server.stop().await;
        bed.transport.close().await;
    }
    let mut bed = Bed::new(&url, &ca)?;
    bed.options.addressing.publish_timeout = Duration::from_secs(2);
    let error = bed.client().cast(&nobody(), "m", Map::new()).await.unwrap_err();
    ensure!(error.to_string().contains("ssl_cert_file"), "{error}");
    Ok(())
}
