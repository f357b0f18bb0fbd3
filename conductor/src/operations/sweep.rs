//! What nobody's lease covers, looked for now and then by every conductor.
//!
//! * operations that wait (queued, for a retry, for the cloud) and whose deadline passes: failed, with a reason
//!   that names the limit;
//! * operations whose driver no living conductor has loaded: failed, instead of waiting for ever, also those that a
//!   conductor that died has left behind;
//! * operations that no living conductor can read ([`unread`]), once a minute;
//! * answers that were not sent.
//!
//! Every change compares the state it starts from, so conductors that find the same thing do no harm.

use std::time::Duration;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::OperationId;
use magnum_db::{self as db, AnyConnection};
use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::database_watch::DatabaseWatch;
use super::finish;
use super::journal::candidates;
use super::journal::read;
use super::journal::{JournalError, Operation, OperationRow};
use super::lease;
use super::services::OperationServices;
use super::state::State;
use super::unread;
use crate::workflows::{DriverRef, Step};

/// Rows read at once.
const BATCH: usize = 100;

/// How often all that waits is looked through for what no conductor knows.
const UNREAD_EVERY: Duration = Duration::from_secs(60);

/// How long an answer is left to the conductor that made it.
const ANSWER_QUIET: Duration = Duration::from_secs(10);

/// Runs until `shutdown`.
pub async fn run(services: OperationServices, shutdown: CancellationToken) {
    let mut watch = DatabaseWatch::new(services.timing.driver_alive / 3);
    let mut rare = Instant::now();
    loop {
        // A little jitter, so that conductors started together do not all look at the same moment.
        let pause = services.timing.poll.mul_f64(rand::rng().random_range(0.8..1.2));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
        let mut swept = pass(&services, &mut watch).await;
        if swept.is_ok() && watch.seen_for() >= services.timing.driver_alive && Instant::now() >= rare {
            swept = unread::pass(&services).await;
            rare = Instant::now() + UNREAD_EVERY;
        }
        if let Err(error) = swept {
            watch.missed();
            tracing::debug!(%error, "the sweep failed; it will run again");
        }
    }
}

/// One pass. Which drivers are gone is judged only by who has seen the database for as long as an announcement counts.
///
/// # Errors
/// The database failed.
pub async fn pass(services: &OperationServices, watch: &mut DatabaseWatch) -> Result<(), JournalError> {
    let asked = Instant::now();
    let now = services.db.run(db::now_ms).await?;
    let seen_for = watch.saw(asked, now);
    let late = services
        .db
        .transaction(move |conn| read::out_of_time(conn, now))
        .await?;
    for rows in late.chunks(BATCH) {
        let rows = read_rows(services, rows).await?;
        for row in rows.into_iter().filter(|row| is_late(row, now)) {
            let timing = services.timing.clone();
            give_up(services, row, move |operation| timing.timed_out(&operation.args)).await?;
        }
    }

    if seen_for >= services.timing.driver_alive {
        end_those_without_driver(services).await?;
    }

    let quiet = millis(ANSWER_QUIET);
    let unsent = services
        .db
        .transaction(move |conn| read::answers_due(conn, quiet))
        .await?;
    for rows in unsent.chunks(BATCH) {
        for row in read_rows(services, rows).await? {
            services.answers.send(&OperationId::new(row.uuid));
        }
    }
    Ok(())
}

/// Whether it still is as it was found: it may have ended since, or been given another try.
fn is_late(row: &OperationRow, now: i64) -> bool {
    is_open(row) && row.deadline_ms.is_some_and(|deadline| deadline <= now)
}

fn is_open(row: &OperationRow) -> bool {
    row.state.parse().is_ok_and(State::is_open)
}

async fn read_rows(services: &OperationServices, rows: &[i64]) -> Result<Vec<OperationRow>, JournalError> {
    let rows = rows.to_vec();
    services
        .db
        .transaction(move |conn| read::by_rows(conn, &rows))
        .await
}

async fn end_those_without_driver(services: &OperationServices) -> Result<(), JournalError> {
    let (alive, patience) = (
        millis(services.timing.driver_alive),
        millis(services.timing.driver_patience),
    );
    let orphans = move |conn: &mut AnyConnection| read::without_driver(conn, alive, patience);
    let orphans = services.db.transaction(orphans).await?;
    if orphans.is_empty() {
        return Ok(());
    }
    // The executor looks at leases when it has room.
    let leases = services.db.transaction(candidates::leases).await?;
    services.lease_watch.saw(leases, Instant::now());
    for rows in orphans.chunks(BATCH) {
        for row in read_rows(services, rows).await? {
            if !is_open(&row) || is_here(services, &row) {
                continue;
            }
            give_up(services, row, missing_driver).await?;
        }
    }
    Ok(())
}

/// Whether the driver of an operation is loaded here. Before the operation has chosen it, any version counts.
fn is_here(services: &OperationServices, row: &OperationRow) -> bool {
    let Some(name) = row.driver.clone() else {
        return false;
    };
    let is_named_here = services.drivers.loaded().contains(&name);
    match row.driver_version.clone() {
        Some(version) if row.step.as_deref() != Some(Step::ChooseDriver.as_str()) => {
            services.drivers.get(&DriverRef { name, version }).is_some()
        }
        _ => is_named_here,
    }
}

fn missing_driver(operation: &Operation) -> String {
    let driver = match &operation.driver {
        Some(driver) if operation.step == Step::ChooseDriver || driver.version.is_empty() => {
            driver.name.clone()
        }
        Some(driver) => format!("{} {}", driver.name, driver.version),
        None => "None".to_owned(),
    };
    format!(
        "{} No running conductor has this driver loaded.",
        Fault::driver_not_supported(&driver).message
    )
}

/// Ends an operation. One that cannot be ended now, because a row of it is locked for example, is left to the next pass:
/// only an outage ends this one.
async fn give_up(
    services: &OperationServices,
    row: OperationRow,
    reason: impl Fn(&Operation) -> String + Send + 'static,
) -> Result<(), JournalError> {
    let span = row.span();
    match end(services, row, reason).instrument(span.clone()).await {
        Err(JournalError::Db(error)) if error.is_outage() => Err(error.into()),
        Err(error) => {
            span.in_scope(|| tracing::debug!(%error, "the operation cannot be ended now"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn end(
    services: &OperationServices,
    row: OperationRow,
    reason: impl Fn(&Operation) -> String + Send + 'static,
) -> Result<(), JournalError> {
    let operation = match Operation::try_from(row.clone()) {
        Ok(operation) => operation,
        Err(unreadable) => return unread::is_late(services, row, &unreadable).await,
    };
    let (id, me) = (operation.id.clone(), services.me.clone());
    let (term, watch) = (services.timing.lease, services.lease_watch.clone());
    let asked_at = Instant::now();
    let ended = services
        .db
        .brief_transaction(move |conn| {
            let reason = reason(&operation);
            if operation.state != State::Running {
                return finish::give_up(conn, &operation, State::Failed, &reason, me.as_str());
            }
            // Its owner has left it behind: nobody else can take it from here to the commit.
            let candidate = candidates::candidate(conn, operation.id.as_str())?;
            if candidate
                .lease()
                .is_some_and(|lease| !watch.is_over(lease, asked_at))
            {
                return Err(JournalError::Stale);
            }
            match lease::claim(conn, &candidate, &me, term, Instant::now())? {
                Some((lease, _)) => {
                    let fault = Fault::new(Exception::MagnumException, reason);
                    finish::failed(conn, &lease, &operation, &fault, &fault.message).map(drop)
                }
                None => Err(JournalError::Stale),
            }
        })
        .await;
    match ended {
        Ok(()) => {
            tracing::warn!("operation given up by the sweep");
            services.tell_given_up(id);
            Ok(())
        }
        // Somebody else moved it: that is fine.
        Err(JournalError::Stale) => Ok(()),
        Err(error) => Err(error),
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
