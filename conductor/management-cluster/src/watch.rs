//! Kinds of objects, watched in all namespaces: how they are, without a request.
//!
//! One watch for each kind and process. A look at a thousand clusters reads what the watches have told meanwhile.
//!
//! Guarantees: what is told is a state that the API server has had, at most [`BEHIND`] ago, also when the network swallows all that is
//! sent. From the moment at which a watch fails until the kind was listed anew, nothing is told; of a kind that may be missing, and is not
//! served, that it has no objects. Each kind is listed anew every ten minutes besides, so that an event that never came does not stay
//! unnoticed.
//!
//! Not guaranteed: that it is the newest state, or one of the same moment as that of another kind. Who ends something by it reads it
//! live before.

mod failures;
mod kept;

use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use magnum_common::retry::RetryPolicy;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::failures::Failures;
use self::kept::Kept;
use crate::access::{AccessError, CONNECT_WITHIN, ManagementCluster};
use crate::objects::Kind;

/// After so many seconds the API server ends a watch, which goes on where it was.
const ONE_WATCH: u32 = 60;
/// A server that says nothing for so long is not there.
const SILENT_FOR: Duration = Duration::from_secs(70);
/// The most that what is told can be behind: a watch that hears nothing, and the next one, which nobody answers.
pub const BEHIND: Duration = Duration::from_secs(70 + 5 + 70);
/// Time between two lists of the same kind; also where it may be missing and is, or the account may not read it.
const LISTED_ANEW: Duration = Duration::from_mins(10);
/// Pauses after failures.
const AGAIN: RetryPolicy = RetryPolicy {
    initial: Duration::from_secs(1),
    max_interval: Duration::from_secs(30),
    multiplier: 2.0,
    jitter: 0.5,
};

/// A kind that is watched.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// The kind.
    pub kind: Kind,
    /// Whether a management cluster may do without it: then it has no objects.
    pub may_be_missing: bool,
    /// The label by whose value objects are found; without one it is their name.
    pub found_by: Option<&'static str>,
    /// What is kept of an object, of which this gets all but the metadata.
    pub kept: fn(&Value) -> Value,
}

/// What is known of a kind.
#[derive(Debug, Default)]
struct Room {
    /// `None`: nothing for sure.
    known: Option<Kept>,
    /// What a list in progress has found so far.
    listed: Kept,
}

type Shared = Arc<RwLock<Room>>;

/// Watches of several kinds, which end with it.
pub struct Watches {
    rooms: Vec<(Kind, Shared)>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Starts them. Nothing is known before each kind was listed.
    ///
    /// # Errors
    /// There is no client for this management cluster.
    pub fn start(cluster: &ManagementCluster, kinds: &[Watched]) -> Result<Self, AccessError> {
        let mut config = cluster.config.clone();
        config.read_timeout = Some(SILENT_FOR);
        let client = cluster.source.client(config)?;
        let mut tasks = JoinSet::new();
        let failures = Arc::new(Failures::default());
        let rooms = kinds.iter().map(|watched| {
            let room = Shared::default();
            let (own, failures) = (Arc::clone(&room), Arc::clone(&failures));
            tasks.spawn(follow(client.clone(), *watched, own, failures));
            (watched.kind, room)
        });
        Ok(Self {
            rooms: rooms.collect(),
            _tasks: tasks,
        })
    }

    /// The objects of a kind in a namespace that are found by this key, in the order of their names. `None`: that is not known.
    pub fn found(&self, kind: Kind, namespace: &str, key: &str) -> Option<Vec<Arc<Value>>> {
        let (_, room) = self.rooms.iter().find(|(of, _)| *of == kind)?;
        // A panic while something was written can have left an object out.
        let room = room.read().ok()?;
        Some(room.known.as_ref()?.found(namespace, key))
    }
}

/// Watches a kind for ever.
async fn follow(client: Client, watched: Watched, room: Shared, failures: Arc<Failures>) {
    let api = Api::all_with(client, &watched.kind.resource());
    let kind = watched.kind.plural;
    let mut delays = AGAIN.delays();
    let _forgets = Forgets(Arc::clone(&room));
    loop {
        let listed = || {
            failures.passed(kind);
            delays.reset();
        };
        let Err(error) = until_it_ends(&api, watched, &room, listed).await else {
            continue;
        };
        let pause = match refusal(&error) {
            Some(404) if watched.may_be_missing => {
                written(&room, |room| room.known = Some(Kept::default()));
                failures.passed(kind);
                LISTED_ANEW
            }
            refused => {
                written(&room, |room| room.known = None);
                failures.failed(kind, &error);
                match refused {
                    Some(401 | 403) => LISTED_ANEW,
                    _ => delays.next_delay(),
                }
            }
        };
        sleep(pause).await;
    }
}

/// Whatever ends a watch, a panic too: nothing is known afterwards.
struct Forgets(Shared);

impl Drop for Forgets {
    fn drop(&mut self) {
        written(&self.0, |room| room.known = None);
    }
}

/// Lists and watches until it is time to list anew, or until something fails.
async fn until_it_ends(
    api: &Api<DynamicObject>,
    watched: Watched,
    room: &Shared,
    mut listed: impl FnMut(),
) -> Result<(), watcher::Error> {
    let how = watcher::Config::default().timeout(ONE_WATCH);
    let mut events = pin!(watcher(api.clone(), how).take_until(sleep(LISTED_ANEW)));
    while let Some(event) = events.next().await {
        let event = event?;
        let is_listed = matches!(event, Event::InitDone);
        written(room, |room| room.take(event, watched));
        if is_listed {
            listed();
        }
    }
    Ok(())
}

fn written(room: &Shared, change: impl FnOnce(&mut Room)) {
    change(&mut room.write().unwrap_or_else(PoisonError::into_inner));
}

impl Room {
    fn take(&mut self, event: Event<DynamicObject>, watched: Watched) {
        match event {
            Event::Init => self.listed = Kept::default(),
            Event::InitApply(object) => self.listed.put(object, watched),
            Event::InitDone => self.known = Some(std::mem::take(&mut self.listed)),
            Event::Apply(object) => {
                if let Some(known) = &mut self.known {
                    known.put(object, watched);
                }
            }
            Event::Delete(object) => {
                if let Some(known) = &mut self.known {
                    known.remove(&object);
                }
            }
        }
    }
}

/// The HTTP status with which the API server refuses to list or to watch.
fn refusal(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

const _: () = assert!(
    BEHIND.as_secs() == 2 * SILENT_FOR.as_secs() + CONNECT_WITHIN.as_secs()
        && SILENT_FOR.as_secs() > ONE_WATCH as u64
);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::CLUSTER;

    const CLUSTERS: Watched = Watched {
        kind: CLUSTER,
        may_be_missing: false,
        found_by: None,
        kept: Value::clone,
    };

    fn cluster(name: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "room"}})).unwrap()
    }

    fn known(room: &Room) -> Option<[usize; 2]> {
        let known = room.known.as_ref()?;
        Some(["a", "b"].map(|name| known.found("room", name).len()))
    }

    #[test]
    fn known_objects_stay_until_the_next_list_is_complete() {
        let mut room = Room::default();
        for (event, expected) in [
            (Event::Init, None),
            (Event::InitApply(cluster("a")), None),
            (Event::InitDone, Some([1, 0])),
            (Event::Init, Some([1, 0])),
            (Event::InitApply(cluster("b")), Some([1, 0])),
            (Event::InitDone, Some([0, 1])),
            (Event::Apply(cluster("a")), Some([1, 1])),
            (Event::Delete(cluster("b")), Some([1, 0])),
        ] {
            room.take(event, CLUSTERS);
            assert_eq!(known(&room), expected);
        }
    }
}
