//! A service ends at once when it is told to, whatever it waits for while it starts.
//!
//! One server at a time is away, in two ways: its port refuses, or takes connections and says nothing. That the program
//! is waiting there is seen by its connection, or by what it serves already.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::ports::free_port;
use magnum_tests::process::{Launch, Program, Ready};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;

const PATIENCE: Duration = Duration::from_secs(60);

/// One second on a machine that has nothing else to do. What does not listen to the signal waits for minutes.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// How a server is away.
#[derive(Debug, Clone, Copy)]
enum Away {
    Refuses,
    Silent,
}

/// What a program meets at its start.
#[derive(Debug, Clone, Copy)]
enum Missing {
    Database,
    Broker,
    Keystone,
    Memcached,
    Collector,
}

const SERVERS: [Missing; 5] = [
    Missing::Database,
    Missing::Broker,
    Missing::Keystone,
    Missing::Memcached,
    Missing::Collector,
];

impl Missing {
    /// The options that lead to the server through the line.
    fn options(self, deployment: &mut Deployment, line: &ChaosProxy) {
        let address = line.address();
        match self {
            Self::Database => deployment.connect_via(None, Some(address)),
            Self::Broker => deployment.connect_via(Some(address), None),
            Self::Keystone => {
                let url = format!("http://{address}/v3");
                deployment.set("api", "auth_strategy", "keystone");
                for (option, value) in [
                    ("www_authenticate_uri", url.as_str()),
                    ("auth_url", &url),
                    ("auth_type", "password"),
                    ("username", "magnum"),
                    ("password", "secret"),
                    ("project_name", "service"),
                    ("user_domain_id", "default"),
                    ("project_domain_id", "default"),
                ] {
                    deployment.set("keystone_authtoken", option, value);
                }
            }
            Self::Memcached => deployment.set("keystone_authtoken", "memcached_servers", address),
            Self::Collector => deployment.set("otlp", "endpoint", format!("http://{address}")),
        }
    }

    /// Whether the program waits for the server before it serves anything.
    fn is_needed_first(self) -> bool {
        matches!(self, Self::Database)
    }
}

async fn deployment_without(missing: Missing, away: Away) -> Result<(Deployment, ChaosProxy)> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let line = ChaosProxy::start(deployment.vhost.address).await?;
    match away {
        Away::Refuses => line.cut(),
        Away::Silent => line.stall(),
    }
    missing.options(&mut deployment, &line);
    Ok((deployment, line))
}

/// Starts the program, waits until it waits for the server behind `line`, and ends it: by each signal, and after one
/// that must not end it.
async fn ends_at_once(line: &ChaosProxy, launch: impl AsyncFn() -> Result<(Launch, Ready)>) -> Result<()> {
    for signals in [
        &[Signal::SIGTERM][..],
        &[Signal::SIGINT],
        &[Signal::SIGHUP, Signal::SIGTERM],
        &[Signal::SIGUSR2, Signal::SIGTERM],
    ] {
        let before = line.accepted();
        let (launch, ready) = launch().await?;
        let mut program = launch.spawn()?;
        match ready {
            Ready::Started => {
                let waits = async || (line.accepted() > before).then_some(()).context("not yet");
                wait::until("the program to wait", PATIENCE, waits).await?;
            }
            ready => program.wait_ready(&ready).await?,
        }
        for signal in signals {
            program.signal(*signal)?;
        }
        ended(&mut program)
            .await
            .with_context(|| format!("after {signals:?}"))?;
    }
    Ok(())
}

async fn ended(program: &mut Program) -> Result<()> {
    let asked = Instant::now();
    let status = program.wait_end(ENDS_WITHIN).await?;
    eprintln!("{} ended after {:?}", program.name(), asked.elapsed());
    ensure!(status.success(), "{status}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_ends_at_once_whatever_it_waits_for() -> Result<()> {
    for missing in SERVERS {
        for away in [Away::Refuses, Away::Silent] {
            let (deployment, line) = deployment_without(missing, away).await?;
            let launch = async || {
                let port = free_port()?;
                let config = deployment
                    .config()
                    .clone()
                    .set("api", "host", "127.0.0.1")
                    .set("api", "port", port);
                let config = config.write(&deployment.folder.join("api.conf"))?;
                let ready = if missing.is_needed_first() {
                    Ready::Started
                } else {
                    Ready::Log("the API listens".to_owned())
                };
                Ok((Launch::program("magnum-api")?.config(&config), ready))
            };
            ends_at_once(&line, launch)
                .await
                .with_context(|| format!("{missing:?} {away:?}"))?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_ends_at_once_whatever_it_waits_for() -> Result<()> {
    for missing in SERVERS {
        for away in [Away::Refuses, Away::Silent] {
            let (deployment, line) = deployment_without(missing, away).await?;
            let launch = async || {
                let ready = if missing.is_needed_first() {
                    Ready::Started
                } else {
                    Ready::Log("the conductor runs".to_owned())
                };
                Ok((deployment.conductor_launch("one").await?, ready))
            };
            ends_at_once(&line, launch)
                .await
                .with_context(|| format!("{missing:?} {away:?}"))?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_trusts_everybody_starts_on_a_network_only_when_it_is_told_to() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let launch = |allowed: bool| {
        let config = deployment
            .config()
            .clone()
            .set("api", "host", "0.0.0.0")
            .set("api", "port", free_port()?)
            .set("api", "allow_noauth_on_network", allowed);
        let config = config.write(&deployment.folder.join(format!("api-{allowed}.conf")))?;
        Launch::program("magnum-api")?.config(&config).spawn()
    };
    let mut refused = launch(false)?;
    let status = refused.wait_end(PATIENCE).await?;
    ensure!(status.code() == Some(1), "{status}");
    ensure!(
        refused.log().contains("every client is an administrator"),
        "{}",
        refused.log()
    );
    let mut forced = launch(true)?;
    forced.wait_ready(&Ready::Log("the API listens".to_owned())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_whose_address_is_taken_says_so_and_ends() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let config = deployment
        .config()
        .clone()
        .set("api", "host", "127.0.0.1")
        .set("api", "port", port);
    let config = config.write(&deployment.folder.join("api.conf"))?;
    let mut program = Launch::program("magnum-api")?.config(&config).spawn()?;
    let status = program.wait_end(PATIENCE).await?;
    ensure!(status.code() == Some(1), "{status}");
    let told = format!("cannot listen on [api] host and port 127.0.0.1:{port}");
    ensure!(program.log().contains(&told), "{}", program.log());
    Ok(())
}
