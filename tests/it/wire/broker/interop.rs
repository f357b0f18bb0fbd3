//! Both directions with a real oslo.messaging: its client with our server, our client with its server.

use std::time::Duration;

use anyhow::Result;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_rpc::Transport;
use magnum_rpc_client::CallError;
use magnum_rpc_server::{CallMonitor, Incoming, RpcServer, reply};
use magnum_tests::builders::ConfigFile;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::rabbitmq::{self, Vhost};
use magnum_tests::run_dir::run_dir;
use serde_json::{Map, Value, json};

use super::{Bed, next};

pub(super) async fn peer(script: &str, vhost: &Vhost) -> Result<OsloPeer> {
    let folder = run_dir()?.folder("interop")?;
    let config = ConfigFile::for_test("sqlite://", &vhost.transport_url(), &folder)
        .write(&folder.join("magnum.conf"))?;
    OsloPeer::start(script, &[&config.display().to_string()]).await
}

/// Answers by the method's name until the server ends.
async fn answer(mut server: RpcServer, transport: std::sync::Arc<dyn Transport>) {
    while let Some(Incoming { request, delivery }) = server.recv().await {
        if let Some(address) = request.reply.clone() {
            let monitor = CallMonitor::start(&transport, &request);
            let fault = request.method.strip_prefix("raise_").map(|class| {
                let exception = Exception::ALL.iter().find(|exception| exception.name() == class);
                Fault::new(
                    *exception.expect("a class of ours"),
                    format!("a lone % and \"{class}\""),
                )
            });
            if request.method == "slow" {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            drop(monitor);
            let outcome = match &fault {
                Some(fault) => Err(fault),
                None => Ok(json!({"args": request.args, "user": request.context.user_id()})),
            };
            reply(transport.as_ref(), &address, outcome)
                .await
                .expect("a reply");
        }
        delivery.ack().await;
    }
}

#[tokio::test]
async fn a_python_client_calls_our_server_and_gets_results_and_real_exceptions() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let server = bed.server("one").await?;
    tokio::spawn(answer(server, std::sync::Arc::clone(&bed.transport)));
    let mut client = peer("oslo_client.py", &vhost).await?;
    let context = json!({"user_id": "u", "project_id": "p"});

    let echo = json!({"do": "call", "method": "echo", "args": {"text": "Größe ☃"}, "context": context});
    let result = client.ask(echo).await??;
    assert_eq!(result, json!({"args": {"text": "Größe ☃"}, "user": "u"}));

    let to_one = json!({"do": "call", "method": "echo", "args": {}, "context": context, "server": "one"});
    client.ask(to_one).await??;

    for exception in Exception::ALL {
        let method = format!("raise_{}", exception.name());
        let call = json!({"do": "call", "method": method, "args": {}, "context": context});
        let raised = client.ask(call).await?.unwrap_err();
        let rebuilt = matches!(exception.module(), "magnum.common.exception" | "builtins");
        let expected = if rebuilt { exception.name() } else { "RemoteError" };
        assert_eq!(raised.class, expected, "{raised}");
        if rebuilt {
            assert_eq!(raised.module, exception.module(), "{raised}");
        }
        assert!(raised.message.contains("a lone %"), "{raised}");
    }

    let wrong = json!({"do": "call", "method": "echo", "args": {}, "context": context, "version": "1.1"});
    let raised = client.ask(wrong).await?.unwrap_err();
    assert!(
        raised.message.contains("does not support RPC version 1.1"),
        "{raised}"
    );
    Ok(())
}

#[tokio::test]
async fn signs_of_life_carry_a_python_call_past_its_monitor() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let server = bed.server("one").await?;
    tokio::spawn(answer(server, std::sync::Arc::clone(&bed.transport)));
    let mut client = peer("oslo_client.py", &vhost).await?;
    let call = json!({"do": "call", "method": "slow", "args": {}, "context": {}, "call_monitor_timeout": 2, "timeout": 60});
    client.ask(call).await??;
    Ok(())
}

#[tokio::test]
async fn python_casts_and_fanouts_reach_our_server() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let mut server = bed.server("one").await?;
    let mut client = peer("oslo_client.py", &vhost).await?;
    for (target, method) in [
        (json!({}), "to_any"),
        (json!({"server": "one"}), "to_one"),
        (json!({"fanout": true}), "to_all"),
    ] {
        let mut cast =
            json!({"do": "cast", "method": method, "args": {"x": 1}, "context": {"project_id": "p"}});
        cast.as_object_mut()
            .unwrap()
            .extend(target.as_object().unwrap().clone());
        client.ask(cast).await??;
        let incoming = next(&mut server).await;
        assert_eq!(incoming.request.method, method);
        assert_eq!(
            incoming.request.args,
            Map::from_iter([("x".to_owned(), json!(1))])
        );
        assert_eq!(incoming.request.context.project_id(), Some("p"));
        assert!(incoming.request.unique_id.is_some() && incoming.request.reply.is_none());
        incoming.delivery.ack().await;
    }
    Ok(())
}

#[tokio::test]
async fn our_client_casts_and_calls_a_python_server() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let mut server = peer("oslo_server.py", &vhost).await?;
    let bed = Bed::new(&vhost.transport_url(), "rabbit_quorum_queue=true")?;
    let client = bed.client();
    let context = RequestContext::from_map(Map::from_iter([
        ("user_id".to_owned(), json!("u")),
        ("project_id".to_owned(), json!("p")),
    ]));
    let args = Map::from_iter([("uuid".to_owned(), json!("ü"))]);

    client.cast(&context, "cluster_delete", args.clone()).await?;
    let seen = server.next_event(super::SOON).await?;
    assert_eq!(seen["method"], "cluster_delete");
    assert_eq!(seen["args"], json!({"uuid": "ü"}));
    assert_eq!(seen["context"]["project_id"], "p");

    server
        .ask(json!({"do": "answer", "method": "ping_conductor", "result": [true, null]}))
        .await??;
    assert_eq!(
        client.call(&context, "ping_conductor", Map::new()).await?,
        json!([true, null])
    );
    assert_eq!(
        client.call_to("peer", &context, "other", Map::new()).await?,
        Value::Null
    );

    let raises =
        json!({"do": "answer", "method": "cluster_delete", "raises": "ClusterNotFound", "message": "gone"});
    server.ask(raises).await??;
    let Err(CallError::Remote(remote)) = client.call(&context, "cluster_delete", args).await else {
        panic!("an exception");
    };
    let fault = remote.to_fault().expect("a class of the catalogue");
    assert_eq!(fault.exception, Exception::ClusterNotFound);
    assert!(fault.message.contains("gone"), "{fault}");
    Ok(())
}
