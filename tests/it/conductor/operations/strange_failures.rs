//! The database fails in words that nobody has listed, as proxies, clusters of databases and administrators make it. A
//! trigger says them: the statement does not take effect, and works once the trigger is gone.

use std::time::Duration;

use magnum_conductor::handlers::Accepted;
use magnum_conductor::operations::State;
use magnum_conductor::operations::journal::{JournalError, UNKNOWN_PATIENCE};
use magnum_driver_api::DriverReport;
use magnum_tests::fake_driver::{Act, Gate};
use magnum_tests::{Backend, TestDatabase, on_every_database, wait};

use super::world::{World, create};

/// ProxySQL's 9001.
const STRANGE: &str = "Max connect timeout reached while reaching hostgroup 10 after 10000ms";

/// Has the database fail before each `what` (`INSERT ON cluster`) for which `when` holds.
async fn fails(database: &TestDatabase, what: (&str, &str), when: &str) {
    let (event, table) = what;
    let sql = match database.backend {
        Backend::Sqlite => format!(
            "CREATE TRIGGER strange BEFORE {event} ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, '{STRANGE}'); END"
        ),
        Backend::Mariadb => format!(
            "CREATE TRIGGER strange BEFORE {event} ON {table} FOR EACH ROW BEGIN IF {when} THEN \
             SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 9001, MESSAGE_TEXT = '{STRANGE}'; END IF; END"
        ),
        Backend::Postgres => format!(
            "CREATE FUNCTION strange() RETURNS trigger AS $$ BEGIN IF {when} THEN \
             RAISE EXCEPTION '{STRANGE}' USING ERRCODE = '57014'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql; \
             CREATE TRIGGER strange BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION strange()"
        ),
    };
    database.execute(&sql).await.unwrap();
}

async fn works_again(database: &TestDatabase, table: &str) {
    let sql = match database.backend {
        Backend::Postgres => format!("DROP TRIGGER strange ON {table}; DROP FUNCTION strange()"),
        _ => "DROP TRIGGER strange".to_owned(),
    };
    database.execute(&sql).await.unwrap();
}

on_every_database! {
    async fn a_built_cluster_is_not_failed_by_a_failure_that_nobody_knows(database: TestDatabase) {
        let world = World::new(&database).await;
        let gate = Gate::new();
        world.driver.then(Act::Gate(gate.clone(), Box::new(Act::Report(Box::<DriverReport>::default()))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        let _conductor = world.conductor("one");
        gate.entered().await;
        fails(&database, ("UPDATE", "conductor_operation"), "NEW.state <> 'running'").await;
        gate.open();
        wait::until("the driver to have returned", Duration::from_secs(30), async || {
            let end = world.driver.calls()[0].end;
            (end == "done").then_some(()).ok_or(end)
        }).await.unwrap();
        // A renewal of the lease takes longer than the first attempts at the end.
        let first = world.row(&operation).await.lease_expires_ms;
        wait::until("the lease to be renewed", Duration::from_secs(30), async || {
            let row = world.row(&operation).await;
            (row.lease_expires_ms > first).then_some(()).ok_or(row.state)
        }).await.unwrap();
        assert_eq!(world.row(&operation).await.state, "running");
        works_again(&database, "conductor_operation").await;
        world.reaches(&operation, State::Succeeded).await;
        assert_eq!(world.driver.calls().len(), 1, "the driver was asked once");
        assert!(world.cluster(&uuid).await.unwrap().status_reason.is_none());
    }

    async fn a_request_is_not_refused_for_a_failure_that_nobody_knows(database: TestDatabase) {
        let world = World::new(&database).await;
        fails(&database, ("INSERT", "cluster"), "NEW.uuid IS NOT NULL").await;
        let asked = create();
        for tried_for in [Duration::ZERO, UNKNOWN_PATIENCE / 2] {
            let tried = world.acceptor("one").accept(vec![asked.clone()], tried_for).await.unwrap();
            assert_eq!(tried, [None], "others can be accepted meanwhile");
            let failed = world.acceptor("one").accept_alone(asked.clone(), tried_for).await;
            assert!(matches!(&failed, Err(JournalError::Db(error)) if error.is_unknown()), "{failed:?}");
        }
        works_again(&database, "cluster").await;
        let accepted = world.accept(asked).await;
        assert!(matches!(accepted, Accepted::Recorded { state: State::Queued, .. }), "{accepted:?}");
    }

    async fn a_request_that_meets_nothing_else_for_long_is_refused_without_the_databases_words(database: TestDatabase) {
        let world = World::new(&database).await;
        fails(&database, ("INSERT", "cluster"), "NEW.uuid IS NOT NULL").await;
        let accepted = world.acceptor("one").accept_alone(create(), UNKNOWN_PATIENCE).await.unwrap();
        let Accepted::Recorded { operation, state: State::Refused, .. } = &accepted else {
            panic!("{accepted:?}");
        };
        let reason = world.row(operation).await.reason.unwrap();
        assert!(!reason.contains("hostgroup"), "{reason}");
    }
}
