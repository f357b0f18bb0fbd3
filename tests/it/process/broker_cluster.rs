//! Three RabbitMQ nodes with quorum queues: any of them is killed while requests go on, the leader of the queue of requests,
//! too, and leadership moves without a kill. Nothing that was confirmed is lost, nothing is done twice.

use anyhow::Result;
use magnum_tests::client_stream::{self, ClientStream};
use magnum_tests::deployment::Deployment;
use magnum_tests::rabbitmq_cluster::RabbitmqCluster;
use magnum_tests::{Backend, TestDatabase};

const CLIENTS: usize = 4;
const QUEUE: &str = "magnum-conductor";

#[tokio::test(flavor = "multi_thread")]
async fn any_of_three_brokers_may_be_killed() -> Result<()> {
    let cluster = RabbitmqCluster::start().await?;
    let database = TestDatabase::empty(Backend::Mariadb).await?;
    let mut deployment = Deployment::on(database, cluster.vhost().await?).await?;
    client_stream::prepare(&mut deployment);
    let _conductors = [
        deployment.conductor("one").await?,
        deployment.conductor("two").await?,
    ];
    let (api, other) = (deployment.api().await?, deployment.api().await?);
    let stream = ClientStream::default();
    let apis = [api.rest.clone(), other.rest.clone()];
    let round = async || {
        stream.goes_on(8).await?;
        let leader = cluster.leader_of(&deployment.vhost, QUEUE).await?;
        cluster.kill(leader).await?;
        stream.goes_on(12).await?;
        cluster.restart(leader).await?;

        let leader = cluster.leader_of(&deployment.vhost, QUEUE).await?;
        let [follower, next] = [1, 2].map(|further| (leader + further) % cluster.size());
        cluster.kill(follower).await?;
        stream.goes_on(12).await?;
        cluster.restart(follower).await?;

        cluster
            .transfer_leadership(&deployment.vhost, QUEUE, next)
            .await?;
        Ok(())
    };
    let rounds = stream.during(&apis, CLIENTS, round).await?;
    let summary = stream.verdict(&deployment, &deployment.database).await?;
    eprintln!("{} brokers killed: {summary:?}", 2 * rounds);
    Ok(())
}
