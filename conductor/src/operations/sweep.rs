//! What nobody's lease covers, looked for now and then by every conductor.
//!
//! * operations that wait (queued, for a retry, for the cloud) and whose deadline passes: failed, with a reason
//!   that names the limit;
//! * operations whose driver no living conductor has loaded: failed, instead of waiting for ever, also those that a
//!   conductor that died has left behind;
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
use super::notice::Notice;
use super::services::OperationServices;
use super::state::State;

/// Rows read at once.
const BATCH: usize = 100;

/// How long an answer is left to the conductor that made it.
const ANSWER_QUIET: Duration = Duration::from_secs(10);

/// Runs until `shutdown`.
pub async fn run(services: OperationServices, shutdown: CancellationToken) {
    let mut watch = DatabaseWatch::new(services.timing.driver_alive / 3);
    loop {
        // A little jitter, so that conductors started together do not all look at the same moment.
        let pause = services.timing.poll.mul_f64(rand::rng().random_range(0.8..1.2));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
        if let Err(error) = pass(&services, &mut watch).await {
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
        for row in read_rows(services, rows).await? {
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
    let mine = services.drivers.loaded();
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
            if row.driver.as_ref().is_some_and(|driver| mine.contains(driver)) {
                continue;
            }
            give_up(services, row, |operation| {
                let name = operation
                    .driver
                    .as_ref()
                    .map_or("None", |driver| driver.name.as_str());
                format!(
                    "{} No running conductor has this driver loaded.",
                    Fault::driver_not_supported(name).message
                )
            })
            .await?;
        }
    }
    Ok(())
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
    let operation = match Operation::try_from(row) {
        Ok(operation) => operation,
        Err(error) => {
            tracing::warn!(%error, "an operation cannot be ended; discard it by hand");
            return Ok(());
        }
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
            services.signals.work.notify_one();
            services.answers.send(&id);
            services.notices.send(Notice::Ended {
                operation: id,
                snapshot: None,
            });
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
