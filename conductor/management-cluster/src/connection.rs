//! The one connection of a process to its management cluster, made when it is first used, and made anew when its kubeconfig changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::Mutex;

use crate::access::{AccessError, ManagementCluster, Source};
use crate::watch::{Watched, Watches};

/// When files were changed, and how large they are.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

/// The connection. A kubeconfig that somebody is just writing is looked at again by the next who asks; until it can be read, nobody
/// gets a connection, rather than one to what the operator has moved away from.
pub struct Connection {
    option: Option<PathBuf>,
    watched: &'static [Watched],
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    stamp: Stamp,
    cluster: ManagementCluster,
    /// Since somebody has asked for them.
    watches: Option<Arc<Watches>>,
}

impl Connection {
    /// To what the option `kubeconfig_file` names; `None`: it names nothing. These kinds are watched over it.
    pub fn new(option: Option<PathBuf>, watched: &'static [Watched]) -> Self {
        Self {
            option,
            watched,
            opened: Mutex::default(),
        }
    }

    /// The management cluster. Clones share their connections.
    ///
    /// # Errors
    /// What is written down cannot be used.
    pub async fn cluster(&self) -> Result<ManagementCluster, AccessError> {
        self.with_opened(|opened| Ok(opened.cluster.clone())).await
    }

    /// The watches, which begin when they are first asked for, and anew with another connection.
    ///
    /// # Errors
    /// What is written down cannot be used.
    pub async fn watches(&self) -> Result<Arc<Watches>, AccessError> {
        self.with_opened(|opened| {
            let watches = match opened.watches.take() {
                Some(watches) => watches,
                None => Arc::new(Watches::start(&opened.cluster, self.watched)?),
            };
            Ok(Arc::clone(opened.watches.insert(watches)))
        })
        .await
    }

    async fn with_opened<T>(
        &self,
        ask: impl FnOnce(&mut Opened) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let source = Source::find(self.option.as_deref(), |name| std::env::var_os(name))?;
        let stamp = stamp(&source);
        let mut opened = self.opened.lock().await;
        let is_as_before = |opened: &Opened| opened.stamp == stamp && opened.cluster.source == source;
        let current = match opened.take().filter(is_as_before) {
            Some(current) => current,
            None => Opened {
                cluster: ManagementCluster::open(source).await?,
                stamp,
                watches: None,
            },
        };
        ask(opened.insert(current))
    }
}

/// Files that are links, as a mounted Secret has them, count as what they lead to.
fn stamp(source: &Source) -> Stamp {
    let of = |file: &Path| {
        let found = fs::metadata(file).ok();
        let changed = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        (file.to_owned(), changed)
    };
    match source {
        Source::Option(file) | Source::Home(file) => vec![of(file)],
        Source::Variable(files) => std::env::split_paths(files).map(|file| of(&file)).collect(),
        // Its token is read anew by the client.
        Source::Pod => Vec::new(),
    }
}
