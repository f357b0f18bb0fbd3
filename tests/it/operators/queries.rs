//! What a page of operations costs the database.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel::{MysqlConnection, sql_query};
use magnum_tests::databases::TestDatabase;
use magnum_tests::deployment::Deployment;
use magnum_tests::mariadb::Mariadb;
use magnum_tests::rabbitmq;

const CLUSTER: &str = "0c1f7b1e-0000-4000-8000-000000000001";

/// Statements that a page may cost: whether the connection is alive; the cluster with its template and node groups; its
/// operations; what happened to them.
const MOST: u64 = 6;

#[derive(QueryableByName)]
struct Status {
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// Statements that the server has executed since its start.
async fn executed(url: &str) -> Result<u64> {
    let url = url.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut connection = MysqlConnection::establish(&url)?;
        let status: Status =
            sql_query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").get_result(&mut connection)?;
        status.value.parse().context("a counter that is no number")
    })
    .await?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_costs_the_same_few_queries_however_much_it_shows() -> Result<()> {
    // A server of its own: others would be counted, too.
    let server = Mariadb::dedicated().await?;
    let database = TestDatabase::on_mariadb(&server).await?;
    let url = database.plain_url();
    let deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
    let api = deployment.api().await?;
    deployment
        .database
        .execute(&format!(
            "insert into cluster (uuid, name, status, project_id) values ('{CLUSTER}', 'c', 'CREATE_COMPLETE', 'p')"
        ))
        .await?;
    // The last thing that the API says of its start, for which it asks the database, too.
    api.program
        .wait_log("start_report: drivers:", Duration::from_secs(30))
        .await?;
    let path = format!("/clusters/{CLUSTER}/operations?limit=100");
    // The first request prepares what later ones have.
    api.rest.get(&path).await?.expect(200)?;
    // What looking costs.
    let before = executed(&url).await?;
    let look = executed(&url).await? - before;
    let (mut made, mut costs) = (0, Vec::new());
    for shown in [1, 90] {
        let mut rows = String::new();
        for number in made..shown {
            let uuid = format!("0c1f7b1e-0000-4000-8000-0000000001{number:02}");
            write!(
                rows,
                "insert into conductor_operation (uuid, kind, cluster_uuid, state, step, args, attempts, failures, \
                 created_ms, updated_ms) values ('{uuid}', 'cluster_update', '{CLUSTER}', 'succeeded', 'drive', '', 1, 0, \
                 {number}, {number}); \
                 insert into conductor_operation_event (operation_uuid, at_ms, attempt, epoch, kind) values \
                 ('{uuid}', 1, 1, 1, 'claimed'), ('{uuid}', 2, 1, 1, 'ended');"
            )?;
        }
        made = shown;
        deployment.database.execute(&rows).await?;
        let before = executed(&url).await?;
        let body = api.rest.get(&path).await?.expect(200)?;
        costs.push(executed(&url).await? - before - look);
        let operations = body["operations"].as_array().context("operations")?;
        ensure!(operations.len() == shown, "{body}");
        ensure!(
            operations.iter().all(|one| one["events"][1]["event"] == "ended"),
            "{body}"
        );
    }
    println!("{costs:?} queries");
    ensure!(
        costs[0] == costs[1] && (1..=MOST).contains(&costs[0]),
        "{costs:?}"
    );
    Ok(())
}
