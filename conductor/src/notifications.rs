//! Notifications about clusters: `magnum.cluster.create`, `.update` and `.delete`, as Magnum emits them.
//!
//! | when | outcome | priority |
//! |---|---|---|
//! | a request is accepted and there is work | `pending` | info |
//! | a request is refused | `failure` | error |
//! | an operation ends, or a cluster that a Python conductor works on does | `success`, `failure` | info, error |
//!
//! And, if `[drivers] send_cluster_metrics` says so, `magnum.cluster.metrics.update`: see [`cluster_metrics`].
//!
//! Guarantee: best effort. Sent after the commit, one after the other, beside the work: a notification never delays
//! or fails an operation (in Magnum it can do both). One that the broker does not confirm is retried as often as
//! `[oslo_messaging_notifications] retry` allows, without a limit by default; a few thousand further ones wait, and
//! beyond that they are lost with a line in the log. A process that crashes loses those that wait; one that stops
//! sends them for five seconds at most. Only the journal loses nothing. An operation that an operator discards by
//! command is not notified.
//!
//! A queued notification describes the cluster when it is written; its status is the one that the operation led
//! to, whatever happened since.

pub mod cadf;
pub mod cluster_metrics;
mod drivers;
mod log_driver;
pub mod message;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::{ClusterUuid, OperationId, RequestId};
use magnum_common::model::Outcome;
use magnum_config::Settings;
use magnum_db::Database;
use magnum_rpc::{self as rpc, RpcOptions, Transport, TransportError};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::operations::journal::{JournalError, OperationRow, read};
use crate::operations::notice::{ClusterSnapshot, Notice, NoticeDetails, NoticeOutcome};
use crate::operations::{OperationKind, State, finish};
use crate::store;

pub use drivers::{Driver, Drivers};
pub use message::{Notification, NotificationFormat, Priority, Retries};

/// How long a stop waits for queued notifications.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Turns notices into notifications, and sends them.
pub struct Notifier {
    db: Database,
    transport: Arc<dyn Transport>,
    /// The transport is for notifications alone, and ends with them.
    owns_transport: bool,
    drivers: Drivers,
    retries: Retries,
    exchange: String,
    topics: Vec<String>,
    publisher_id: String,
}

impl Notifier {
    /// By `[oslo_messaging_notifications]`; `requests` is the transport where that names no other. `None`: no
    /// driver is configured.
    ///
    /// # Errors
    /// The options of `transport_url` in that section cannot be used.
    pub fn new(
        settings: &Settings,
        db: Database,
        requests: Arc<dyn Transport>,
    ) -> Result<Option<Self>, TransportError> {
        let options = &settings.oslo_messaging_notifications;
        let drivers = Drivers::named(&options.driver);
        for problem in drivers.problems() {
            tracing::error!("{problem}");
        }
        if drivers.known.is_empty() {
            return Ok(None);
        }
        let own = match RpcOptions::for_notifications(settings)? {
            Some(own) if drivers.publishes() => {
                let name = format!("magnum-conductor:{}:notifications", settings.default.host);
                Some(rpc::connect_with(own, &name)?)
            }
            _ => None,
        };
        Ok(Some(Self {
            db,
            owns_transport: own.is_some(),
            transport: own.unwrap_or(requests),
            drivers,
            retries: Retries::from(options.retry),
            exchange: settings.default.control_exchange.clone(),
            topics: options.topics.clone(),
            publisher_id: format!("container-infra.{}", settings.default.host),
        }))
    }

    /// Sends a notification for each of `notices` until `shutdown`, and then those queued, for five seconds at most.
    pub async fn run(self, mut notices: mpsc::Receiver<Notice>, shutdown: CancellationToken) {
        let unfinished = loop {
            let notice = tokio::select! {
                biased;
                () = shutdown.cancelled() => break None,
                notice = notices.recv() => match notice {
                    Some(notice) => notice,
                    // All senders are gone: the process is about to stop.
                    None => return shutdown.cancelled().await,
                },
            };
            let mut sending = Box::pin(self.send(notice));
            tokio::select! {
                () = &mut sending => {}
                () = shutdown.cancelled() => break Some(sending),
            }
        };
        let flush = async {
            if let Some(sending) = unfinished {
                sending.await;
            }
            while let Ok(notice) = notices.try_recv() {
                self.send(notice).await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flush).await.is_err() {
            tracing::warn!("the process stops before all notifications are sent");
        }
        if self.owns_transport {
            self.transport.close().await;
        }
    }

    async fn send(&self, notice: Notice) {
        let notification = match notice {
            Notice::Complete(details) => self.notification(&details),
            Notice::Ended { operation, snapshot } => match self.ended(operation, snapshot).await {
                Ok(Some(details)) => self.notification(&details),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "a notification is lost: the journal cannot be read");
                    return;
                }
            },
            Notice::Utilisation(notice) => Notification::now(
                self.publisher_id.clone(),
                cluster_metrics::EVENT.to_owned(),
                Priority::Info,
                cluster_metrics::payload(&notice),
                cluster_metrics::context(),
            ),
        };
        for driver in &self.drivers.known {
            match driver.format() {
                Some(format) => self.publish(&notification, format).await,
                None => log_driver::write(&notification),
            }
        }
    }

    async fn publish(&self, notification: &Notification, format: NotificationFormat) {
        for topic in &self.topics {
            let sent = message::notify(
                self.transport.as_ref(),
                &self.exchange,
                topic,
                notification,
                format,
                self.retries,
            )
            .await;
            if let Err(error) = sent {
                tracing::warn!(%error, topic, event = notification.event_type, "a notification is lost");
            }
        }
    }

    fn notification(&self, details: &NoticeDetails) -> Notification {
        Notification::now(
            self.publisher_id.clone(),
            format!("magnum.cluster.{}", details.kind.description().notification),
            match details.outcome {
                NoticeOutcome::Failure => Priority::Error,
                NoticeOutcome::Pending | NoticeOutcome::Success => Priority::Info,
            },
            cadf::payload(&cadf::Event {
                kind: details.kind,
                outcome: details.outcome,
                cluster: &details.cluster,
                snapshot: details.snapshot.as_ref(),
                context: &details.context,
                refusal: details.refusal.as_ref(),
            }),
            details.context.clone(),
        )
    }

    /// How an operation ended, by the journal, and its cluster as it is now or was last read.
    async fn ended(
        &self,
        operation: OperationId,
        snapshot: Option<Box<ClusterSnapshot>>,
    ) -> Result<Option<NoticeDetails>, JournalError> {
        let found = self
            .db
            .transaction::<_, JournalError, _>(move |conn| {
                let Some(row) = read::find(conn, operation.as_str())? else {
                    return Ok(None);
                };
                let uuid = ClusterUuid::new(row.cluster_uuid.clone());
                let now = match store::clusters::find(conn, &uuid)? {
                    Some(cluster) => Some(ClusterSnapshot {
                        cluster,
                        node_groups: store::node_groups::of(conn, &uuid)?,
                    }),
                    None => None,
                };
                Ok(Some((row, now)))
            })
            .await?;
        Ok(found.and_then(|(row, now)| details_of(&row, now.or_else(|| snapshot.map(|snapshot| *snapshot)))))
    }
}

/// The notification of an operation that has ended; `None` for operations that are not notified.
fn details_of(row: &OperationRow, snapshot: Option<ClusterSnapshot>) -> Option<NoticeDetails> {
    let kind: OperationKind = row.kind.parse().ok()?;
    let (outcome, led_to) = match row.state.parse().ok()? {
        State::Succeeded => (NoticeOutcome::Success, Outcome::Complete),
        State::Failed => (NoticeOutcome::Failure, Outcome::Failed),
        // Stopped by an operator: the cluster is failed. Others were cancelled for a delete, which has its own notification.
        State::Cancelled if row.reason.as_deref() == Some(finish::STOPPED) => {
            (NoticeOutcome::Failure, Outcome::Failed)
        }
        _ => return None,
    };
    let snapshot = snapshot.map(|mut snapshot| {
        snapshot.cluster.status = Some(kind.status(led_to));
        snapshot.cluster.status_reason = row.reason.clone();
        snapshot
    });
    let caller = Caller {
        user_id: row.user_id.clone(),
        project_id: row.project_id.clone(),
        ..Caller::default()
    };
    let request = row
        .request_id
        .clone()
        .map_or_else(RequestId::random, RequestId::from);
    Some(NoticeDetails {
        kind,
        outcome,
        cluster: ClusterUuid::new(row.cluster_uuid.clone()),
        snapshot,
        // The context of the request was erased with its token when the operation ended.
        context: RequestContext::for_caller(&caller, &request),
        refusal: None,
    })
}
