//! What it costs to look for work does not grow with what has ended, and little with what waits: rows that the server reads.
//!
//! 20,000 operations have ended here; `MAGNUM_TESTS_HISTORY=1000000` has it take as many as it says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::connection::{Connection as _, InstrumentationEvent};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use magnum_common::ids::ConductorId;
use magnum_conductor::operations::breakers::Claimable;
use magnum_conductor::operations::journal::candidates::{self, Look, Place};
use magnum_conductor::operations::journal::{JournalError, read};
use magnum_conductor::operations::lease;
use magnum_conductor::operations::slots::Room;
use magnum_db::AnyConnection;

use magnum_tests::{Backend, TestDatabase, on_every_database};
use tokio::time::Instant;

use super::world::World;

/// Most rows, or entries of indexes, that one look may read: a thousand that wait, each with two questions about its cluster,
/// and what is due.
const MOST_READ: i64 = 8_000;

const CLUSTERS: u32 = 1_000;
const WAITING: u32 = 10_000;

fn history() -> u32 {
    std::env::var("MAGNUM_TESTS_HISTORY").map_or(20_000, |rows| rows.parse().expect("a number"))
}

/// `count` rows whose columns are made of the number `n`, which begins with 0.
async fn insert(database: &TestDatabase, count: u32, columns: &str, values: &str) {
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                   UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let numbers = format!(
        "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS n \
         FROM {digits} a, {digits} b, {digits} c, {digits} e, {digits} f, {digits} g"
    );
    let sql = format!(
        "INSERT INTO conductor_operation (kind, step, project_id, driver, created_ms, updated_ms, args, {columns}) \
         SELECT 'cluster_resize', 'choose_driver', CONCAT('project-', n % 10), 'fake', 1, 1, '', {values} \
         FROM ({numbers}) numbers WHERE n < {count}"
    );
    database.execute(&sql).await.unwrap();
}

async fn fill(database: &TestDatabase) {
    let cluster = format!("CONCAT('cluster-', n % {CLUSTERS})");
    insert(
        database,
        history(),
        "uuid, cluster_uuid, state, ended_ms, lease_expires_ms",
        &format!(
            "CONCAT('ended-', n), {cluster}, CASE WHEN n % 9 = 0 THEN 'failed' ELSE 'succeeded' END, 1, NULL"
        ),
    )
    .await;
    insert(
        database,
        WAITING,
        "uuid, cluster_uuid, state, turn",
        &format!("CONCAT('waits-', n), {cluster}, 'queued', n / 10"),
    )
    .await;
    insert(
        database,
        64,
        "uuid, cluster_uuid, running_key, state, owner, lease_expires_ms",
        &format!("CONCAT('runs-', n), {cluster}, {cluster}, 'running', 'other', 99999999999999"),
    )
    .await;
    let analyze = match database.backend {
        Backend::Mariadb => "ANALYZE TABLE conductor_operation",
        Backend::Postgres | Backend::Sqlite => "ANALYZE",
    };
    database.execute(analyze).await.unwrap();
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct PlanStep {
    #[diesel(sql_type = Text)]
    detail: String,
}

/// Rows that this connection has had the server read so far.
fn read_so_far(conn: &mut AnyConnection) -> i64 {
    let sql = match conn {
        AnyConnection::Mysql(_) => {
            "SELECT CAST(SUM(variable_value) AS INTEGER) AS count FROM information_schema.session_status \
             WHERE variable_name LIKE 'HANDLER_READ%'"
        }
        AnyConnection::Postgres(_) => {
            "SELECT CAST(SUM(pg_stat_get_xact_tuples_returned(oid)) AS bigint) AS count FROM pg_class \
             WHERE relname LIKE '%conductor_operation%'"
        }
        AnyConnection::Sqlite(_) => "SELECT 0 AS count",
    };
    let found: Count = diesel::sql_query(sql).get_result(conn).expect("a count");
    found.count
}

/// Runs `work`, and says how many rows it had the server read. SQLite does not count: there, all plans go by an index and sort
/// nothing.
async fn reads<T: Send + 'static>(
    world: &World,
    work: impl Fn(&mut AnyConnection) -> Result<T, JournalError> + Send + 'static,
) -> (T, i64) {
    world
        .read(move |conn| {
            let asked: Arc<Mutex<Vec<String>>> = Arc::default();
            let before = read_so_far(conn);
            let note = Arc::clone(&asked);
            conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
                if let InstrumentationEvent::StartQuery { query, .. } = event {
                    note.lock().unwrap().push(query.to_string());
                }
            });
            let done = work(conn)?;
            conn.set_instrumentation(|_: InstrumentationEvent<'_>| {});
            let count = read_so_far(conn) - before;
            if matches!(conn, AnyConnection::Sqlite(_)) {
                for query in asked.lock().unwrap().iter() {
                    goes_by_an_index(conn, query);
                }
            }
            Ok((done, count))
        })
        .await
}

fn goes_by_an_index(conn: &mut AnyConnection, query: &str) {
    let sql = query.split(" -- binds").next().expect("a statement");
    let plan: Vec<PlanStep> = diesel::sql_query(format!("EXPLAIN QUERY PLAN {sql}"))
        .load(conn)
        .expect("a plan");
    for PlanStep { detail } in plan {
        let walks = detail.starts_with("SCAN conductor_operation") || detail.starts_with("SCAN o");
        assert!(!walks && !detail.contains("TEMP B-TREE"), "{detail}: {sql}");
    }
}

fn claimable(drivers: &[&str]) -> Claimable {
    Claimable {
        drivers: drivers.iter().map(|name| (*name).to_owned()).collect(),
        ..Claimable::default()
    }
}

async fn look(world: &World, drivers: &'static [&'static str], place: Place) -> (Look, i64) {
    reads(world, move |conn| {
        candidates::candidates(conn, &claimable(drivers), &Room::default(), place, 96)
    })
    .await
}

on_every_database! {
    async fn looking_for_work_reads_few_rows(database: TestDatabase) {
        let world = World::new(&database).await;
        fill(&database).await;
        let (first, count) = look(&world, &["fake"], Place::START).await;
        assert_eq!(first.due.len(), 0);
        assert!(first.queued.len() >= 96, "{}", first.queued.len());
        assert!(count < MOST_READ, "a look: {count}");
        let (_, count) = reads(&world, move |conn| {
            let candidate = first.queued.first().expect("a candidate");
            let me = ConductorId::new("me");
            lease::claim(conn, candidate, &me, Duration::from_secs(60), Instant::now())
        }).await;
        assert!(count < 100, "a claim: {count}");
        let (_, count) = reads(&world, read::present_turn).await;
        assert!(count < 1_000, "the present turn: {count}");
        let (due, count) = reads(&world, |conn| candidates::next_due_in_ms(conn, &claimable(&["fake"]), 2)).await;
        assert!(due.is_some() && count < 1_000, "the next time: {count}");
        let (late, count) = reads(&world, |conn| read::out_of_time(conn, 2)).await;
        assert!(late.is_empty() && count < 1_000, "what is out of time: {count}");
        let (unsent, count) = reads(&world, |conn| read::answers_due(conn, 1)).await;
        assert!(unsent.is_empty() && count < 1_000, "answers: {count}");
    }

    async fn what_cannot_be_claimed_is_read_in_parts(database: TestDatabase) {
        let world = World::new(&database).await;
        fill(&database).await;
        let (mut place, mut looks) = (Place::START, 0);
        loop {
            let (look, count) = look(&world, &["another"], place).await;
            assert!(look.queued.is_empty() && count < MOST_READ, "{count}");
            looks += 1;
            let Some(next) = look.next else { break };
            place = next;
        }
        assert_eq!(looks, WAITING / 1_000 + 1);
    }
}
