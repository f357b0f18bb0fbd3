//! Answers of calls: not lost, and not worked for twice. And the whole way through an in-process transport.

use std::time::Duration;

use magnum_common::error::Exception;
use magnum_common::model::ClusterStatus;
use magnum_conductor::handlers::{Accepted, Command};
use magnum_conductor::operations::database_watch::DatabaseWatch;
use magnum_conductor::operations::{State, sweep};
use magnum_conductor::rpc::{Consumer, TransportSink};
use magnum_driver_api::DriverError;
use magnum_objects as objects;
use magnum_rpc::{self as rpc, PublishError, RpcOptions};
use magnum_rpc_client::{CallError, RpcClient};
use magnum_rpc_server::RpcServer;
use magnum_tests::fake_driver::{Act, built};
use magnum_tests::{TestDatabase, on_every_database, wait};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::world::{World, as_call, context, create, delete, update};

async fn sent(world: &World, count: usize) -> Vec<(String, Result<Value, magnum_common::error::Fault>)> {
    wait::until("answers", Duration::from_secs(10), async || {
        let sent = world.sink.sent.lock().unwrap().clone();
        if sent.len() >= count {
            Ok(sent)
        } else {
            Err(sent.len())
        }
    })
    .await
    .unwrap()
}

on_every_database! {
    async fn a_call_is_answered_after_the_driver_returned_and_again_when_it_comes_again(database: TestDatabase) {
        let world = World::new(&database).await;
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = as_call(create());
        let operation = world.record(asked.clone()).await;
        let conductor = world.conductor("one");
        let answers = sent(&world, 1).await;
        let answer = answers[0].1.clone().unwrap();
        assert_eq!(answer["magnum_object.data"]["status"], "CREATE_IN_PROGRESS");
        assert_eq!(answer["magnum_object.data"]["stack_id"], "s");
        wait::until("the journal to know", Duration::from_secs(10), async || {
            if world.row(&operation).await.reply_pending { Err("pending") } else { Ok(()) }
        }).await.unwrap();

        let again = conductor.acceptor.accept(vec![asked], Duration::ZERO).await.unwrap().remove(0).unwrap();
        assert_eq!(again, Accepted::Known { operation: operation.clone(), answered: true });
        conductor.services.answers.send(&operation);
        let answers = sent(&world, 2).await;
        assert_eq!(answers[0], answers[1]);
        assert_eq!(world.driver.calls().len(), 1, "answered again, not executed again");
    }

    async fn a_failed_call_gets_the_exception(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        world.driver.then(Act::Fail(DriverError::NotSupported("this driver cannot".into())));
        world.record(as_call(create())).await;
        conductor.wake();
        let answers = sent(&world, 1).await;
        let fault = answers[0].1.clone().unwrap_err();
        assert_eq!((fault.exception, fault.message.as_str()), (Exception::NotSupported, "this driver cannot"));
    }

    async fn an_answer_that_could_not_be_sent_is_sent_later(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        *world.sink.fail.lock().unwrap() = Some(PublishError::Disconnected("cut".into()));
        let operation = world.record(as_call(create())).await;
        conductor.wake();
        world.reaches(&operation, State::Succeeded).await;
        assert!(world.row(&operation).await.reply_pending);
        *world.sink.fail.lock().unwrap() = None;
        // The sweep leaves young answers to the conductor that made them.
        database.execute("UPDATE conductor_operation SET updated_ms = 0").await.unwrap();
        sweep::pass(&conductor.services, &mut DatabaseWatch::new(Duration::from_secs(60))).await.unwrap();
        sent(&world, 1).await;
    }

    async fn the_whole_way_from_a_client_and_back(database: TestDatabase) {
        let world = World::new(&database).await;
        let options = RpcOptions::for_url(&format!("fake://{}", database.name)).unwrap();
        let transport = rpc::connect_with(options.clone(), "test").unwrap();
        let conductor = world.conductor("one");
        let (answers, due) = magnum_conductor::operations::replies::queue();
        let mut services = conductor.services.clone();
        services.answers = answers.clone();
        let sink = std::sync::Arc::new(TransportSink(transport.clone()));
        let stop = CancellationToken::new();
        let replies = magnum_conductor::operations::replies::Replies::new(
            world.db.clone(), services.me.clone(), sink, due);
        let replies = tokio::spawn(replies.run(CancellationToken::new()));
        let executor = tokio::spawn(magnum_conductor::operations::Executor::new(services.clone()).run(stop.clone()));
        conductor.stop.cancel();
        let consumer = Consumer {
            server: RpcServer::start(transport.clone(), &options, "server-1").await.unwrap(),
            transport: transport.clone(),
            answerer: world.answerer(),
            acceptor: conductor.acceptor.clone(),
            answers,
            monitors: services.monitors.clone(),
            signals: services.signals.clone(),
            batch: 64,
        };
        let consumer = tokio::spawn(consumer.run(stop.clone()));
        let client = RpcClient::new(transport.clone(), &options);
        let who = context("p");
        let object = |value: Value| -> Map<String, Value> { value.as_object().cloned().unwrap() };

        let pong = client.call(&who, "ping_conductor", Map::new()).await.unwrap();
        assert_eq!(pong, json!(true));
        let unknown = client.call(&who, "cluster_paint", Map::new()).await.unwrap_err();
        let CallError::Remote(failure) = unknown else { panic!("{unknown}"); };
        assert_eq!(failure.class, "NoSuchMethod");
        let missing = client.call(&who, "cluster_delete", Map::new()).await.unwrap_err();
        assert!(missing.to_string().contains("uuid"), "{missing}");
        let nobody = client
            .call(&who, "cluster_delete", object(json!({"uuid": "00000000-0000-4000-8000-000000000000"})))
            .await
            .unwrap_err();
        let CallError::Remote(failure) = nobody else { panic!("{nobody}"); };
        assert_eq!(failure.class, "ClusterNotFound");

        let asked = create();
        let Command::ClusterCreate(create) = &asked.command else { panic!("a create"); };
        let cluster = objects::encode_changed(create.cluster.as_ref(),
            &["uuid", "name", "project_id", "user_id", "cluster_template_id", "labels"]);
        let answer = client
            .call(&who, "cluster_create", object(json!({
                "cluster": cluster, "master_count": 1, "node_count": 2, "create_timeout": 60})))
            .await
            .unwrap();
        assert_eq!(answer["magnum_object.data"]["status"], "CREATE_COMPLETE");
        let uuid = asked.command.cluster();
        assert_eq!(world.groups(uuid).await.len(), 2);
        client.cast(&who, "cluster_delete", object(json!({"uuid": uuid.as_str()}))).await.unwrap();
        wait::until("the cluster to be gone", Duration::from_secs(10), async || {
            match world.cluster(uuid).await { None => Ok(()), Some(cluster) => Err(format!("{:?}", cluster.status)) }
        }).await.unwrap();
        // A refused cast is in the journal with its reason, and the consumer goes on.
        client.cast(&who, "cluster_delete", object(json!({"uuid": uuid.as_str()}))).await.unwrap();
        client.cast(&who, "nonsense", Map::new()).await.unwrap();
        assert_eq!(client.call(&who, "ping_conductor", Map::new()).await.unwrap(), json!(true));
        stop.cancel();
        consumer.await.unwrap();
        executor.await.unwrap();
        replies.abort();
        world.nothing_is_open().await;
    }

    async fn a_refused_call_is_answered_from_the_journal(database: TestDatabase) {
        let world = World::new(&database).await;
        let asked = create();
        let uuid = asked.command.cluster().clone();
        world.record(asked).await;
        let accepted = world.accept(as_call(update(&uuid, 9))).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Refused, answered: true, .. }), "{accepted:?}");
        let accepted = world.accept(as_call(delete(&uuid))).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Queued, answered: false, .. }), "{accepted:?}");
    }
}
