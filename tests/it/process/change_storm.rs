//! A storm over everything that is not a create: clusters go through every kind of operation while conductors are
//! killed and broker and database restarted. Each request that was handed over is carried out once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use diesel::prelude::*;
use futures::StreamExt as _;
use magnum_common::secret::Secret;
use magnum_conductor::operations::OperationKind as Kind;
use magnum_config::DatabaseSection;
use magnum_db::{Database, schema};
use magnum_rpc::{OutgoingMessage, RpcOptions, Target, Transport, WireFormat, connect_with};
use magnum_tests::deployment::Deployment;
use magnum_tests::mariadb::Mariadb;
use magnum_tests::rabbitmq::Rabbitmq;
use magnum_tests::raw_rpc::enveloped;
use magnum_tests::{TestDatabase, wait};
use serde_json::Value;

use super::crash_matrix::Subject;
use super::storms::{Conductors, calm, storm};

const PATIENCE: Duration = Duration::from_secs(240);

const CLUSTERS: usize = 12;

/// What each cluster goes through, in this order.
const LIFE: &[Kind] = &[
    Kind::ClusterUpdate,
    Kind::ClusterResize,
    Kind::NodegroupCreate,
    Kind::NodegroupUpdate,
    Kind::CredentialRotate,
    Kind::ClusterUpgrade,
    Kind::RotateCaCertificate,
    Kind::NodegroupDelete,
    Kind::ClusterDelete,
];

/// Operations of a cluster and how many of them have succeeded.
async fn journalled(database: &Database, cluster: &str) -> Result<(i64, i64)> {
    use schema::conductor_operation::dsl as op;
    let cluster = cluster.to_owned();
    Ok(database
        .run(move |conn| {
            let of_cluster = op::conductor_operation.filter(op::cluster_uuid.eq(&cluster));
            let all: i64 = of_cluster.count().get_result(conn)?;
            let done: i64 = of_cluster
                .filter(op::state.eq("succeeded"))
                .count()
                .get_result(conn)?;
            Ok((all, done))
        })
        .await?)
}

/// Publishes as an API does.
struct Sender {
    transport: Arc<dyn Transport>,
    options: RpcOptions,
}

impl Sender {
    fn new(deployment: &Deployment) -> Result<Self> {
        let mut options = RpcOptions::for_url(&deployment.vhost.transport_url())?;
        options.rabbit.rabbit_quorum_queue = true;
        let transport = connect_with(options.clone(), "storm")?;
        Ok(Self { transport, options })
    }

    /// Sends until the broker confirms it. The message's own id tells a conductor that it is the same each time.
    async fn cast(&self, message: &Value) -> Result<()> {
        let body = Bytes::from(enveloped(message).to_string());
        wait::until("a request to be confirmed", PATIENCE, async || {
            let route = self.options.addressing.names.route(&Target::AnyServer);
            let message = OutgoingMessage::new(route, WireFormat::Json, body.clone());
            self.transport.publish(message).await
        })
        .await
    }
}

/// One cluster's life; each request is sent until the broker confirms it, and has succeeded before the next.
async fn live(sender: &Sender, database: &Database, subject: &Subject, accepted: &AtomicUsize) -> Result<()> {
    for (number, kind) in LIFE.iter().enumerate() {
        sender.cast(&subject.asked_for(*kind).message()?).await?;
        accepted.fetch_add(1, Ordering::Relaxed);
        // The create is the first of them.
        let expected = i64::try_from(number)? + 2;
        wait::until(&format!("{kind} to succeed"), PATIENCE, async || {
            let (all, done) = journalled(database, subject.cluster()).await?;
            ensure!(done == expected && all == expected, "{done} of {all} operations");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_change_survives_kills_and_restarts_of_everything() -> Result<()> {
    let broker = Rabbitmq::dedicated().await?;
    let server = Mariadb::dedicated().await?;
    let mut deployment =
        Deployment::on(TestDatabase::on_mariadb(&server).await?, broker.vhost().await?).await?;
    calm(&mut deployment);
    let mut conductors = Conductors::start(&deployment, 2).await?;
    let api = deployment.api().await?;
    let subjects = Subject::several(&deployment, &api, CLUSTERS).await?;
    let sender = Sender::new(&deployment)?;
    let database = Database::connect(&DatabaseSection {
        connection: Secret::new(deployment.database.url()),
        ..DatabaseSection::default()
    })
    .await?;

    let accepted = AtomicUsize::new(0);
    let all = CLUSTERS * LIFE.len();
    let weather = storm(&accepted, all, &broker, &server, &mut conductors);
    let lives = async {
        let lives = futures::stream::iter(&subjects)
            .map(|subject| live(&sender, &database, subject, &accepted))
            .buffer_unordered(CLUSTERS);
        lives
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<Result<Vec<()>>>()
    };
    futures::try_join!(lives, weather)?;
    deployment.record.assert_sound()?;
    for subject in &subjects {
        ensure!(api.rest.status(subject.cluster()).await?.is_none());
        ensure!(!deployment.record.is_built(subject.cluster()));
    }
    Ok(())
}
