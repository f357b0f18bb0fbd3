//! A connection that breaks while a program looks at the tables before it starts is an outage, and no difference of the tables.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_db::{Database, DatabaseUrl, DbError, PoolOptions, migrate};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::{Backend, TestDatabase, probe};

/// Tables whose reading is cut, the first and the last among them.
const CUT_AT: [&[u8]; 4] = [
    b"alembic_version",
    b"cluster_template",
    b"nodegroup",
    b"federation",
];

async fn a_check_that_is_cut_is_made_again(backend: Backend) -> Result<()> {
    let database = TestDatabase::empty(backend).await?;
    probe::migrated(&database).await?;
    let line = ChaosProxy::start(database.address()?).await?;
    let options = PoolOptions {
        connect_attempts: Some(3),
        connect_interval: Duration::from_millis(10),
        ..PoolOptions::default()
    };
    let db = Database::open(DatabaseUrl::parse(&database.url_via(line.address()))?, options).await?;
    for table in CUT_AT {
        let told = String::from_utf8_lossy(table);
        let before = line.cuts();
        line.cut_after(table, 1);
        let error = migrate::check(&db).await.err();
        ensure!(line.cuts() == before + 1, "{told} was not read");
        ensure!(
            matches!(error, Some(DbError::Unavailable(_))),
            "{told}: {error:?}"
        );
        line.cut_after(table, 1);
        db.at_start(|| migrate::check(&db)).await?;
        ensure!(line.cuts() == before + 2, "{told} was not read");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_mariadb_that_is_cut_is_made_again() -> Result<()> {
    a_check_that_is_cut_is_made_again(Backend::Mariadb).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_postgresql_that_is_cut_is_made_again() -> Result<()> {
    a_check_that_is_cut_is_made_again(Backend::Postgres).await
}
