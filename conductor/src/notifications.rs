//! Notifications about clusters: `magnum.cluster.create`, `.update` and `.delete`, as Magnum emits them.
//!
//! | when | outcome | priority |
//! |---|---|---|
//! | a request is accepted and there is work | `pending` | info |
//! | a request is refused | `failure` | error |
//! | an operation ends, or a cluster that a Python conductor works on does | `success`, `failure` | info, error |
//!
//! Guarantee: best effort. Told after the commit, published with bounded retries, and lost with a process that
//! dies in between or a broker that stays away; the journal is what does not lose. A notification never holds up
//! or fails an operation (in Magnum it can do both). What an operator discards by command is not told.
//!
//! A queued notification describes the cluster when it is written; its status is the one that the operation led
//! to, whatever happened since.

pub mod cadf;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::config::Settings;
use magnum_common::context::{Caller, RequestContext};
use magnum_common::db::Database;
use magnum_common::ids::{ClusterUuid, OperationId, RequestId};
use magnum_common::model::Outcome;
use magnum_common::rpc::{Notification, NotificationFormat, Priority, Transport, notify};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::operations::journal::{JournalError, OperationRow, read};
use crate::operations::notice::{Notice, NoticeOutcome, Seen, Told};
use crate::operations::{OperationKind, State, settle};
use crate::store;

/// How long a stop waits for what is queued.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where notifications go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Publish(NotificationFormat),
    Log,
}

/// Sends what is told.
pub struct Notifier {
    db: Database,
    transport: Arc<dyn Transport>,
    ways: Vec<Way>,
    exchange: String,
    topics: Vec<String>,
    publisher_id: String,
}

impl Notifier {
    /// By `[oslo_messaging_notifications]`. `None`: there is nobody to tell.
    pub fn new(settings: &Settings, db: Database, transport: Arc<dyn Transport>) -> Option<Self> {
        let ways = ways(&settings.oslo_messaging_notifications.driver);
        (!ways.is_empty()).then(|| Self {
            db,
            transport,
            ways,
            exchange: settings.default.control_exchange.clone(),
            topics: settings.oslo_messaging_notifications.topics.clone(),
            publisher_id: format!("container-infra.{}", settings.default.host),
        })
    }

    /// Sends what `told` brings until `shutdown`, and then what is queued, for a moment.
    pub async fn run(self, mut told: mpsc::Receiver<Notice>, shutdown: CancellationToken) {
        loop {
            let notice = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                notice = told.recv() => match notice {
                    Some(notice) => notice,
                    // Whoever could tell is gone; so will be this part.
                    None => return shutdown.cancelled().await,
                },
            };
            tokio::select! {
                () = self.tell(notice) => {}
                () = shutdown.cancelled() => break,
            }
        }
        let last_words = async {
            while let Ok(notice) = told.try_recv() {
                self.tell(notice).await;
            }
        };
        if timeout(LAST_WORDS, last_words).await.is_err() {
            tracing::warn!("the process stops before all notifications are sent");
        }
    }

    async fn tell(&self, notice: Notice) {
        let told = match notice {
            Notice::Told(told) => *told,
            Notice::Ended { operation, seen } => match self.ended(operation, seen).await {
                Ok(Some(told)) => told,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "a notification is lost: the journal cannot be read");
                    return;
                }
            },
        };
        let notification = self.notification(&told);
        for way in &self.ways {
            match way {
                Way::Publish(format) => self.publish(&notification, *format).await,
                Way::Log => {
                    tracing::info!(target: "notification", "{}", notification.to_message());
                }
            }
        }
    }

    async fn publish(&self, notification: &Notification, format: NotificationFormat) {
        for topic in &self.topics {
            let sent = notify(
                self.transport.as_ref(),
                &self.exchange,
                topic,
                notification,
                format,
            )
            .await;
            if let Err(error) = sent {
                tracing::warn!(%error, topic, event = notification.event_type, "a notification is lost");
            }
        }
    }

    fn notification(&self, told: &Told) -> Notification {
        Notification {
            publisher_id: self.publisher_id.clone(),
            event_type: format!("magnum.cluster.{}", cadf::action(told.kind)),
            priority: match told.outcome {
                NoticeOutcome::Failure => Priority::Error,
                NoticeOutcome::Pending | NoticeOutcome::Success => Priority::Info,
            },
            payload: cadf::payload(&cadf::Event {
                kind: told.kind,
                outcome: told.outcome,
                cluster: &told.cluster,
                seen: told.seen.as_ref(),
                context: &told.context,
                refusal: told.refusal.as_ref(),
            }),
            context: told.context.clone(),
        }
    }

    /// How an operation ended, by the journal, and its cluster as it is now or was last seen.
    async fn ended(
        &self,
        operation: OperationId,
        seen: Option<Box<Seen>>,
    ) -> Result<Option<Told>, JournalError> {
        let found = self
            .db
            .transaction::<_, JournalError, _>(move |conn| {
                let Some(row) = read::find(conn, operation.as_str())? else {
                    return Ok(None);
                };
                let uuid = ClusterUuid::new(row.cluster_uuid.clone());
                let now = match store::clusters::find(conn, &uuid)? {
                    Some(cluster) => Some(Seen {
                        cluster,
                        node_groups: store::node_groups::of(conn, &uuid)?,
                    }),
                    None => None,
                };
                Ok(Some((row, now)))
            })
            .await?;
        Ok(found.and_then(|(row, now)| told_of(&row, now.or_else(|| seen.map(|seen| *seen)))))
    }
}

/// What there is to tell of an operation that has ended.
fn told_of(row: &OperationRow, seen: Option<Seen>) -> Option<Told> {
    let kind: OperationKind = row.kind.parse().ok()?;
    let (outcome, led_to) = match row.state.parse().ok()? {
        State::Succeeded => (NoticeOutcome::Success, Outcome::Complete),
        State::Failed => (NoticeOutcome::Failure, Outcome::Failed),
        // Stopped by an operator: the cluster is failed. Other cancelled ones gave way to a delete, which tells.
        State::Cancelled if row.reason.as_deref() == Some(settle::STOPPED) => {
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
    Some(Told {
        kind,
        outcome,
        cluster: ClusterUuid::new(row.cluster_uuid.clone()),
        seen,
        // The context of the request was erased with its token when the operation ended.
        context: RequestContext::for_caller(&caller, &request),
        refusal: None,
    })
}

/// The drivers of oslo.messaging that exist here. Others are named in the log and left out, as oslo does.
fn ways(drivers: &[String]) -> Vec<Way> {
    drivers
        .iter()
        .filter_map(|driver| match driver.as_str() {
            "messagingv2" => Some(Way::Publish(NotificationFormat::Enveloped)),
            "messaging" => Some(Way::Publish(NotificationFormat::Bare)),
            "log" => Some(Way::Log),
            "noop" | "" => None,
            other => {
                tracing::warn!(
                    "[oslo_messaging_notifications] driver: {other:?} does not exist here and is left out; \
                     there are messagingv2, messaging, log and noop"
                );
                None
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_known_by_oslos_names_and_noop_is_none() {
        let ways = |drivers: &[&str]| {
            ways(
                &drivers
                    .iter()
                    .map(|driver| (*driver).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(ways(&[]), []);
        assert_eq!(ways(&["noop", "carrier-pigeon"]), []);
        assert_eq!(
            ways(&["log", "messagingv2", "messaging"]),
            [
                Way::Log,
                Way::Publish(NotificationFormat::Enveloped),
                Way::Publish(NotificationFormat::Bare)
            ]
        );
    }
}
