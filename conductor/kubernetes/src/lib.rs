//! The health of a cluster as its own Kubernetes API server tells it, for any engine whose clusters have one.
//!
//! ```text
//! GET /readyz ─▶ "ok"? ─▶ GET /api/v1/nodes, page by page ─▶ the condition `Ready` of each node
//! ```
//!
//! | result | health | reasons |
//! |---|---|---|
//! | ready, every node ready (or none there) | HEALTHY | `api`: `ok`; `<node>.Ready`: `True` |
//! | ready, a node not | UNHEALTHY | `api`: `ok`; `<node>.Ready`: `False`, or `Unknown` when the node has gone silent |
//! | not ready, refused, unreachable, too slow, not Kubernetes | UNHEALTHY | `api`: the error |
//! | no way to ask: see [`AccessError`] | the caller says UNKNOWN | |
//!
//! Guarantees: one check takes no longer than [`Limits::time`], holds no more than [`Limits::answer`] bytes of an
//! answer in memory, and returns reasons of at most [`Limits::reasons`] bytes; neither the certificate nor the key
//! appears in an error. It does not guarantee that a cluster works: an API server can be ready while no pod starts.
//!
//! Where Magnum's monitor differs: it asks `/healthz`, says `False` of a node that has gone silent, and has `ok` as
//! the only reason when the nodes could not be listed.

mod access;
mod health;
mod monitor;
mod nodes;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::ACCEPT;
use hyper::{Request, StatusCode};
use magnum_common::error::with_causes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use self::access::{AccessError, ApiServerAccess};
pub use self::health::ClusterHealth;
pub use self::monitor::health;
use self::nodes::Node;

/// Nodes in one answer of the API server.
const NODES_PER_PAGE: usize = 100;
/// Kubernetes itself supports half as many.
const MOST_PAGES: usize = 100;

/// What one check may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For the whole check, connecting included.
    pub time: Duration,
    /// Bytes of one answer; a page of nodes takes one or two MiB where their images are many.
    pub answer: usize,
    /// Bytes of all reasons together; nodes that are not ready come first.
    pub reasons: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Less than the shortest time that the conductor gives a look (10 s).
            time: Duration::from_secs(8),
            answer: 8 * 1024 * 1024,
            reasons: 32 * 1024,
        }
    }
}

/// Why the API server could not be asked to the end. The text becomes the reason `api`.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error("{}", with_causes(.0))]
    Connection(#[from] hyper_util::client::legacy::Error),
    #[error("{path}: {}", with_causes(.source.as_ref()))]
    Body {
        path: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{path}: HTTP {status}: {text}")]
    Refused {
        path: &'static str,
        status: StatusCode,
        text: String,
    },
    #[error("{path}: not the answer of a Kubernetes API server: {source}")]
    Unreadable {
        path: &'static str,
        source: serde_json::Error,
    },
    #[error("more than {} nodes", NODES_PER_PAGE * MOST_PAGES)]
    TooManyNodes,
    #[error("no answer within {0:?}")]
    TooSlow(Duration),
}

/// Checks one cluster. Never fails: an API server that cannot be asked is a cluster that is not healthy.
///
/// # Errors
/// What is known of the cluster is not enough to ask: then nothing is known of its health either.
pub async fn check(access: &ApiServerAccess, limits: &Limits) -> Result<ClusterHealth, AccessError> {
    let server = access.connect()?;
    let checked = tokio::time::timeout(limits.time, nodes_if_ready(&server, limits.answer))
        .await
        .unwrap_or(Err(CheckError::TooSlow(limits.time)));
    Ok(match checked {
        Ok(nodes) => ClusterHealth::of_nodes(&nodes, limits.reasons),
        Err(error) => ClusterHealth::without_api(&error.to_string()),
    })
}

/// The nodes of a server that says that it is ready.
async fn nodes_if_ready(server: &access::Server, largest: usize) -> Result<Vec<Node>, CheckError> {
    get(server, "/readyz", "", largest).await?;
    let path = "/api/v1/nodes";
    let (mut nodes, mut next) = (Vec::new(), String::new());
    for _ in 0..MOST_PAGES {
        let query = format!(
            "?limit={NODES_PER_PAGE}&continue={}",
            utf8_percent_encode(&next, NON_ALPHANUMERIC)
        );
        let body = get(server, path, &query, largest).await?;
        let page = nodes::read(&body).map_err(|source| CheckError::Unreadable { path, source })?;
        nodes.extend(page.nodes);
        match page.next {
            Some(token) => next = token,
            None => return Ok(nodes),
        }
    }
    Err(CheckError::TooManyNodes)
}

/// The body of a successful answer.
async fn get(
    server: &access::Server,
    path: &'static str,
    query: &str,
    largest: usize,
) -> Result<Bytes, CheckError> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = server.uri(&format!("{path}{query}"));
    request.headers_mut().insert(
        ACCEPT,
        hyper::header::HeaderValue::from_static("application/json, text/plain"),
    );
    let response = server.http.request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), largest)
        .collect()
        .await
        .map_err(|source| CheckError::Body { path, source })?
        .to_bytes();
    if status == StatusCode::OK {
        return Ok(body);
    }
    Err(CheckError::Refused {
        path,
        status,
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}
