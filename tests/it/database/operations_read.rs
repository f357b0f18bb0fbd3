//! What operators are shown of the journal: what is searched for, what is stuck, and the way of one operation, the same on
//! all three databases.

use anyhow::Result;
use magnum_config::DatabaseSection;
use magnum_db::read::operations::{self, OperationFilter};
use magnum_db::{AnyConnection, Database, DbError, migrate, now_ms};
use magnum_tests::{TestDatabase, on_every_database};

/// A row: state, cluster, seconds since it was accepted, and other columns with their values.
type Row = (&'static str, &'static str, i64, &'static [(&'static str, i64)]);

/// Times of the last column are seconds from now; every other one is as it is.
const ROWS: &[Row] = &[
    // Over its time.
    ("observing", "a", 500, &[("deadline_ms", -10)]),
    // Behind the first one of its cluster.
    ("queued", "a", 400, &[]),
    // In time.
    (
        "running",
        "b",
        300,
        &[("deadline_ms", 100), ("lease_expires_ms", 20)],
    ),
    // Lost, and lost just now.
    ("running", "c", 300, &[("lease_expires_ms", -200)]),
    ("running", "d", 300, &[("lease_expires_ms", -5)]),
    // Without a lease.
    ("observing", "e", 300, &[]),
    // First of its cluster since long, and since a moment.
    ("queued", "f", 300, &[]),
    ("queued", "g", 5, &[]),
    ("retrying", "h", 5, &[("next_attempt_ms", 60)]),
    // Over, with everything that would be wrong of an open one.
    ("failed", "i", 900, &[("deadline_ms", -300), ("ended_ms", -100)]),
    ("succeeded", "a", 900, &[("ended_ms", -700)]),
    // After one that has ended: it is first.
    ("queued", "i", 200, &[]),
];

async fn opened(test: &TestDatabase) -> Result<Database> {
    let section = DatabaseSection {
        connection: magnum_common::secret::Secret::new(test.url()),
        ..DatabaseSection::default()
    };
    migrate::upgrade(&section).await?;
    let database = Database::connect(&section).await?;
    let now = database.run(now_ms).await?;
    let mut sql = String::new();
    for (number, (state, cluster, age, columns)) in (1..).zip(ROWS) {
        let names: String = columns.iter().map(|(name, _)| format!(", {name}")).collect();
        let values = columns.iter().map(|(_, seconds)| now + seconds * 1000);
        let values: String = values.map(|ms| format!(", {ms}")).collect();
        sql += &format!(
            "INSERT INTO conductor_operation (uuid, message_id, request_id, project_id, kind, cluster_uuid, state, args, \
             created_ms, updated_ms{names}) VALUES ('u-{number}', 'm-{number}', 'req-{number}', 'p-{}', 'cluster_update', \
             '{cluster}', '{state}', '', {}, {now}{values}); \
             INSERT INTO conductor_operation_event (operation_uuid, at_ms, attempt, epoch, kind) \
             VALUES ('u-{number}', 1, 1, 1, 'accepted'), ('u-{number}', 2, 1, 1, 'claimed'), ('u-{number}', 3, 1, 1, 'ended');",
            number % 2,
            now - age * 1000,
        );
    }
    test.execute(&sql).await?;
    Ok(database)
}

/// The numbers of these operations, as they come.
fn numbers(found: &[operations::Operation]) -> Vec<i64> {
    found.iter().map(|operation| operation.id).collect()
}

fn list(conn: &mut AnyConnection, filter: &OperationFilter) -> Result<Vec<i64>, DbError> {
    Ok(numbers(&operations::list(conn, filter, 4)?))
}

on_every_database! {
    async fn what_does_not_go_on_is_found_the_oldest_first(test: TestDatabase) -> Result<()> {
        let database = opened(&test).await?;
        let (stuck, two, mut counts, ended) = database
            .run(|conn| {
                let now = now_ms(conn)?;
                Ok((
                    operations::stuck(conn, now, 60_000, 100)?,
                    operations::stuck(conn, now, 60_000, 2)?,
                    operations::open_counts(conn)?,
                    operations::ended(conn, 100)?,
                ))
            })
            .await?;
        assert_eq!(numbers(&stuck), [1, 4, 7, 9, 12]);
        assert_eq!(numbers(&two), [1, 4]);
        counts.sort();
        let of = |state: &str, count| (state.to_owned(), count);
        assert_eq!(counts, [of("observing", 2), of("queued", 4), of("retrying", 1), of("running", 3)]);
        assert_eq!(numbers(&ended), [11, 10]);
        Ok(())
    }

    async fn a_search_keeps_to_everything_that_it_names(test: TestDatabase) -> Result<()> {
        let database = opened(&test).await?;
        database
            .run(|conn| {
                let some = |text: &str| Some(text.to_owned());
                let filter = OperationFilter::default;
                assert_eq!(list(conn, &filter())?, [12, 11, 10, 9]);
                assert_eq!(list(conn, &OperationFilter { before_id: Some(3), ..filter() })?, [2, 1]);
                assert_eq!(list(conn, &OperationFilter { after_id: Some(10), ..filter() })?, [12, 11]);
                assert_eq!(list(conn, &OperationFilter { id: Some(5), ..filter() })?, [5]);
                assert_eq!(list(conn, &OperationFilter { request: some("req-6"), ..filter() })?, [6]);
                assert_eq!(list(conn, &OperationFilter { kind: some("cluster_create"), ..filter() })?, [0; 0]);
                assert_eq!(list(conn, &OperationFilter { clusters: Some(Vec::new()), ..filter() })?, [0; 0]);
                let both = OperationFilter {
                    clusters: Some(vec!["a".to_owned(), "i".to_owned()]),
                    project: some("p-1"),
                    states: Some(vec!["observing".to_owned(), "succeeded".to_owned()]),
                    ..filter()
                };
                assert_eq!(list(conn, &both)?, [11, 1]);
                assert_eq!(operations::newest_id(conn)?, 12);
                assert_eq!(operations::number_of(conn, "u-3", &["m-4"])?, Some(3));
                assert_eq!(operations::number_of(conn, "x", &["y", "m-4"])?, Some(4));
                assert_eq!(operations::number_of(conn, "x", &["y"])?, None);
                Ok(())
            })
            .await?;
        Ok(())
    }

    async fn an_operation_has_its_latest_events_in_order_and_the_one_that_it_waits_for(test: TestDatabase) -> Result<()> {
        let database = opened(&test).await?;
        let (found, unknown, events, ahead) = database
            .run(|conn| {
                let found = operations::find(conn, "u-2")?;
                let ahead = match &found {
                    Some(found) => operations::ahead_of(conn, &found.operation)?,
                    None => None,
                };
                let events = operations::history(conn, "u-2", 2)?;
                Ok((found, operations::find(conn, "u-99")?, events, ahead))
            })
            .await?;
        assert!(unknown.is_none());
        assert!(found.is_some_and(|found| !found.is_call && found.traceparent.is_none()));
        let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["claimed", "ended"]);
        assert_eq!(ahead.map(|ahead| ahead.id), Some(1));
        Ok(())
    }
}
