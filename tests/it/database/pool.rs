//! The pool: transactions, collisions, locks, outages, on all three databases.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use anyhow::Result;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use magnum_db::schema::quotas;
use magnum_db::write::unless_exists;
use magnum_db::{
    AnyConnection, Database, DatabaseUrl, DbError, PoolOptions, now_ms, now_ms_expr, now_plus_ms_expr, schema,
};
use magnum_tests::mariadb::Mariadb;
use magnum_tests::{TestDatabase, on_every_database};

use magnum_tests::probe;

fn insert(conn: &mut AnyConnection, project: &str, limit: i32) -> QueryResult<usize> {
    diesel::insert_into(quotas::table)
        .values((
            quotas::project_id.eq(project),
            quotas::resource.eq("Cluster"),
            quotas::hard_limit.eq(limit),
        ))
        .execute(conn)
}

fn limit_of(conn: &mut AnyConnection, project: &str) -> QueryResult<Option<i32>> {
    quotas::table
        .filter(quotas::project_id.eq(project))
        .select(quotas::hard_limit)
        .first::<Option<i32>>(conn)
        .optional()
        .map(Option::flatten)
}

fn raise(conn: &mut AnyConnection, project: &str, by: i32) -> QueryResult<usize> {
    diesel::update(quotas::table.filter(quotas::project_id.eq(project)))
        .set(quotas::hard_limit.eq(quotas::hard_limit + by))
        .execute(conn)
}

#[tokio::test]
async fn a_new_sqlite_file_is_its_owners_alone_and_an_old_one_keeps_its_mode() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("magnum.sqlite");
    let beside = |ending: &str| folder.path().join(format!("magnum.sqlite{ending}"));
    let mode = |ending: &str| {
        Ok::<_, std::io::Error>(std::fs::metadata(beside(ending))?.permissions().mode() & 0o777)
    };
    let open = async || {
        let url = DatabaseUrl::parse(&format!("sqlite:///{}", file.display()))?;
        let database = Database::open(url, PoolOptions::default()).await?;
        database
            .run(|conn| Ok(conn.batch_execute("CREATE TABLE IF NOT EXISTS t (a INTEGER)")?))
            .await?;
        anyhow::Ok(database)
    };
    let database = open().await?;
    for ending in ["", "-wal", "-shm"] {
        anyhow::ensure!(mode(ending)? == 0o600, "{ending}: {:o}", mode(ending)?);
    }
    drop(database);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640))?;
    let _again = open().await?;
    anyhow::ensure!(mode("")? == 0o640, "{:o}", mode("")?);
    Ok(())
}

on_every_database! {
    async fn an_error_takes_back_the_whole_transaction(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let failed = db
            .transaction::<(), DbError, _>(|conn| {
                insert(conn, "p", 1)?;
                Err(DbError::NotFound)
            })
            .await;
        assert!(matches!(failed, Err(DbError::NotFound)));
        assert_eq!(db.run(|conn| Ok(limit_of(conn, "p")?)).await?, None);
        Ok(())
    }

    /// Read first, write later, from many tasks: what a SQLite transaction of the ordinary kind cannot do.
    async fn many_transactions_at_once_lose_no_write(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        db.run(|conn| Ok(insert(conn, "p", 0).map(drop)?)).await?;
        let work: Vec<_> = (0..40)
            .map(|_| {
                let db = db.clone();
                tokio::spawn(async move {
                    db.transaction::<_, DbError, _>(|conn| {
                        limit_of(conn, "p")?;
                        raise(conn, "p", 1)?;
                        Ok(())
                    })
                    .await
                })
            })
            .collect();
        for task in work {
            task.await??;
        }
        assert_eq!(db.run(|conn| Ok(limit_of(conn, "p")?)).await?, Some(40));
        Ok(())
    }

    async fn duplicate_key_is_classified_and_can_be_ignored(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        db.run(|conn| Ok(insert(conn, "p", 1).map(drop)?)).await?;
        let twice = db.run(|conn| Ok(insert(conn, "p", 2)?)).await;
        assert!(matches!(twice, Err(DbError::UniqueViolation { .. })), "{twice:?}");

        let inserted = db
            .transaction::<_, DbError, _>(|conn| {
                let again = unless_exists(conn, |conn| insert(conn, "p", 3))?;
                let fresh = unless_exists(conn, |conn| insert(conn, "q", 4))?;
                Ok((again, fresh))
            })
            .await?;
        assert_eq!(inserted, (false, true), "the transaction goes on after the duplicate");
        assert_eq!(db.run(|conn| Ok(limit_of(conn, "p")?)).await?, Some(1));
        assert_eq!(db.run(|conn| Ok(limit_of(conn, "q")?)).await?, Some(4));
        Ok(())
    }

    async fn the_databases_clock_runs_in_milliseconds(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let (before, soon, after) = db
            .run(|conn| {
                use schema::conductor_cluster_poll::dsl as poll;
                let before = now_ms(conn)?;
                diesel::insert_into(poll::conductor_cluster_poll)
                    .values((
                        poll::cluster_uuid.eq("c"),
                        poll::lease_epoch.eq(1_i64),
                        poll::next_poll_ms.eq(now_plus_ms_expr(30_000)),
                        poll::failures.eq(0),
                    ))
                    .execute(conn)?;
                let expired = poll::conductor_cluster_poll.filter(poll::next_poll_ms.lt(now_ms_expr(conn)));
                assert_eq!(expired.count().get_result::<i64>(conn)?, 0);
                let soon: i64 = poll::conductor_cluster_poll.select(poll::next_poll_ms).first(conn)?;
                Ok((before, soon, now_ms(conn)?))
            })
            .await?;
        assert!((before..=after).contains(&(soon - 30_000)), "{before} {soon} {after}");
        let wall = magnum_common::clock::utc_now().timestamp_millis();
        assert!((wall - after).abs() < 5_000, "{wall} {after}");
        Ok(())
    }

    async fn a_panic_surfaces_and_the_pool_goes_on(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let task = tokio::spawn({
            let db = db.clone();
            async move {
                db.transaction::<(), DbError, _>(|conn| {
                    insert(conn, "p", 1)?;
                    panic!("as asked")
                })
                .await
            }
        });
        assert!(task.await.is_err_and(|join| join.is_panic()));
        assert_eq!(db.run(|conn| Ok(limit_of(conn, "p")?)).await?, None, "nothing of it was committed");
        Ok(())
    }

    async fn more_work_than_connections_waits_its_turn(database: TestDatabase) -> Result<()> {
        let options = PoolOptions { max_connections: 2, ..PoolOptions::default() };
        let db = Database::open(DatabaseUrl::parse(&database.url())?, options).await?;
        let work: Vec<_> = (0..50).map(|_| tokio::spawn({ let db = db.clone(); async move { db.run(now_ms).await } })).collect();
        for task in work {
            task.await??;
        }
        assert!(db.connections().0 <= 2);
        Ok(())
    }
}

/// Two transactions that take the same two rows in opposite order, at the same time. Returns how often they were run: one of them
/// once more, and again if it was faster than the other, whose row had become free.
async fn crossed(db: &Database) -> Result<u32> {
    db.run(|conn| {
        insert(conn, "p", 0)?;
        insert(conn, "q", 0)?;
        Ok(())
    })
    .await?;
    let both = Arc::new(Barrier::new(2));
    let runs = Arc::new(AtomicU32::new(0));
    let task = |first: &'static str, second: &'static str| {
        let (db, both, runs) = (db.clone(), Arc::clone(&both), Arc::clone(&runs));
        tokio::spawn(async move {
            let mut met = false;
            db.transaction::<_, DbError, _>(move |conn| {
                runs.fetch_add(1, Ordering::Relaxed);
                raise(conn, first, 1)?;
                if !std::mem::replace(&mut met, true) {
                    both.wait();
                }
                raise(conn, second, 1)?;
                Ok(())
            })
            .await
        })
    };
    let (one, other) = (task("p", "q"), task("q", "p"));
    one.await??;
    other.await??;
    assert_eq!(
        db.run(|conn| Ok((limit_of(conn, "p")?, limit_of(conn, "q")?)))
            .await?,
        (Some(2), Some(2))
    );
    Ok(runs.load(Ordering::Relaxed))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_on_mariadb_is_run_again() -> Result<()> {
    let db = probe::migrated(&TestDatabase::empty(magnum_tests::Backend::Mariadb).await?).await?;
    assert!(crossed(&db).await? >= 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_on_postgres_is_run_again() -> Result<()> {
    let db = probe::migrated(&TestDatabase::empty(magnum_tests::Backend::Postgres).await?).await?;
    assert!(crossed(&db).await? >= 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_went_away_and_came_back_is_used_again() -> Result<()> {
    let server = Mariadb::dedicated().await?;
    let database = TestDatabase::on_mariadb(&server).await?;
    let db = probe::migrated(&database).await?;
    db.run(now_ms).await?;
    server.kill().await?;
    let error = db.run(now_ms).await.unwrap_err();
    assert!(error.is_outage() && error.is_transient(), "{error:?}");
    let error = db.transaction::<_, DbError, _>(now_ms).await.unwrap_err();
    assert!(error.is_outage(), "{error:?}");
    server.start().await?;
    // The connections of before may each fail once; nothing but a retry is needed.
    let mut answer = db.run(now_ms).await;
    for _ in 0..3 {
        if answer.is_err() {
            answer = db.run(now_ms).await;
        }
    }
    answer?;
    Ok(())
}

/// The harness's PostgreSQL trusts everybody, so there it is a database that does not exist.
#[tokio::test]
async fn refused_connection_is_reported_at_once_without_a_retry() -> Result<()> {
    let mariadb = TestDatabase::empty(magnum_tests::Backend::Mariadb)
        .await?
        .url()
        .replace("-secret@", "-wrong@");
    let postgres = TestDatabase::empty(magnum_tests::Backend::Postgres).await?;
    let postgres = postgres.url().replace(&postgres.name, "nowhere");
    for url in [mariadb, postgres] {
        let options = PoolOptions {
            connect_attempts: None,
            ..PoolOptions::default()
        };
        let error = Database::open(DatabaseUrl::parse(&url)?, options)
            .await
            .unwrap_err();
        assert!(matches!(error, DbError::Refused(_)), "{error:?}");
        assert!(!error.to_string().contains("-wrong"), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn full_disk_is_classified_and_heals() -> Result<()> {
    let database = TestDatabase::sqlite()?;
    let db = probe::migrated(&database).await?;
    // A limit on pages is what a full disk looks like to SQLite. One connection, so that the limit holds.
    let options = PoolOptions {
        max_connections: 1,
        ..PoolOptions::default()
    };
    let small = Database::open(DatabaseUrl::parse(&database.url())?, options).await?;
    small
        .run(|conn| Ok(conn.batch_execute("PRAGMA max_page_count = 1")?))
        .await?;
    let large = "x".repeat(1_000_000);
    let error = small
        .run(move |conn| Ok(insert(conn, &large, 1)?))
        .await
        .unwrap_err();
    assert!(
        matches!(error, DbError::Full(_)) && error.is_outage(),
        "{error:?}"
    );
    db.run(|conn| Ok(insert(conn, "p", 1).map(drop)?)).await?;
    Ok(())
}

#[tokio::test]
async fn a_database_in_memory_keeps_its_one_connection() -> Result<()> {
    let db = Database::open(DatabaseUrl::parse("sqlite://")?, PoolOptions::default()).await?;
    db.run(|conn| magnum_db::migrate::upgrade_on(conn).map(drop))
        .await?;
    db.run(|conn| Ok(insert(conn, "p", 1).map(drop)?)).await?;
    assert_eq!(db.run(|conn| Ok(limit_of(conn, "p")?)).await?, Some(1));
    Ok(())
}
