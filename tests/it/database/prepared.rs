//! Queries that a connection keeps prepared, on all three databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use diesel::connection::{Instrumentation, InstrumentationEvent};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use magnum_db::schema::quotas;
use magnum_db::{AnyConnection, Backend, DbError, KeepPrepared as _, padded};
use magnum_tests::mariadb::Mariadb;
use magnum_tests::{TestDatabase, on_every_database};

use magnum_tests::probe;

/// A list of values, and a part in plain SQL: for each diesel would prepare anew.
fn kept(conn: &mut AnyConnection, projects: &[&str]) -> QueryResult<usize> {
    let found: Vec<String> = quotas::table
        .filter(quotas::project_id.eq_any(padded(projects)))
        .filter(sql::<Bool>("hard_limit >= 0"))
        .select(quotas::project_id.assume_not_null())
        .keep_prepared()
        .load(conn)?;
    Ok(found.len())
}

/// How many statements the session has prepared; those of SQLite, which has no session to ask, as diesel counts them.
fn prepared(conn: &mut AnyConnection, by_diesel: &AtomicUsize) -> Result<usize, DbError> {
    let query = match conn.backend() {
        Backend::Sqlite => return Ok(by_diesel.load(Ordering::Relaxed)),
        Backend::Mysql => {
            "SELECT variable_value AS line FROM information_schema.session_status \
             WHERE variable_name = 'Com_stmt_prepare'"
        }
        Backend::Postgres => "SELECT CAST(COUNT(*) AS text) AS line FROM pg_prepared_statements",
    };
    let lines = probe::lines(conn, query)?;
    Ok(lines.iter().filter_map(|line| line.parse::<usize>().ok()).sum())
}

struct Counts(Arc<AtomicUsize>);

impl Instrumentation for Counts {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::CacheQuery { .. } = event {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

on_every_database! {
    async fn a_kept_query_is_prepared_once_for_all_lists_of_one_padded_length(database: TestDatabase) -> Result<()> {
        let db = probe::migrated(&database).await?;
        let [before, first, later, longer] = db
            .run(|conn| {
                let by_diesel = Arc::new(AtomicUsize::new(0));
                conn.set_instrumentation(Counts(Arc::clone(&by_diesel)));
                diesel::insert_into(quotas::table)
                    .values((
                        quotas::project_id.eq("b"),
                        quotas::resource.eq("Cluster"),
                        quotas::hard_limit.eq(0),
                    ))
                    .execute(conn)?;
                // On MariaDB the query that counts is one that is prepared each time.
                let asked = usize::from(conn.backend() == Backend::Mysql);
                let before = prepared(conn, &by_diesel)?;
                assert_eq!(kept(conn, &["a", "b", "c"])?, 1);
                let first = prepared(conn, &by_diesel)? - asked;
                assert_eq!(kept(conn, &["a", "c", "d", "b"])?, 1);
                assert_eq!(kept(conn, &["a", "c", "d"])?, 0);
                let later = prepared(conn, &by_diesel)? - 2 * asked;
                assert_eq!(kept(conn, &["b"])?, 1);
                let longer = prepared(conn, &by_diesel)? - 3 * asked;
                Ok([before, first, later, longer])
            })
            .await?;
        assert_eq!(first, before + 1);
        assert_eq!(later, first);
        // PostgreSQL takes the list as one value.
        let texts = usize::from(database.backend != magnum_tests::Backend::Postgres);
        assert_eq!(longer, first + texts, "a list of another length has a text of its own");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_room_for_another_statement_is_an_outage_that_passes() -> Result<()> {
    let server = Mariadb::dedicated().await?;
    let database = TestDatabase::on_mariadb(&server).await?;
    let db = probe::migrated(&database).await?;
    db.run(|conn| Ok(kept(conn, &["a"])?)).await?;
    server.execute("SET GLOBAL max_prepared_stmt_count = 1").await?;
    let error = db.run(|conn| Ok(kept(conn, &["a", "b"])?)).await.unwrap_err();
    assert!(error.is_outage() && error.is_transient(), "{error:?}");
    // What the connection of before had kept is gone with it, and that was all that was kept.
    let found = db.run(|conn| Ok(kept(conn, &["a", "b"])?)).await?;
    assert_eq!(found, 0);
    Ok(())
}
