//! Questions that wait for another service hold up nothing that has to be recorded.

use std::time::Duration;

use magnum_conductor::certificates::Certificates;
use magnum_conductor::handlers::{Answerer, Command};
use magnum_conductor::rpc::Consumer;
use magnum_conductor::seal::JournalKey;
use magnum_config::{CertManagerType, Settings};
use magnum_objects as objects;
use magnum_rpc::{self as rpc, DEFAULT_PREFETCH, RpcOptions};
use magnum_rpc_client::RpcClient;
use magnum_rpc_server::RpcServer;
use magnum_tests::{TestDatabase, on_every_database, rabbitmq, wait};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::world::{World, context, create};

/// Certificates in a Barbican whose Keystone takes connections and says nothing.
async fn silent(world: &World) -> (Certificates, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = Settings::default();
    settings.certificates.cert_manager_type = CertManagerType::Barbican;
    let keystone = &mut settings.keystone_auth;
    keystone.auth_url = Some(format!("http://{}/v3", listener.local_addr().unwrap()));
    keystone.username = Some("magnum".to_owned());
    keystone.project_name = Some("service".to_owned());
    keystone.password = Some(magnum_common::secret::Secret::new("secret"));
    keystone.timeout = Some(Duration::from_secs(600));
    settings.default.rpc_response_timeout = Duration::from_secs(600);
    (
        Certificates::new(&settings, world.db.clone(), JournalKey::clone(&world.key)),
        listener,
    )
}

on_every_database! {
    async fn requests_are_recorded_while_more_questions_wait_than_the_broker_lets_us_hold(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = world.conductor("one");
        let uuid = world.complete_cluster(&conductor).await;
        database.execute("UPDATE cluster SET ca_cert_ref = 'http://b/v1/containers/6a1f7e0c-0000-4000-8000-000000000001'").await.unwrap();
        let vhost = rabbitmq::vhost().await.unwrap();
        let options = RpcOptions::for_url(&vhost.transport_url()).unwrap();
        let transport = rpc::connect_with(options.clone(), "test").unwrap();
        let (certificates, keystone) = silent(&world).await;
        let consumer = Consumer {
            server: RpcServer::start(transport.clone(), &options, "server-1").await.unwrap(),
            transport: transport.clone(),
            answerer: Answerer::new(world.db.clone(), certificates),
            acceptor: conductor.acceptor.clone(),
            answers: conductor.services.answers.clone(),
            monitors: conductor.services.monitors.clone(),
            signals: conductor.services.signals.clone(),
            batch: 64,
        };
        let stop = CancellationToken::new();
        let consumer = tokio::spawn(consumer.run(stop.clone()));
        let client = RpcClient::new(transport.clone(), &options);
        let object = |value: Value| -> Map<String, Value> { value.as_object().cloned().unwrap() };
        let cluster = world.cluster(&uuid).await.unwrap();
        let asked = object(json!({"cluster": objects::encode_changed(&cluster, &["uuid"])}));
        let mut questions = JoinSet::new();
        for _ in 0..DEFAULT_PREFETCH + 20 {
            let (client, asked) = (client.clone(), asked.clone());
            questions.spawn(async move { client.call(&context("p"), "get_ca_certificate", asked).await });
        }
        let received = conductor.services.signals.clone();
        wait::until("the questions to be held", Duration::from_secs(30), async || {
            let count = received.messages.load(std::sync::atomic::Ordering::Relaxed);
            if count >= u64::from(DEFAULT_PREFETCH) { Ok(()) } else { Err(count) }
        }).await.unwrap();
        if let Some(answer) = questions.try_join_next() { panic!("answered while Keystone says nothing: {answer:?}"); }
        let new = create();
        let Command::ClusterCreate(create) = &new.command else { panic!("a create"); };
        let cluster = objects::encode_changed(create.cluster.as_ref(),
            &["uuid", "name", "project_id", "user_id", "cluster_template_id", "labels"]);
        client.cast(&context("p"), "cluster_create", object(json!({
            "cluster": cluster, "master_count": 1, "node_count": 2, "create_timeout": 60}))).await.unwrap();
        wait::until("the create to be recorded", Duration::from_secs(30), async || {
            world.cluster(new.command.cluster()).await.map(drop).ok_or("not there")
        }).await.unwrap();
        // Keystone goes away, and each question gets its exception.
        drop(keystone);
        while let Some(answer) = questions.join_next().await {
            assert!(answer.unwrap().is_err());
        }
        stop.cancel();
        consumer.await.unwrap();
    }
}
