//! What this conductor cannot do, and another one may: the operation is left to it.

use std::time::Duration;

use magnum_common::error::Fault;
use magnum_driver_api::Reason;
use magnum_telemetry::field;
use tokio::time::Instant;

use super::Run;
use crate::metric_definitions as metric;
use crate::operations::journal::JournalError;
use crate::operations::journal::fenced::{self, TryAgain};
use crate::operations::state::State;
use crate::operations::{finish, lease};
use crate::workflows::DriverRef;

/// How soon another conductor may take it.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// What a conductor does not have.
pub(super) enum NotHere {
    /// What running the driver takes: processes, memory, its program.
    Means(Reason),
    /// The driver in the version that built the cluster, or one that can take over.
    Version(DriverRef),
}

impl NotHere {
    /// The reason, for administrators.
    pub(super) fn whole(&self) -> String {
        match self {
            Self::Means(reason) => reason.whole().to_owned(),
            Self::Version(wanted) => {
                let wanted = format!("{} {}", wanted.name, wanted.version);
                Fault::driver_not_supported(&wanted).message
            }
        }
    }
}

impl Run {
    /// Leaves the operation to a conductor that can go on with it; this one takes none of the kind for a while. Counts as no
    /// attempt: it says nothing about the request.
    pub(super) async fn not_here(&self, what: NotHere) -> Result<State, JournalError> {
        let (reason, now) = (what.whole(), Instant::now());
        match (&what, &self.operation.driver) {
            (NotHere::Version(wanted), _) => {
                self.services.lacks(wanted);
                tracing::warn!(reason, "the operation is left to a conductor that has the driver");
            }
            (NotHere::Means(_), Some(driver)) => {
                let (pause, is_new) = self.services.breakers.trip(&driver.name, now);
                if is_new {
                    tracing::warn!(
                        reason,
                        ?pause,
                        { field::DRIVER } = driver.name,
                        "this conductor cannot run the driver; its operations are left to others for a while"
                    );
                } else {
                    tracing::debug!(reason, ?pause, "this conductor still cannot run the driver");
                }
            }
            // A driver was chosen before it was called.
            (NotHere::Means(_), None) => {}
        }
        metrics::counter!(metric::OPERATIONS_NOT_HERE).increment(1);
        self.write(move |conn, lease, operation| {
            if lease::fence(conn, lease)?.stop_requested {
                return finish::stopped(conn, lease, operation);
            }
            if let NotHere::Version(wanted) = &what {
                // What is claimed is told by the operation's row, which may be older than the cluster's driver.
                fenced::set_driver(conn, lease, wanted)?;
            }
            let step = Some(operation.step.as_str());
            fenced::retry_later(conn, lease, step, TAKE_OVER, TryAgain::NotHere, &reason)?;
            Ok(State::Retrying)
        })
        .await
    }
}
