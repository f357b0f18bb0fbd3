//! A database whose answers do not come: an address that moved, a network that swallows. Threads come back, and connections
//! that lead nowhere are not used again.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::prelude::*;
use futures::future::try_join_all;
use magnum_db::session::SessionOptions;
use magnum_db::{Database, DatabaseUrl, DbError, PoolOptions};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::{Backend, TestDatabase, wait};

/// Connections of the pool.
const CONNECTIONS: usize = 4;
/// Until something is over that takes some ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pool of [`CONNECTIONS`] over a line, each of them open. A statement may take a second.
async fn open(backend: Backend) -> Result<(Database, ChaosProxy)> {
    let database = TestDatabase::empty(backend).await?;
    let line = ChaosProxy::start(database.address()?).await?;
    let options = PoolOptions {
        max_connections: u32::try_from(CONNECTIONS)?,
        session: SessionOptions {
            statement_timeout: Some(Duration::from_secs(1)),
            ..SessionOptions::default()
        },
        ..PoolOptions::default()
    };
    let db = Database::open(DatabaseUrl::parse(&database.url_via(line.address()))?, options).await?;
    let all = Arc::new(Barrier::new(CONNECTIONS));
    try_join_all((0..CONNECTIONS).map(|_| {
        let all = Arc::clone(&all);
        db.run(move |conn| {
            all.wait();
            ask(conn)
        })
    }))
    .await?;
    ensure!(db.connections() == (4, 0), "{:?}", db.connections());
    Ok((db, line))
}

fn ask(conn: &mut magnum_db::AnyConnection) -> Result<(), DbError> {
    diesel::sql_query("SELECT 1").execute(conn)?;
    Ok(())
}

/// Work that has a connection each, and asks on it when `go` is reached.
fn hold(db: &Database, go: &Arc<Barrier>) -> Vec<tokio::task::JoinHandle<Result<(), DbError>>> {
    let held = |_| {
        let (db, go) = (db.clone(), Arc::clone(go));
        tokio::spawn(async move {
            db.run(move |conn| {
                ask(conn)?;
                go.wait();
                ask(conn)
            })
            .await
        })
    };
    (0..CONNECTIONS).map(held).collect()
}

async fn silent_connections_fail_their_work_and_free_its_threads(backend: Backend) -> Result<()> {
    let (db, line) = open(backend).await?;
    let go = Arc::new(Barrier::new(CONNECTIONS + 1));
    let held = hold(&db, &go);
    wait::until("all connections to be in use", PATIENCE, async || {
        ensure!(db.connections() == (4, 4), "{:?}", db.connections());
        Ok(())
    })
    .await?;
    line.stall();
    tokio::task::spawn_blocking(move || go.wait()).await?;
    for work in held {
        let outcome = tokio::time::timeout(PATIENCE, work).await??;
        ensure!(matches!(outcome, Err(DbError::Unavailable(_))), "{outcome:?}");
    }
    wait::until("the threads to be back", PATIENCE, async || {
        ensure!(db.connections().1 == 0, "{:?}", db.connections());
        Ok(())
    })
    .await?;
    line.restore();
    tokio::time::timeout(PATIENCE, db.run(ask)).await??;
    Ok(())
}

async fn idle_connections_to_an_address_that_moved_are_replaced(backend: Backend) -> Result<()> {
    let (db, line) = open(backend).await?;
    // A connection that was idle for a second is asked whether it lives.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let before = line.accepted();
    line.forget();
    let work = try_join_all((0..CONNECTIONS).map(|_| db.run(ask)));
    tokio::time::timeout(PATIENCE, work).await??;
    ensure!(line.accepted() > before, "no new connection");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_mariadb_fail_their_work_and_free_its_threads() -> Result<()> {
    silent_connections_fail_their_work_and_free_its_threads(Backend::Mariadb).await
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_to_postgresql_fail_their_work_and_free_its_threads() -> Result<()> {
    silent_connections_fail_their_work_and_free_its_threads(Backend::Postgres).await
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_to_a_mariadb_that_moved_are_replaced() -> Result<()> {
    idle_connections_to_an_address_that_moved_are_replaced(Backend::Mariadb).await
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_to_a_postgresql_that_moved_are_replaced() -> Result<()> {
    idle_connections_to_an_address_that_moved_are_replaced(Backend::Postgres).await
}
