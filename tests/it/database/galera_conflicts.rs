//! Two nodes of Galera's take writes of the same rows. A node rolls back what is in another one's way, and does not always say
//! so: a transaction is whole all the same. Each takes one of three places if there is one, as a quota is kept: it changes a row
//! that all of them change, counts, and writes. One that went on after an unnoticed rollback would take a place too many.

use anyhow::{Result, ensure};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use futures::future::join_all;
use magnum_common::secret::Secret;
use magnum_config::DatabaseSection;
use magnum_db::{AnyConnection, Database, DbError};
use magnum_tests::TestDatabase;
use magnum_tests::galera::Galera;

/// Of so many, some have an unnoticed rollback: about one in thirteen, on two processors.
const ROUNDS: usize = 40;
const TASKS: usize = 16;
const PLACES: i64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_a_node_has_rolled_back_is_not_half_committed() -> Result<()> {
    let cluster = Galera::start().await?;
    let database = TestDatabase::on_galera(cluster.address(0)).await?;
    // A connection that names a database does not wait for it to arrive.
    cluster.catch_up().await?;
    let mut nodes = Vec::new();
    for number in 0..2 {
        let section = DatabaseSection {
            connection: Secret::new(database.url_via(cluster.address(number))),
            mysql_wsrep_sync_wait: Some(1),
            ..DatabaseSection::default()
        };
        nodes.push(Database::connect(&section).await?);
    }
    let tables = [
        "CREATE TABLE turn (round bigint NOT NULL PRIMARY KEY, used bigint NOT NULL)",
        "CREATE TABLE place (id bigint NOT NULL PRIMARY KEY, round bigint NOT NULL, INDEX (round))",
    ];
    nodes[0]
        .run(move |conn| tables.iter().try_for_each(|sql| write(conn, sql).map(drop)))
        .await?;
    for round in 0..ROUNDS {
        nodes[0]
            .run(move |conn| write(conn, &format!("INSERT INTO turn VALUES ({round}, 0)")))
            .await?;
        let taking = (0..TASKS).map(|task| take(&nodes[task % 2], round, task));
        let taken = join_all(taking).await;
        let taken = taken.into_iter().flatten().filter(|is_taken| *is_taken).count();
        for node in &nodes {
            let rows = node.run(move |conn| places_of(conn, round)).await?;
            ensure!(
                rows <= PLACES && usize::try_from(rows)? == taken,
                "round {round}: {rows} places are taken, {taken} were confirmed, there are {PLACES}"
            );
        }
        ensure!(taken > 0, "round {round}: nobody got a place");
    }
    Ok(())
}

/// Takes a place if there is one. An error where others were in the way too often.
async fn take(node: &Database, round: usize, task: usize) -> Result<bool, DbError> {
    node.transaction(move |conn| {
        write(
            conn,
            &format!("UPDATE turn SET used = used + 1 WHERE round = {round}"),
        )?;
        if places_of(conn, round)? >= PLACES {
            return Ok(false);
        }
        let id = round * TASKS + task;
        write(conn, &format!("INSERT INTO place VALUES ({id}, {round})"))?;
        Ok(true)
    })
    .await
}

fn write(conn: &mut AnyConnection, sql: &str) -> Result<usize, DbError> {
    Ok(diesel::sql_query(sql).execute(conn)?)
}

fn places_of(conn: &mut AnyConnection, round: usize) -> Result<i64, DbError> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        value: i64,
    }
    // So long that most of the time goes into preparing it: that is when word of a rollback is lost.
    let others = (1..20_000).map(|other| format!(", -{other}")).collect::<String>();
    let sql = format!("SELECT COUNT(*) AS value FROM place WHERE round IN ({round}{others})");
    Ok(diesel::sql_query(sql).get_result::<Count>(conn)?.value)
}
