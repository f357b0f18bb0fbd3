//! Three MariaDB servers that replicate with Galera, from the installed packages.
//!
//! A node that comes back fetches what it missed from another one's cache (IST): no copy of all data (SST) is ever needed,
//! since all begin with the same data. Those are made once in a test process. As under systemd, a node that was killed is
//! asked first how far it got. A node that says nothing is expelled after two seconds; the others commit nothing meanwhile.
//! Like [`crate::mariadb`], commits survive a kill, not a loss of power.

mod data;
mod node;
mod session;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tokio::sync::OnceCell;

use self::node::{Begin, Node};
pub use self::session::execute;
use crate::system_user::SystemUser;
use crate::wait;

const NODES: usize = 3;
const PROGRAM: &str = "/usr/sbin/mariadbd";
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
/// rsync, by which nodes talk before one fetches what it missed, runs as nobody when it is started as root.
const SYSTEM_USER: SystemUser = SystemUser("mysql");
const PATIENCE: Duration = Duration::from_secs(90);

/// The cluster. Nodes are known by their number, from 0. It ends when it is dropped.
#[derive(Debug)]
pub struct Galera {
    nodes: Vec<Node>,
}

impl Galera {
    /// Three nodes with the same, empty data. Takes some ten seconds.
    pub async fn start() -> Result<Self> {
        static DATA: OnceCell<PathBuf> = OnceCell::const_new();
        let data = DATA.get_or_try_init(data::create).await?;
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(Node::on(data.clone()).await?);
        }
        let cluster = Self { nodes };
        cluster.begin(0, Begin::New).await?;
        cluster.wait_synced(0).await?;
        // One after the other: two that come at the same time are in each other's way for seconds.
        for number in 1..NODES {
            cluster.begin(number, Begin::Join).await?;
            cluster.wait_synced(number).await?;
        }
        cluster.wait_healthy().await?;
        Ok(cluster)
    }

    /// How many nodes it has.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Where a node listens.
    pub fn address(&self, number: usize) -> SocketAddr {
        self.nodes[number].address()
    }

    /// `kill -9` of a node.
    pub async fn kill(&self, number: usize) -> Result<()> {
        match self.nodes[number].process.lock().await.take() {
            Some(process) => process.kill().await.map(drop),
            None => Ok(()),
        }
    }

    /// Stops a node where it is, as a virtual machine that is paused. The others go on without it.
    pub async fn pause(&self, number: usize) -> Result<()> {
        self.nodes[number].signal(Signal::SIGSTOP).await
    }

    /// Lets a paused node go on: it learns that it was expelled, and comes back.
    pub async fn resume(&self, number: usize) -> Result<()> {
        self.nodes[number].signal(Signal::SIGCONT).await
    }

    /// Starts a node that was killed, and waits until it has all that it missed.
    pub async fn restart(&self, number: usize) -> Result<()> {
        self.begin(number, Begin::Join).await?;
        self.wait_synced(number).await
    }

    /// Waits until a node has all that the others have, and they know it.
    pub async fn wait_synced(&self, number: usize) -> Result<()> {
        let node = &self.nodes[number];
        wait::until(&format!("{} to be synced", node.name), PATIENCE, async || {
            if let Some(process) = node.process.lock().await.as_mut() {
                process.assert_running()?;
            }
            let state = node.status("wsrep_local_state_comment").await?;
            let view = node.status("wsrep_cluster_status").await?;
            ensure!(state == "Synced" && view == "Primary", "{state}, {view}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until all nodes are synced and agree on who is there. One that was paused believes for a moment that nothing has
    /// happened.
    pub async fn wait_healthy(&self) -> Result<()> {
        for number in 0..NODES {
            self.wait_synced(number).await?;
        }
        wait::until("the nodes to agree on who is there", PATIENCE, async || {
            let mut views = Vec::new();
            for node in &self.nodes {
                let size = node.status("wsrep_cluster_size").await?;
                views.push((size, node.status("wsrep_cluster_conf_id").await?));
            }
            let is_whole = views[0].0 == NODES.to_string();
            let is_one = views.iter().all(|view| *view == views[0]);
            ensure!(is_whole && is_one, "size and number of their views: {views:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until each node has carried out what was committed on any of them before.
    pub async fn catch_up(&self) -> Result<()> {
        for node in &self.nodes {
            let sql = "SET SESSION wsrep_sync_wait = 1; SELECT count(*) FROM information_schema.schemata";
            execute(node.address(), sql).await?;
        }
        Ok(())
    }

    /// Whether a node may be used: what the service beside it tells a balancer.
    pub async fn is_usable(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        node.status("wsrep_local_state")
            .await
            .is_ok_and(|state| state == "4")
            && node
                .status("wsrep_cluster_status")
                .await
                .is_ok_and(|view| view == "Primary")
    }

    /// To which of its nodes an address leads, such as a balancer's.
    pub async fn behind(&self, address: SocketAddr) -> Result<usize> {
        let query = "SELECT CAST(@@port AS CHAR CHARACTER SET utf8mb4) AS value";
        wait::until("a node behind the address", PATIENCE, async || {
            let port = session::ask(address, query.to_owned()).await?;
            let number = self.nodes.iter().position(|node| node.port.to_string() == port);
            number.with_context(|| format!("none listens on {port}"))
        })
        .await
    }

    async fn begin(&self, number: usize, begin: Begin) -> Result<()> {
        let members = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.group));
        let members: Vec<String> = members.collect();
        self.nodes[number].start(begin, &members.join(","), &[]).await
    }
}
