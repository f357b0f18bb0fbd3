//! The real Heat, from PyPI, beside the real Keystone: its API and one engine, shared by all tests of a run, started
//! when a test first asks for them, on the tests' MariaDB and RabbitMQ.
//!
//! Stacks come about as everywhere, but nothing is behind them: machines, ports, load balancers and volumes are stand-ins
//! (`tests/testbed/heat`) that take any property, cannot fail and have addresses. With Heat comes what Heat drivers want
//! of Keystone: the role of those who may have stacks, and a domain for the trustees of clusters.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::cloud_services::REGION;
use crate::databases::{Backend, TestDatabase};
use crate::heat_stacks::Stacks;
use crate::keystone_people::{Domain, People, Person};
use crate::openstack::OpenStack;
use crate::oslo_peer::python;
use crate::ports::free_port;
use crate::process::little_environment;
use crate::rabbitmq;
use crate::run_dir::{base, run_dir};
use crate::server::{ServerProcess, tail};

/// It makes its database first, on a machine with other work.
const START_WITHIN: Duration = Duration::from_secs(180);
const ENGINE: &str = "heat-engine";
/// Where the engine takes requests.
const QUEUE: &str = "engine";
/// What one must be to have stacks and clusters made of them.
const OWNER: [&str; 3] = ["member", "creator", "heat_stack_owner"];

/// A test's turn to have clusters made, [`Heat::turn`]. When it is over, the end of the engine's log is shown, by a test runner for
/// failed tests only.
#[derive(Debug)]
pub struct Turn {
    engine_log: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        eprintln!(
            "--- end of the log of heat-engine ---\n{}\n---",
            tail(&self.engine_log)
        );
    }
}

/// Both processes.
#[derive(Debug)]
pub struct Heat {
    /// Keystone.
    pub openstack: &'static OpenStack,
    /// Those who have stacks.
    pub people: People,
    /// Where Magnum makes the trustees of clusters.
    pub trustees: Domain,
    port: u16,
    _processes: [ServerProcess; 2],
}

impl Heat {
    /// The one that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Heat> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// For a test that has clusters made, some eighty resources in nested stacks each: waits until no other test does that. The
    /// engine takes most of a processor for one cluster; with two at a time beside all other tests an update of one took longer
    /// than its test waits.
    pub async fn turn() -> Result<Turn> {
        static TURN: Mutex<()> = Mutex::const_new(());
        Ok(Turn {
            engine_log: run_dir()?.log(ENGINE),
            _alone: TURN.lock().await,
        })
    }

    async fn start() -> Result<Self> {
        let openstack = OpenStack::shared().await?;
        let people = People::of(openstack).await?;
        let port = free_port()?;
        let url = format!("http://127.0.0.1:{port}/v1/%(project_id)s");
        people
            .acting_service("heat", "orchestration", REGION, &url)
            .await?;
        for role in ["heat_stack_owner", "heat_stack_user"] {
            people.role(role).await?;
        }
        // Of users that Heat makes for resources which call back.
        people.domain("heat", "heat_domain_admin").await?;
        let trustees = people.domain("magnum", "trustee_domain_admin").await?;

        let folder = run_dir()?.folder("heat")?;
        let database = TestDatabase::empty(Backend::Mariadb).await?;
        let vhost = rabbitmq::vhost().await?;
        let spawn = |name: &str, part: &str| -> Result<ServerProcess> {
            let mut command = Command::new(python()?);
            little_environment(&mut command)
                .arg(script())
                .arg(part)
                .arg(&folder)
                .args([port.to_string(), openstack.keystone_address().port().to_string()])
                .args([database.url(), vhost.transport_url()]);
            ServerProcess::spawn(name, command, Signal::SIGKILL)
        };
        let mut processes = [spawn(ENGINE, "engine")?, spawn("heat-api", "api")?];
        // A request that comes before the engine listens is lost, and its client waits for a minute.
        processes[0]
            .wait_ready(START_WITHIN, async || {
                let consumers = vhost.management().consumers(QUEUE).await?;
                ensure!(consumers > 0, "nobody takes requests from {QUEUE}");
                Ok(())
            })
            .await?;
        let person = people.person(&OWNER).await?;
        let token = people.token(&person).await?;
        let url = format!("http://127.0.0.1:{port}/v1/{}", person.project_id);
        let stacks = Stacks::new(url, openstack.session(&token));
        processes[1]
            .wait_ready(START_WITHIN, async || stacks.list().await.map(drop))
            .await?;
        Ok(Self {
            openstack,
            people,
            trustees,
            port,
            _processes: processes,
        })
    }

    /// Where the API listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Somebody new who may have stacks, and clusters made of them.
    pub async fn person(&self) -> Result<Person> {
        self.people.person(&OWNER).await
    }

    /// The stacks of a person's project, asked for with the person's own token.
    pub async fn stacks(&self, person: &Person) -> Result<Stacks> {
        let token = self.people.token(person).await?;
        Ok(self.stacks_with(person, &token))
    }

    /// The same with another token for this project.
    pub fn stacks_with(&self, person: &Person, token: &str) -> Stacks {
        let url = format!("http://{}/v1/{}", self.address(), person.project_id);
        Stacks::new(url, self.openstack.session(token))
    }
}

fn script() -> PathBuf {
    base().with_file_name("testbed").join("heat.py")
}
