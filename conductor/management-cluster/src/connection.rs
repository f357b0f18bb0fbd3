//! The one connection of a process to its management cluster, made when it is first used, and made anew when its kubeconfig changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::Mutex;

use crate::access::{AccessError, ManagementCluster, Source};

/// When files were changed, and how large they are.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

/// The connection. A kubeconfig that somebody is just writing is looked at again by the next who asks; until it can be read, nobody
/// gets a connection, rather than one to what the operator has moved away from.
#[derive(Default)]
pub struct Connection {
    option: Option<PathBuf>,
    opened: Mutex<Option<(Stamp, ManagementCluster)>>,
}

impl Connection {
    /// To what the option `kubeconfig_file` names; `None`: it names nothing.
    pub fn new(option: Option<PathBuf>) -> Self {
        Self {
            option,
            opened: Mutex::default(),
        }
    }

    /// The management cluster. Clones share their connections.
    ///
    /// # Errors
    /// What is written down cannot be used.
    pub async fn cluster(&self) -> Result<ManagementCluster, AccessError> {
        let source = Source::find(self.option.as_deref(), |name| std::env::var_os(name))?;
        let stamp = stamp(&source);
        let mut opened = self.opened.lock().await;
        if let Some((of, cluster)) = &*opened
            && *of == stamp
            && cluster.source == source
        {
            return Ok(cluster.clone());
        }
        *opened = None;
        let cluster = ManagementCluster::open(source).await?;
        *opened = Some((stamp, cluster.clone()));
        Ok(cluster)
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
