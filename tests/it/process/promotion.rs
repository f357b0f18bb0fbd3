//! PostgreSQL with a synchronous standby: the primary is killed and the standby promoted, behind the same address. The
//! programs go on without a restart; nothing that was confirmed is lost.

use anyhow::Result;
use magnum_tests::client_stream::{self, ClientStream};
use magnum_tests::deployment::Deployment;
use magnum_tests::postgres_pair::PostgresPair;
use magnum_tests::{TestDatabase, rabbitmq};

const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_promoted_and_nothing_is_lost() -> Result<()> {
    let mut pair = PostgresPair::start().await?;
    let database = TestDatabase::on_postgres(pair.primary())
        .await?
        .at(pair.address());
    let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
    client_stream::prepare(&mut deployment);
    let _conductors = [
        deployment.conductor("one").await?,
        deployment.conductor("two").await?,
    ];
    let api = deployment.api().await?;
    let stream = ClientStream::default();
    let round = async || {
        stream.goes_on(12).await?;
        pair.fail_over().await?;
        stream.goes_on(12).await?;
        pair.rebuild().await?;
        stream.goes_on(8).await?;
        pair.kill_standby().await?;
        pair.restart_standby().await?;
        Ok(())
    };
    let rounds = stream
        .during(std::slice::from_ref(&api.rest), CLIENTS, round)
        .await?;
    let summary = stream.verdict(&deployment, &deployment.database).await?;
    eprintln!(
        "{} servers killed, half of them primaries: {summary:?}",
        2 * rounds
    );
    Ok(())
}
