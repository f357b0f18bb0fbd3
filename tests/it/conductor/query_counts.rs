//! How many statements a list or a look at many clusters costs: as many as for one cluster.
//!
//! The database server writes them down itself (its general log), and nobody else uses it. Each work is done once before
//! it is counted, so that connections are open, and then three times, of which the least counts: what goes on in the
//! background may add to a count, never take from it. Whether a connection that nobody has used for a second still lives
//! is asked on a slow machine more often than on a fast one: that does not count.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::Text;
use magnum_common::ids::{ClusterUuid, ConductorId, NodeGroupUuid};
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, NodeGroup, StringMap};
use magnum_conductor::operations::notice::NoticeQueue;
use magnum_conductor::periodic::health::{HealthCheck, Timing};
use magnum_conductor::periodic::status_sync::{Pace, StatusSync};
use magnum_conductor::store;
use magnum_driver_api::{DriverError, DriverReport, HealthReport};
use magnum_tests::deployment::Deployment;
use magnum_tests::mariadb::Mariadb;
use magnum_tests::{TestDatabase, rabbitmq};
use tokio_util::sync::CancellationToken;

use super::operations::world::{TEMPLATE, World};

const MANY: usize = 100;

/// Statements that the server has written down, without those of this connection and without the pool's question whether
/// a connection lives.
const STATEMENTS: &str = "SELECT CONVERT(argument USING utf8mb4) AS text FROM mysql.general_log \
     WHERE command_type IN ('Query', 'Execute') AND thread_id <> CONNECTION_ID() AND argument <> 'SELECT 1'";

/// The server's own list.
struct Counter(MysqlConnection);

#[derive(QueryableByName)]
struct Statement {
    #[diesel(sql_type = Text)]
    text: String,
}

impl Counter {
    fn on(database: &TestDatabase) -> Result<Self> {
        let mut connection = MysqlConnection::establish(&database.plain_url())?;
        connection.batch_execute("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON")?;
        Ok(Self(connection))
    }

    /// Statements that `work` costs.
    async fn of(&mut self, mut work: impl AsyncFnMut() -> Result<()>) -> Result<Statements> {
        work().await?;
        let mut least: Option<Vec<Statement>> = None;
        for _ in 0..3 {
            self.0.batch_execute("TRUNCATE mysql.general_log")?;
            work().await?;
            let seen: Vec<Statement> = diesel::sql_query(STATEMENTS).load(&mut self.0)?;
            if least.as_ref().is_none_or(|least| seen.len() < least.len()) {
                least = Some(seen);
            }
        }
        let least = least.context("no work was done")?;
        ensure!(!least.is_empty(), "nothing was counted");
        Ok(Statements(least.into_iter().map(|one| one.text).collect()))
    }
}

/// What a work costs. Alike are as many.
struct Statements(Vec<String>);

impl Statements {
    fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Statements {
    /// Their beginnings, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} statements:", self.count())?;
        let lines = self.0.iter();
        lines
            .into_iter()
            .try_for_each(|text| writeln!(f, "  {text:.160}"))
    }
}

fn as_many(of_one: &Statements, of_many: &Statements, what: &str) -> Result<()> {
    ensure!(
        of_one.count() == of_many.count(),
        "{what}: {of_one:?}, then {of_many:?}"
    );
    Ok(())
}

/// So many clusters in progress, each with two node groups.
async fn add_clusters(world: &World, count: usize) -> Vec<ClusterUuid> {
    let uuids: Vec<ClusterUuid> = (0..count).map(|_| ClusterUuid::random()).collect();
    let (mut clusters, mut groups) = (Vec::new(), Vec::new());
    for uuid in &uuids {
        let mut cluster = Cluster::new(uuid.clone(), TEMPLATE.into());
        cluster.name = Some(format!("c-{uuid}"));
        cluster.project_id = Some("noauth".into());
        cluster.status = Some(ClusterStatus::CreateInProgress);
        cluster.stack_id = Some(format!("stack-{uuid}"));
        clusters.push(cluster);
        for (name, role) in [("default-master", "master"), ("default-worker", "worker")] {
            let mut group = NodeGroup::new(NodeGroupUuid::random(), name, uuid.clone(), "noauth", role);
            group.status = Some(ClusterStatus::CreateInProgress);
            group.is_default = true;
            groups.push(group);
        }
    }
    world
        .read(move |conn| {
            store::clusters::insert(conn, &clusters)?;
            Ok(store::node_groups::insert(conn, &groups)?)
        })
        .await;
    uuids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_costs_as_many_statements_with_a_hundred_clusters_as_with_one() -> Result<()> {
    let server = Mariadb::dedicated().await?;
    let database = TestDatabase::on_mariadb(&server).await?;
    let world = World::new(&database).await;
    database
        .execute("UPDATE cluster_template SET project_id = 'noauth'")
        .await?;
    let deployment = Deployment::on(database.clone(), rabbitmq::vhost().await?).await?;
    let api = deployment.api().await?;
    let mut counter = Counter::on(&database)?;
    let lists = [
        "/clusters",
        "/clusters/detail",
        "/clusters?sort_key=name&sort_dir=desc",
    ];
    let mut costs = async |present: usize| -> Result<Vec<Statements>> {
        let mut costs = Vec::new();
        for path in lists {
            let cost = counter.of(async || {
                let body = api.rest.get(path).await?.expect(200)?;
                let listed = body["clusters"].as_array().map(Vec::len);
                ensure!(listed == Some(present), "{listed:?} in {path}");
                Ok(())
            });
            costs.push(cost.await?);
        }
        Ok(costs)
    };
    add_clusters(&world, 1).await;
    let of_one = costs(1).await?;
    add_clusters(&world, MANY - 1).await;
    let of_many = costs(MANY).await?;
    for (list, (one, many)) in lists.iter().zip(of_one.iter().zip(&of_many)) {
        as_many(one, many, list)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_costs_as_many_statements_at_a_hundred_clusters_as_at_one() -> Result<()> {
    let server = Mariadb::dedicated().await?;
    let nothing_new = || Ok(DriverReport::status(ClusterStatus::CreateInProgress));
    let out_of_order = || Err(DriverError::Transient("the cloud is busy".into()));
    for (what, says) in [
        (
            "nothing is new",
            &nothing_new as &dyn Fn() -> Result<DriverReport, DriverError>,
        ),
        ("the driver cannot look", &out_of_order),
    ] {
        let mut costs = Vec::new();
        for present in [1, MANY] {
            let database = TestDatabase::on_mariadb(&server).await?;
            let world = World::new(&database).await;
            for uuid in add_clusters(&world, present).await {
                world.driver.set_observation(&uuid, says());
            }
            let sync = StatusSync::new(
                world.db.clone(),
                ConductorId::new("one"),
                world.drivers(),
                Arc::default(),
                NoticeQueue::default(),
                Pace {
                    interval: std::time::Duration::from_secs(60),
                    batch: 500,
                    parallelism: 4,
                    lease: std::time::Duration::from_secs(30),
                },
            );
            let mut counter = Counter::on(&database)?;
            let mut due = MysqlConnection::establish(&database.plain_url())?;
            let cost = counter.of(async || {
                due.batch_execute("UPDATE conductor_cluster_poll SET next_poll_ms = 0")?;
                let looked_at = sync.round(&CancellationToken::new()).await?;
                ensure!(looked_at == present, "{looked_at} looked at");
                Ok(())
            });
            costs.push(cost.await?);
        }
        as_many(&costs[0], &costs[1], what)?;
    }
    Ok(())
}

/// The goal is that of 10,000 clusters: twenty such batches, and what a conductor asks besides.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_the_health_of_five_hundred_clusters_costs_at_most_ten_statements() -> Result<()> {
    const BATCH: usize = 500;
    let server = Mariadb::dedicated().await?;
    let mut costs = Vec::new();
    for present in [1, BATCH] {
        let database = TestDatabase::on_mariadb(&server).await?;
        let world = World::new(&database).await;
        for uuid in add_clusters(&world, present).await {
            let report = HealthReport {
                status: HealthStatus::Healthy,
                reasons: StringMap::from([("api".to_owned(), "ok".to_owned())]),
            };
            world.driver.set_health(&uuid, Ok(report));
        }
        database
            .execute("UPDATE cluster SET status = 'CREATE_COMPLETE'")
            .await?;
        let check = HealthCheck::new(
            world.db.clone(),
            ConductorId::new("one"),
            world.drivers(),
            Pace {
                interval: std::time::Duration::from_secs(60),
                batch: BATCH,
                parallelism: 4,
                lease: std::time::Duration::from_secs(30),
            },
            Timing::default(),
        );
        let mut counter = Counter::on(&database)?;
        let mut due = MysqlConnection::establish(&database.plain_url())?;
        check.add_missing().await?;
        let cost = counter.of(async || {
            due.batch_execute("UPDATE conductor_cluster_health SET next_poll_ms = 0")?;
            check.add_missing().await?;
            let looked_at = check.round(&CancellationToken::new()).await?;
            ensure!(looked_at == present, "{looked_at} looked at");
            check.expire_health().await?;
            Ok(())
        });
        costs.push(cost.await?);
    }
    // A full batch is followed by the look whether there is another.
    ensure!(costs[1].count() <= costs[0].count() + 1, "{costs:?}");
    // The first of them makes all due, which is the test's.
    ensure!(
        costs[1].count() <= 1 + 10 + 3,
        "{costs:?}: three are once a round, not once a batch"
    );
    Ok(())
}
