//! Three RabbitMQ nodes that are one cluster, for quorum queues: whatever is confirmed is on two of them at least.
//!
//! The nodes share a cookie and an epmd of their own and find each other by their configuration. Without two of them the
//! cluster takes nothing (`pause_minority`). Queues of which a killed node was the leader elect another one at once. Not here: a
//! node that is cut off or silent, which the others notice after Erlang's `net_ticktime` (a minute).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::future::try_join_all;
use serde_json::Value;

use crate::ports::free_port;
use crate::rabbitmq::{Rabbitmq, Shared, Turn, Vhost, spawn_epmd, turn};
use crate::run_dir::run_dir;
use crate::server::ServerProcess;
use crate::wait;

const NODES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(120);

/// The cluster. Nodes are known by their number, from 0. It ends when it is dropped.
#[derive(Debug)]
pub struct RabbitmqCluster {
    nodes: Vec<Rabbitmq>,
    epmd: ServerProcess,
    _turn: Turn,
}

impl RabbitmqCluster {
    /// Three nodes, started at the same time. Takes some ten seconds, and waits for its turn, as a broker of one's own does.
    pub async fn start() -> Result<Self> {
        let turn = turn().await?;
        let shared = Shared {
            epmd_port: free_port()?,
            home: run_dir()?.folder("rabbitmq-home")?,
        };
        let cookie = shared.home.join(".erlang.cookie");
        fs::write(&cookie, format!("{:032x}", rand::random::<u128>()))?;
        fs::set_permissions(&cookie, fs::Permissions::from_mode(0o400))?;
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(Rabbitmq::member(&shared)?);
        }
        let members = nodes.iter().enumerate().map(|(number, node)| {
            let name = node.node_name();
            format!("cluster_formation.classic_config.nodes.{} = {name}\n", number + 1)
        });
        let options = format!(
            "cluster_formation.peer_discovery_backend = classic_config\n\
             cluster_partition_handling = pause_minority\n{}",
            members.collect::<String>()
        );
        for node in &mut nodes {
            node.set_members(&options)?;
        }
        let cluster = Self {
            epmd: spawn_epmd("rabbitmq-cluster", shared.epmd_port)?,
            nodes,
            _turn: turn,
        };
        try_join_all(cluster.nodes.iter().map(Rabbitmq::start)).await?;
        cluster.wait_healthy().await?;
        Ok(cluster)
    }

    /// How many nodes it has.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// One of its nodes.
    pub fn node(&self, number: usize) -> &Rabbitmq {
        &self.nodes[number]
    }

    /// `kill -9` of a node.
    pub async fn kill(&self, number: usize) -> Result<()> {
        self.nodes[number].kill().await
    }

    /// Starts a node that was killed or stopped, and waits until all know each other.
    pub async fn restart(&self, number: usize) -> Result<()> {
        self.nodes[number].start().await?;
        self.wait_healthy().await
    }

    /// Waits until every node knows that all are there, and no queue has a member that is away.
    pub async fn wait_healthy(&self) -> Result<()> {
        wait::until("the brokers to be one cluster", PATIENCE, async || {
            for node in &self.nodes {
                let known = node.management().get("nodes").await?;
                let known = known.as_array().context("no list of nodes")?;
                let running = known.iter().filter(|one| one["running"] == true).count();
                ensure!(running == self.size(), "{} knows of {running}", node.node_name());
            }
            let queues = self.ask("queues").await?;
            for queue in queues.as_array().context("no list of queues")? {
                let count = |what: &str| queue[what].as_array().map_or(0, Vec::len);
                ensure!(count("members") == count("online"), "a member is away: {queue}");
            }
            Ok(())
        })
        .await
    }

    /// A new vhost, on all nodes. RabbitMQ gives up after 45 seconds when the processors are busy with other tests, and asked for the
    /// same name again it grants nobody anything there: that one is left, and another one made.
    pub async fn vhost(&self) -> Result<Vhost> {
        let others = self.nodes[1..].iter().map(Rabbitmq::address).collect();
        let vhost = wait::until("a vhost on all brokers", PATIENCE, async || {
            self.nodes[0].vhost().await
        });
        Ok(vhost.await?.with_others(others))
    }

    /// Which node leads a quorum queue.
    pub async fn leader_of(&self, vhost: &Vhost, queue: &str) -> Result<usize> {
        let path = format!("queues/{}/{queue}", vhost.name);
        wait::until(&format!("a leader of {queue}"), PATIENCE, async || {
            let leader = self.ask(&path).await?["leader"].clone();
            let number = self
                .nodes
                .iter()
                .position(|node| leader == node.node_name().as_str());
            number.with_context(|| format!("the leader is {leader}"))
        })
        .await
    }

    /// Has another node lead a quorum queue. An error when it does not take over.
    pub async fn transfer_leadership(&self, vhost: &Vhost, queue: &str, to: usize) -> Result<()> {
        let expression = format!(
            "{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"{}\">>, queue, <<\"{queue}\">>)), \
             rabbit_quorum_queue:transfer_leadership(Q, '{}').",
            vhost.name,
            self.nodes[to].node_name(),
        );
        let leader = self.leader_of(vhost, queue).await?;
        let said = self.nodes[leader].control(&["eval", &expression]).await?;
        ensure!(said.contains("migrated") || leader == to, "{said}");
        Ok(())
    }

    /// What any node that answers says.
    async fn ask(&self, path: &str) -> Result<Value> {
        let mut last = anyhow!("there is no node");
        for node in &self.nodes {
            match node.management().get(path).await {
                Ok(said) => return Ok(said),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Drop for RabbitmqCluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            node.discard();
        }
        self.epmd.kill_now();
    }
}
