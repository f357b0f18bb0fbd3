//! What the API depends on, as operators are shown it: database, broker with its queues, Keystone.
//!
//! Each is asked once for everybody who looks ([`Probe`]): a page that many people leave open costs these servers no more
//! than one, and a server that hangs costs a look two seconds.

use std::sync::Arc;

use magnum_config::{Settings, masked_url};
use magnum_db::DatabaseUrl;
use magnum_rpc::{Addressing, PublishError, QueueState, Transport};

use crate::auth::Authenticator;
use crate::health::probe::{Probe, Said};
use crate::state::App;

/// The servers, and where they are.
pub struct Services {
    /// Where the database is, without a password.
    database_place: String,
    /// Where the broker is, without passwords.
    broker_place: String,
    database: Arc<Probe>,
    queues: Arc<Probe<Queues>>,
    keystone: Arc<Probe<Option<String>>>,
}

/// What the broker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queues {
    /// Requests that wait for a conductor. `None`: there is no such queue, since no conductor has ever run.
    pub requests: Option<QueueState>,
    /// Messages that were set aside. `None`: there is no such queue.
    pub dead_letters: Option<QueueState>,
}

/// What each server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicesState {
    /// Where the database is, without a password.
    pub database_place: String,
    /// Where the broker is, without passwords.
    pub broker_place: String,
    /// Whether the database answers.
    pub database: Said,
    /// What the broker holds.
    pub queues: Said<Queues>,
    /// As whom Keystone lets the API in. `None`: it is not asked (`[api] auth_strategy = noauth`).
    pub keystone: Said<Option<String>>,
}

impl Services {
    /// Asks nobody yet. `database` is the probe that health checks use, too.
    pub fn new(settings: &Settings, app: &App, database: Arc<Probe>) -> Self {
        let url = DatabaseUrl::parse(settings.database.connection.expose());
        Self {
            database_place: url.map_or_else(|_| String::new(), |url| url.shown()),
            broker_place: masked_url(settings.default.transport_url.expose()),
            database,
            queues: queues_probe(settings, Arc::clone(&app.transport)),
            keystone: keystone_probe(Arc::clone(&app.authenticator)),
        }
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// Why it does not, in a sentence without its full stop.
    pub async fn database(&self) -> Said {
        self.database.ask().await
    }

    /// What all of them say, asked at once: within two seconds.
    pub async fn ask(&self) -> ServicesState {
        let (database, queues, keystone) =
            tokio::join!(self.database.ask(), self.queues.ask(), self.keystone.ask());
        ServicesState {
            database_place: self.database_place.clone(),
            broker_place: self.broker_place.clone(),
            database,
            queues,
            keystone,
        }
    }
}

fn queues_probe(settings: &Settings, transport: Arc<dyn Transport>) -> Arc<Probe<Queues>> {
    let requests: Arc<str> = Addressing::from(settings).names.topic_queue().into();
    let dead: Option<Arc<str>> = settings.conductor.dead_letter_queue.as_deref().map(Arc::from);
    Arc::new(Probe::new(move || {
        let (transport, requests, dead) = (Arc::clone(&transport), Arc::clone(&requests), dead.clone());
        Box::pin(async move {
            queues(transport.as_ref(), &requests, dead.as_deref())
                .await
                .map_err(|error| error.to_string())
        })
    }))
}

async fn queues(
    transport: &dyn Transport,
    requests: &str,
    dead: Option<&str>,
) -> Result<Queues, PublishError> {
    Ok(Queues {
        requests: transport.queue(requests).await?,
        dead_letters: match dead {
            Some(queue) => transport.queue(queue).await?,
            None => None,
        },
    })
}

fn keystone_probe(authenticator: Arc<Authenticator>) -> Arc<Probe<Option<String>>> {
    Arc::new(Probe::new(move || {
        let authenticator = Arc::clone(&authenticator);
        Box::pin(async move {
            authenticator
                .reach_keystone()
                .await
                .map_err(|error| error.to_string())
        })
    }))
}
