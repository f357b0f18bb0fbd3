//! A Galera cluster behind HAProxy: `deploy/haproxy/galera.cfg` with the addresses of a test, and the service beside each
//! node that says whether it may be used.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::galera::{self, Galera};
use crate::haproxy;
use crate::ports::free_port;
use crate::process::{Program, Ready};
use crate::wait;

const PATIENCE: Duration = Duration::from_secs(30);

/// The balancer. Dropping it ends it.
#[derive(Debug)]
pub struct GaleraFront {
    address: SocketAddr,
    _balancer: Program,
    checks: Vec<JoinHandle<()>>,
}

impl GaleraFront {
    /// Before all nodes of a cluster: one of them gets all connections, until it fails.
    pub async fn start(cluster: &Arc<Galera>) -> Result<Self> {
        let port = free_port()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut checks = Vec::new();
        let bind = format!("bind 127.0.0.1:{port}");
        let mut text = haproxy::with(
            haproxy::sample("galera.cfg")?,
            &[("bind :3306", bind.as_str()), (" port 9200 check", " check")],
        )?;
        for number in 0..cluster.size() {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let check = listener.local_addr()?.port();
            let sampled = format!("10.0.0.2{}:3306", number + 1);
            let ours = format!("{} port {check}", cluster.address(number));
            text = haproxy::with(text, &[(sampled.as_str(), ours.as_str())])?;
            checks.push(tokio::spawn(check_of(listener, Arc::clone(cluster), number)));
        }
        let balancer = haproxy::launch(&text, Ready::Started)?.start().await?;
        wait::until("the balancer to have a node", PATIENCE, async || {
            galera::execute(address, "SELECT 1").await
        })
        .await?;
        Ok(Self {
            address,
            _balancer: balancer,
            checks,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for GaleraFront {
    fn drop(&mut self) {
        for check in &self.checks {
            check.abort();
        }
    }
}

/// Answers 200 as long as a node may be used, 503 otherwise.
async fn check_of(listener: TcpListener, cluster: Arc<Galera>, number: usize) {
    let answer = move || {
        let cluster = Arc::clone(&cluster);
        async move {
            if cluster.is_usable(number).await {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    };
    // It ends with the test.
    axum::serve(listener, Router::new().route("/", get(answer)))
        .await
        .ok();
}
