//! The same request again and again over some connections, as fast as it is answered.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is asked.
#[derive(Debug, Clone)]
pub(super) struct Shot {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) body: Bytes,
    pub(super) token: &'static str,
    pub(super) expected: StatusCode,
}

/// What came of it.
pub(super) struct Volley {
    pub(super) took: Duration,
    /// Of each request, a new connection included where the server closes them.
    pub(super) latencies_ms: Vec<f64>,
}

/// Asks over `connections` at once until `within` has passed; the requests that are under way then are waited for.
/// An answer with another status ends it.
pub(super) async fn fire(
    address: SocketAddr,
    shot: &Shot,
    connections: usize,
    within: Duration,
) -> Result<Volley> {
    let began = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|_| tokio::spawn(one(address, shot.clone(), began + within)))
        .collect();
    let mut latencies_ms = Vec::new();
    for task in tasks {
        latencies_ms.extend(task.await??);
    }
    Ok(Volley {
        took: began.elapsed(),
        latencies_ms,
    })
}

async fn one(address: SocketAddr, shot: Shot, ends: Instant) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    let mut sender = None;
    while Instant::now() < ends {
        let sent = Instant::now();
        timeout(PATIENCE, ask(address, &shot, &mut sender))
            .await
            .with_context(|| format!("{} {} is not answered", shot.method, shot.path))??;
        latencies.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(latencies)
}

async fn ask(address: SocketAddr, shot: &Shot, sender: &mut Option<SendRequest<Full<Bytes>>>) -> Result<()> {
    let kept = match sender.take() {
        Some(mut open) => open.ready().await.is_ok().then_some(open),
        None => None,
    };
    let mut open = match kept {
        Some(open) => open,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (open, connection) = handshake(TokioIo::new(stream)).await?;
            // It ends with the connection; what goes wrong is seen by who asks.
            tokio::spawn(connection);
            open
        }
    };
    let request = Request::builder()
        .method(&shot.method)
        .uri(&shot.path)
        .header(HOST, address.to_string())
        .header("X-Auth-Token", shot.token)
        .header("OpenStack-API-Version", "container-infra latest")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(shot.body.clone()))?;
    let response = open.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(
        status == shot.expected,
        "{} {}: {status}: {}",
        shot.method,
        shot.path,
        String::from_utf8_lossy(&body)
    );
    *sender = Some(open);
    Ok(())
}
