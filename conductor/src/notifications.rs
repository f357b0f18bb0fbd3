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
//! Guarantee: best effort. Told after the commit, one after the other, beside the work: a notification never holds
//! up or fails an operation (in Magnum it can do both). What the broker does not take is offered again as often as
//! `[oslo_messaging_notifications] retry` says, without a limit by default; the next ones wait, a few thousand of
//! them, and beyond that are lost with a word in the log. A process that dies loses those that wait; one that stops
//! gives them a few seconds. The journal is what does not lose. What an operator discards by command is not told.
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

/// How long a stop waits for what is queued.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Sends what is told.
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
    /// By `[oslo_messaging_notifications]`; `requests` is the transport where that names no other. `None`: there is
    /// nobody to tell.
    ///
    /// # Errors
    /// When the options cannot be used for the other broker.
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
        if drivers.here.is_empty() {
            return Ok(None);
        }
        let own = match RpcOptions::for_notifications(settings)? {
            Some(own) if drivers.publish() => {
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

    /// Sends what `told` brings until `shutdown`, and then what is queued, for a moment.
    pub async fn run(self, mut told: mpsc::Receiver<Notice>, shutdown: CancellationToken) {
        let unfinished = loop {
            let notice = tokio::select! {
                biased;
                () = shutdown.cancelled() => break None,
                notice = told.recv() => match notice {
                    Some(notice) => notice,
                    // Whoever could tell is gone; so will be this part.
                    None => return shutdown.cancelled().await,
                },
            };
            let mut telling = Box::pin(self.tell(notice));
            tokio::select! {
                () = &mut telling => {}
                () = shutdown.cancelled() => break Some(telling),
            }
        };
        let last_words = async {
            if let Some(telling) = unfinished {
                telling.await;
            }
            while let Ok(notice) = told.try_recv() {
                self.tell(notice).await;
            }
        };
        if timeout(LAST_WORDS, last_words).await.is_err() {
            tracing::warn!("the process stops before all notifications are sent");
        }
        if self.owns_transport {
            self.transport.close().await;
        }
    }

    async fn tell(&self, notice: Notice) {
        let notification = match notice {
            Notice::Complete(told) => self.notification(&told),
            Notice::Ended { operation, seen } => match self.ended(operation, seen).await {
                Ok(Some(told)) => self.notification(&told),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "a notification is lost: the journal cannot be read");
                    return;
                }
            },
            Notice::Used(used) => Notification::now(
                self.publisher_id.clone(),
                cluster_metrics::EVENT.to_owned(),
                Priority::Info,
                cluster_metrics::payload(&used),
                cluster_metrics::context(),
            ),
        };
        for driver in &self.drivers.here {
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

    fn notification(&self, told: &NoticeDetails) -> Notification {
        Notification::now(
            self.publisher_id.clone(),
            format!("magnum.cluster.{}", told.kind.description().notification),
            match told.outcome {
                NoticeOutcome::Failure => Priority::Error,
                NoticeOutcome::Pending | NoticeOutcome::Success => Priority::Info,
            },
            cadf::payload(&cadf::Event {
                kind: told.kind,
                outcome: told.outcome,
                cluster: &told.cluster,
                seen: told.seen.as_ref(),
                context: &told.context,
                refusal: told.refusal.as_ref(),
            }),
            told.context.clone(),
        )
    }

    /// How an operation ended, by the journal, and its cluster as it is now or was last seen.
    async fn ended(
        &self,
        operation: OperationId,
        seen: Option<Box<ClusterSnapshot>>,
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
        Ok(found.and_then(|(row, now)| details_of(&row, now.or_else(|| seen.map(|seen| *seen)))))
    }
}

/// What there is to tell of an operation that has ended.
fn details_of(row: &OperationRow, seen: Option<ClusterSnapshot>) -> Option<NoticeDetails> {
    let kind: OperationKind = row.kind.parse().ok()?;
    let (outcome, led_to) = match row.state.parse().ok()? {
        State::Succeeded => (NoticeOutcome::Success, Outcome::Complete),
        State::Failed => (NoticeOutcome::Failure, Outcome::Failed),
        // Stopped by an operator: the cluster is failed. Other cancelled ones gave way to a delete, which tells.
        State::Cancelled if row.reason.as_deref() == Some(finish::STOPPED) => {
            (NoticeOutcome::Failure, Outcome::Failed)
        }
        _ => return None,
    };
    let seen = seen.map(|mut seen| {
        seen.cluster.status = Some(kind.status(led_to));
        seen.cluster.status_reason = row.reason.clone();
        seen
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
        seen,
        // The context of the request was erased with its token when the operation ended.
        context: RequestContext::for_caller(&caller, &request),
        refusal: None,
    })
}
