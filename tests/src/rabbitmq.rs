//! A private RabbitMQ node, from the installed package, with its own data, logs, cookie, epmd and ports.
//!
//! One node per test process for everything that only needs a broker ([`Rabbitmq::shared`], a vhost per
//! test), and one of its own for a test that stops or kills it ([`Rabbitmq::dedicated`]). The management
//! plugin is on: it makes a vhost in milliseconds where `rabbitmqctl` starts a virtual machine for each
//! command, and it shows queues with their arguments as the broker knows them.
//!
//! The node keeps its ports and data across [`Rabbitmq::stop`] and [`Rabbitmq::start`], so clients that
//! reconnect meet the same durable and quorum queues. Several form a cluster in [`crate::rabbitmq_cluster`].

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, OnceCell, Semaphore, SemaphorePermit};

use crate::certificates::{Authority, Signed};
use crate::management::Management;
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::ServerProcess;

/// User of every vhost; management administrator too.
pub const USER: &str = "magnum";
/// Password of [`USER`].
pub const PASSWORD: &str = "rabbit-secret";

const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";

/// Has leaders elected of the queues that have none (`docs/OPERATIONS.md`).
pub const ELECT_LEADERS: &str = "rabbitmqctl eval '[{Q, (catch ra:trigger_election(P))} || A <- rabbit_amqqueue:list(), \
                                 amqqueue:get_type(A) =:= rabbit_quorum_queue, {_, _, _, Q} <- [amqqueue:get_name(A)], \
                                 P <- [amqqueue:get_pid(A)], element(1, ra:members(P, 5000)) =/= ok].'";
const START_WITHIN: Duration = Duration::from_secs(120);
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// One node. Its methods take `&self`, so that a test can restart it while others hold a reference.
#[derive(Debug)]
pub struct Rabbitmq {
    name: String,
    folder: PathBuf,
    amqp_port: u16,
    /// Where it speaks AMQP over TLS, and with which certificates.
    tls: Option<(u16, String)>,
    management_port: u16,
    epmd_port: u16,
    distribution_port: u16,
    /// Where its cookie is.
    home: PathBuf,
    /// Of a member of a cluster: what its configuration has besides. Its epmd is the cluster's.
    member: Option<String>,
    processes: Mutex<Processes>,
    _turn: Option<Turn>,
}

/// A test with brokers of its own has many programs beside them. More of them at the same time take each other's processors, and the
/// brokers of all of them two minutes to start. A test takes one turn: with two it could wait for itself.
pub(crate) type Turn = SemaphorePermit<'static>;

/// Waits for a turn, which ends with what holds it.
pub(crate) async fn turn() -> Result<Turn> {
    static TURNS: Semaphore = Semaphore::const_new(2);
    Ok(TURNS.acquire().await?)
}

/// What the members of a cluster share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) epmd_port: u16,
    pub(crate) home: PathBuf,
}

#[derive(Debug, Default)]
struct Processes {
    node: Option<ServerProcess>,
    epmd: Option<ServerProcess>,
}

impl Rabbitmq {
    /// The node that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Rabbitmq> = OnceCell::const_new();
        SHARED
            .get_or_try_init(|| Self::of_our_own(None, "rabbitmq_management"))
            .await
    }

    /// A node of one's own, to be stopped, killed and started again. Takes some five seconds, and waits for its turn: a test asks
    /// for one only.
    pub async fn dedicated() -> Result<Self> {
        let turn = turn().await?;
        let node = Self::of_our_own(None, "rabbitmq_management").await?;
        Ok(Self {
            _turn: Some(turn),
            ..node
        })
    }

    /// One that speaks TLS, too, with `server`'s certificate. It verifies a client's certificate against the
    /// authority, but does not insist on one.
    pub async fn with_tls(authority: &Authority, server: &Signed) -> Result<Self> {
        let options = format!(
            "ssl_options.cacertfile = {}\n\
             ssl_options.certfile = {}\n\
             ssl_options.keyfile = {}\n\
             ssl_options.verify = verify_peer\n\
             ssl_options.fail_if_no_peer_cert = false\n",
            authority.certificate().display(),
            server.certificate.display(),
            server.key.display(),
        );
        Self::of_our_own(Some(options), "rabbitmq_management").await
    }

    /// One that insists on a client's certificate over TLS and takes the name in it for a login (`EXTERNAL`).
    pub async fn with_mutual_tls(authority: &Authority, server: &Signed) -> Result<Self> {
        let options = format!(
            "ssl_options.cacertfile = {}\n\
             ssl_options.certfile = {}\n\
             ssl_options.keyfile = {}\n\
             ssl_options.verify = verify_peer\n\
             ssl_options.fail_if_no_peer_cert = true\n\
             ssl_cert_login_from = common_name\n\
             auth_mechanisms.1 = PLAIN\n\
             auth_mechanisms.2 = AMQPLAIN\n\
             auth_mechanisms.3 = EXTERNAL\n",
            authority.certificate().display(),
            server.certificate.display(),
            server.key.display(),
        );
        Self::of_our_own(Some(options), "rabbitmq_management,rabbitmq_auth_mechanism_ssl").await
    }

    async fn of_our_own(tls: Option<String>, plugins: &str) -> Result<Self> {
        ensure!(
            Path::new(PROGRAM).exists(),
            "RabbitMQ is not installed ({PROGRAM} is missing); tests/run installs rabbitmq-server"
        );
        let mut last = None;
        for _ in 0..3 {
            let node = Self::prepare(tls.clone(), plugins)?;
            match node.start().await {
                Ok(()) => return Ok(node),
                // Another process may have taken one of the ports since they were chosen.
                Err(error) => last = Some(error),
            }
            node.kill().await.ok();
        }
        bail!(
            "RabbitMQ does not start: {:#}",
            last.context("no attempt was made")?
        )
    }

    /// A node that becomes a member of a cluster; not started.
    pub(crate) fn member(shared: &Shared) -> Result<Self> {
        let mut node = Self::prepare(None, "rabbitmq_management")?;
        node.epmd_port = shared.epmd_port;
        node.home.clone_from(&shared.home);
        Ok(node)
    }

    /// The members of its cluster, as lines of its configuration.
    pub(crate) fn set_members(&mut self, options: &str) -> Result<()> {
        self.member = Some(options.to_owned());
        fs::write(self.folder.join("rabbitmq.conf"), self.configuration())?;
        Ok(())
    }

    /// `kill -9`, and its data are gone.
    pub(crate) fn discard(&mut self) {
        if let Some(node) = &mut self.processes.get_mut().node {
            node.kill_now();
        }
        fs::remove_dir_all(&self.folder).ok();
    }

    /// Its name among the nodes of a cluster.
    pub fn node_name(&self) -> String {
        format!("{}@localhost", self.name)
    }

    fn prepare(tls: Option<String>, plugins: &str) -> Result<Self> {
        let run = run_dir()?;
        let folder = run.folder("rabbitmq")?;
        let name = folder
            .file_name()
            .context("unnamed folder")?
            .to_string_lossy()
            .into_owned();
        let node = Self {
            name,
            amqp_port: free_port()?,
            tls: tls
                .map(|options| Ok::<_, anyhow::Error>((free_port()?, options)))
                .transpose()?,
            management_port: free_port()?,
            epmd_port: free_port()?,
            distribution_port: free_port()?,
            home: folder.join("home"),
            member: None,
            folder,
            processes: Mutex::default(),
            _turn: None,
        };
        fs::create_dir_all(node.folder.join("home"))?;
        fs::write(node.folder.join("env.conf"), "")?;
        fs::write(node.folder.join("enabled_plugins"), format!("[{plugins}].\n"))?;
        fs::write(node.folder.join("rabbitmq.conf"), node.configuration())?;
        Ok(node)
    }

    fn configuration(&self) -> String {
        let tls = self.tls.as_ref().map_or_else(String::new, |(port, options)| {
            format!("listeners.ssl.1 = 127.0.0.1:{port}\n{options}")
        });
        format!(
            "listeners.tcp.1 = 127.0.0.1:{amqp}\n\
             management.tcp.ip = 127.0.0.1\n\
             management.tcp.port = {management}\n\
             collect_statistics_interval = 1000\n\
             default_user = {USER}\n\
             default_pass = {PASSWORD}\n\
             log.console = true\n\
             log.console.level = info\n\
             log.file = false\n\
             disk_free_limit.absolute = 50MB\n\
             raft.wal_max_size_bytes = 32000000\n\
             {tls}{member}",
            member = self.member.as_deref().unwrap_or_default(),
            amqp = self.amqp_port,
            management = self.management_port,
        )
    }

    /// Starts the node on the data it has. An error when it runs already.
    pub async fn start(&self) -> Result<()> {
        let mut processes = self.processes.lock().await;
        ensure!(processes.node.is_none(), "{} runs already", self.name);
        if processes.epmd.is_none() && self.member.is_none() {
            processes.epmd = Some(spawn_epmd(&self.name, self.epmd_port)?);
        }
        let mut node = ServerProcess::spawn(&self.name, self.command(), Signal::SIGTERM)?;
        let management = self.management();
        let amqp = self.address();
        let ready = node
            .wait_ready(START_WITHIN, async || {
                tokio::net::TcpStream::connect(amqp).await.context("AMQP port")?;
                management.overview().await
            })
            .await;
        processes.node = Some(node);
        ready
    }

    /// Does what `docs/OPERATIONS.md` tells an operator to do about queues without a leader. Returns what it printed.
    pub async fn elect_leaders(&self) -> Result<String> {
        let expression = ELECT_LEADERS
            .trim_start_matches("rabbitmqctl eval '")
            .trim_end_matches('\'');
        self.control(&["eval", expression]).await
    }

    /// A shell's words that mean `rabbitmqctl` for this node.
    pub fn control_words(&self) -> String {
        let command = self.environment(CONTROL);
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let variables = variables.map(|(name, value)| format!("{}='{}' ", name.display(), value.display()));
        format!(
            "env -i {}{CONTROL} -q -n {}",
            variables.collect::<String>(),
            self.node_name()
        )
    }

    /// Runs `rabbitmqctl`, an Erlang machine of its own, which takes seconds. Returns what it printed.
    pub async fn control(&self, args: &[&str]) -> Result<String> {
        let mut command = self.environment(CONTROL);
        command.args(["-q", "-n", &self.node_name()]).args(args);
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.context("run rabbitmqctl")?;
        ensure!(
            output.status.success(),
            "rabbitmqctl {args:?} failed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Everything that the node has logged.
    pub fn log(&self) -> Result<String> {
        let text = fs::read(run_dir()?.log(&self.name)).unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn command(&self) -> Command {
        let mut command = self.environment(PROGRAM);
        command
            // The script then becomes the virtual machine itself instead of waiting for it: one process to
            // signal, and SIGTERM ends it without a detour over rabbitmqctl.
            .env("RABBITMQ_ALLOW_INPUT", "1")
            // No busy waiting: on two cores it would take the time that the tests need.
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-noinput +sbwt none +sbwtdcpu none +sbwtdio none",
            );
        command
    }

    /// A program of the package, for this node.
    fn environment(&self, program: &str) -> Command {
        let folder = &self.folder;
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into()),
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", &self.home)
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("RABBITMQ_NODENAME", self.node_name())
            .env("RABBITMQ_DIST_PORT", self.distribution_port.to_string())
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("env.conf"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", folder.join("no-advanced.config"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_PID_FILE", folder.join("pid"));
        command
    }

    /// Stops the node in order, as an operator would. Data and ports stay.
    pub async fn stop(&self) -> Result<()> {
        match self.processes.lock().await.node.take() {
            Some(node) => node.stop(STOP_WITHIN).await.map(drop),
            None => Ok(()),
        }
    }

    /// `kill -9` of the node. Data and ports stay.
    pub async fn kill(&self) -> Result<()> {
        match self.processes.lock().await.node.take() {
            Some(node) => node.kill().await.map(drop),
            None => Ok(()),
        }
    }

    /// Stops and starts again.
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// The process id of the virtual machine; an error when it does not run.
    pub async fn pid(&self) -> Result<u32> {
        let processes = self.processes.lock().await;
        Ok(processes.node.as_ref().context("the node does not run")?.pid())
    }

    /// Where AMQP is spoken.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.amqp_port))
    }

    /// Where AMQP is spoken over TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls
            .as_ref()
            .map(|(port, _)| SocketAddr::from(([127, 0, 0, 1], *port)))
    }

    /// The management interface of this node.
    pub fn management(&self) -> Management {
        Management::new(SocketAddr::from(([127, 0, 0, 1], self.management_port)))
    }

    /// A new vhost with an unguessable name, so that tests cannot see each other's queues.
    pub async fn vhost(&self) -> Result<Vhost> {
        let name = format!("test-{:016x}", rand::random::<u64>());
        let management = self.management();
        management.create_vhost(&name).await?;
        Ok(Vhost {
            name,
            address: self.address(),
            others: Vec::new(),
            management,
        })
    }
}

/// The name server of Erlang nodes, on loopback and a port of its own: the machine's is not touched.
pub(crate) fn spawn_epmd(name: &str, port: u16) -> Result<ServerProcess> {
    let mut epmd = Command::new("epmd");
    epmd.args(["-port", &port.to_string(), "-address", "127.0.0.1"]);
    ServerProcess::spawn(&format!("{name}-epmd"), epmd, Signal::SIGTERM)
}

/// A new vhost of the shared node.
pub async fn vhost() -> Result<Vhost> {
    Rabbitmq::shared().await?.vhost().await
}

/// One test's own part of a node.
#[derive(Debug, Clone)]
pub struct Vhost {
    /// Its name.
    pub name: String,
    /// Where its node speaks AMQP.
    pub address: SocketAddr,
    /// Where the other nodes of its cluster do.
    others: Vec<SocketAddr>,
    management: Management,
}

impl Vhost {
    /// oslo.messaging's URL of this vhost.
    pub fn transport_url(&self) -> String {
        let others = self
            .others
            .iter()
            .map(|other| format!(",{USER}:{PASSWORD}@{other}"));
        let others: String = others.collect();
        format!(
            "rabbit://{USER}:{PASSWORD}@{}{others}/{}",
            self.address, self.name
        )
    }

    /// The same vhost, which is on these nodes, too.
    #[must_use]
    pub fn with_others(mut self, others: Vec<SocketAddr>) -> Self {
        self.others = others;
        self
    }

    /// The same through another address, such as a [`crate::chaos_proxy::ChaosProxy`]'s.
    pub fn transport_url_via(&self, address: SocketAddr) -> String {
        format!("rabbit://{USER}:{PASSWORD}@{address}/{}", self.name)
    }

    /// The same for AMQP libraries.
    pub fn amqp_url(&self) -> String {
        format!("amqp://{USER}:{PASSWORD}@{}/{}", self.address, self.name)
    }

    /// What the broker itself says of this vhost.
    pub fn management(&self) -> VhostView<'_> {
        VhostView {
            vhost: &self.name,
            management: &self.management,
        }
    }
}

/// The management interface, narrowed to one vhost.
#[derive(Debug)]
pub struct VhostView<'a> {
    pub(crate) vhost: &'a str,
    pub(crate) management: &'a Management,
}
