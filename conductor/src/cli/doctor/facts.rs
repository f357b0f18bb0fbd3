//! What database, broker and Keystone say about the installation. Each of them may be away: then that is the fact.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use magnum_common::clock::utc_now;
use magnum_common::model::{Cluster, ClusterStatus, MagnumService, Timestamp};
use magnum_config::{Settings, masked_url};
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::read::operations::{self, Operation};
use magnum_db::read::{Page, Tenancy, clusters, records};
use magnum_db::{AnyConnection, Database, DatabaseUrl, DbError, PoolOptions, migrate, now_ms};
use magnum_driver_api::Cloud;
use magnum_rpc::{self as rpc, PublishError, QueueState, RpcOptions, Transport, TransportUrl};
use tokio::time::Instant;

/// A person waits for the result.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A conductor that has just started takes requests by then.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Most operations that are looked at, and most clusters.
const MOST: u32 = 1000;

/// Everything that is known.
pub(super) struct Facts {
    /// Where the database is, without the password.
    pub(super) database_url: String,
    pub(super) database: Result<Stored, String>,
    /// Where the broker is, without passwords.
    pub(super) broker_url: String,
    /// `None`: the parts of one process need none.
    pub(super) broker: Option<Result<Queues, String>>,
    /// As whom Keystone lets drivers in. `None`: no service user is configured.
    pub(super) keystone: Option<Result<String, String>>,
    /// Older reports do not count.
    pub(super) service_down_time: Duration,
    pub(super) now: Timestamp,
}

/// What the database holds.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) now_ms: i64,
    pub(super) services: Vec<MagnumService>,
    pub(super) announced: Vec<AnnouncedDriver>,
    /// Those that have not ended, the latest first.
    pub(super) open: Vec<Operation>,
    /// The latest first.
    pub(super) failed: Vec<Operation>,
    /// Clusters in progress, for which no operation is open.
    pub(super) unattended: Vec<Cluster>,
    /// Names of clusters by uuid.
    pub(super) names: HashMap<String, String>,
}

/// What the broker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queues {
    /// Requests. `None`: no conductor has ever run.
    pub(super) requests: Option<QueueState>,
    /// Messages that were set aside.
    pub(super) dead_letters: Option<QueueState>,
}

impl Facts {
    /// Asks all three at once.
    pub(super) async fn gather(settings: &Settings) -> Self {
        let (database, broker, keystone) =
            tokio::join!(stored(settings), queues(settings), keystone(settings));
        let url = DatabaseUrl::parse(settings.database.connection.expose());
        Self {
            database_url: url.map_or_else(|error| error.to_string(), |url| url.shown()),
            database: database.map_err(|error| error.to_string()),
            broker_url: masked_url(settings.default.transport_url.expose()),
            broker,
            keystone,
            service_down_time: settings.default.service_down_time,
            now: utc_now().naive_utc(),
        }
    }
}

async fn stored(settings: &Settings) -> Result<Stored, DbError> {
    let options = PoolOptions {
        connect_attempts: Some(1),
        max_connections: 1,
        ..PoolOptions::from(&settings.database)
    };
    let url = DatabaseUrl::parse(settings.database.connection.expose())?;
    let database = Database::open(url, options).await?;
    migrate::check(&database).await?;
    let fresh = settings.default.service_down_time;
    database.run(move |conn| read(conn, fresh)).await
}

fn read(conn: &mut AnyConnection, fresh: Duration) -> Result<Stored, DbError> {
    let (open, failed) = operations::open_and_failed(conn, MOST)?;
    let in_progress = clusters::Filter {
        statuses: Some(
            ClusterStatus::IN_PROGRESS
                .iter()
                .map(ToString::to_string)
                .collect(),
        ),
        ..clusters::Filter::default()
    };
    let page = Page {
        limit: Some(MOST),
        ..Page::default()
    };
    // Of more open operations than were read it is not known which clusters they are about.
    let mut unattended = if open.len() < MOST as usize {
        clusters::list(conn, &Tenancy::All, &in_progress, &page)?
    } else {
        Vec::new()
    };
    let attended: HashSet<&str> = open.iter().map(|one| one.cluster_uuid.as_str()).collect();
    unattended.retain(|cluster| !attended.contains(cluster.uuid.as_str()));
    let mut uuids: Vec<&str> = open
        .iter()
        .chain(&failed)
        .map(|operation| operation.cluster_uuid.as_str())
        .collect();
    uuids.sort_unstable();
    uuids.dedup();
    Ok(Stored {
        now_ms: now_ms(conn)?,
        services: records::services(conn)?,
        announced: announced_drivers::list(conn, fresh)?,
        names: clusters::names(conn, &uuids)?,
        open,
        failed,
        unattended,
    })
}

async fn queues(settings: &Settings) -> Option<Result<Queues, String>> {
    let options = match RpcOptions::try_from(settings) {
        Ok(options) => options,
        Err(error) => return Some(Err(error.to_string())),
    };
    if matches!(options.url, TransportUrl::Fake(_)) {
        return None;
    }
    let asked = async {
        let transport = rpc::connect(settings, "magnum-conductor-doctor")
            .await
            .map_err(|error| error.to_string())?;
        let requests = requests(&*transport, options.addressing.names.topic_queue()).await;
        let dead = match &settings.conductor.dead_letter_queue {
            Some(queue) => transport.queue(queue).await,
            None => Ok(None),
        };
        transport.close().await;
        Ok(Queues {
            requests: requests.map_err(|error| error.to_string())?,
            dead_letters: dead.map_err(|error| error.to_string())?,
        })
    };
    let answer = tokio::time::timeout(ANSWER_WITHIN, asked).await;
    Some(answer.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs()))))
}

/// The queue of requests, as it is once a conductor that starts right now takes some.
async fn requests(transport: &dyn Transport, queue: &str) -> Result<Option<QueueState>, PublishError> {
    let end = Instant::now() + STARTS_WITHIN;
    loop {
        let state = transport.queue(queue).await?;
        if state.is_some_and(|state| state.consumers > 0) || Instant::now() > end {
            return Ok(state);
        }
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

async fn keystone(settings: &Settings) -> Option<Result<String, String>> {
    let cloud = Cloud::new(settings);
    let session = cloud.service().ok()?;
    let answer = tokio::time::timeout(ANSWER_WITHIN, session.identity()).await;
    Some(match answer {
        Ok(identity) => identity.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
    })
}
