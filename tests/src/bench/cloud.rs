//! The cloud that a REST benchmark's APIs ask: fixed answers of Keystone, Glance, Nova and Neutron, made in this process.
//!
//! Written for speed, and the same for both contestants: what is measured is the API, not who it asks. It believes every
//! token, and counts what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The token of whoever asks the APIs.
pub(super) const TOKEN: &str = "token-of-the-benchmark";
/// A flavor that is there.
pub(super) const FLAVOR: &str = "m1.small";
/// What the template calls its image.
const IMAGE: &str = "image";
/// A key pair that is there.
pub(super) const KEY_PAIR: &str = "key";

struct Cloud {
    base: String,
    project: String,
    asked: AtomicU64,
}

/// A running cloud; ends when dropped.
pub(super) struct StandIn {
    cloud: Arc<Cloud>,
    task: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StandIn {
    /// Everybody is a member of `project`.
    pub(super) async fn start(project: &str) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let cloud = Arc::new(Cloud {
            base: format!("http://{}", listener.local_addr()?),
            project: project.to_owned(),
            asked: AtomicU64::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&cloud));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("bench: the stand-in cloud ended: {error}");
            }
        });
        Ok(Self { cloud, task })
    }

    /// Keystone's address.
    pub(super) fn identity(&self) -> String {
        format!("{}/identity/v3", self.cloud.base)
    }

    /// Requests so far.
    pub(super) fn asked(&self) -> u64 {
        self.cloud.asked.load(Ordering::Relaxed)
    }
}

async fn answer(State(cloud): State<Arc<Cloud>>, request: Request) -> Response {
    cloud.asked.fetch_add(1, Ordering::Relaxed);
    let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (status, body) = match path.as_slice() {
        ["identity", "v3"] => (
            StatusCode::OK,
            json!({"version": cloud.version("v3.14", "/identity/v3/")}),
        ),
        ["identity", "v3", "auth", "tokens"] if request.method() == Method::POST => {
            (StatusCode::CREATED, cloud.token())
        }
        ["identity", "v3", "auth", "tokens"] => (StatusCode::OK, cloud.token()),
        ["image"] | ["image", "versions"] => (
            StatusCode::OK,
            json!({"versions": [cloud.version("v2.15", "/image/v2/")]}),
        ),
        // By name, as ours asks for what cannot be an id.
        ["image", "v2", "images"] => (StatusCode::OK, json!({"images": [image(IMAGE)]})),
        ["image", "v2", "images", id] => (StatusCode::OK, image(id)),
        ["compute", "v2.1"] => {
            let mut version = cloud.version("v2.1", "/compute/v2.1/");
            version["version"] = json!("2.96");
            version["min_version"] = json!("2.1");
            (StatusCode::OK, json!({"version": version}))
        }
        ["compute", "v2.1", "flavors", "detail"] => {
            let is_first = !request.uri().query().unwrap_or_default().contains("marker");
            let flavors = if is_first { vec![flavor()] } else { Vec::new() };
            (StatusCode::OK, json!({ "flavors": flavors }))
        }
        ["compute", "v2.1", "os-keypairs", KEY_PAIR] => {
            let pair = json!({"name": KEY_PAIR, "type": "ssh", "public_key": "ssh-ed25519 A", "fingerprint": "0", "id": 1});
            (StatusCode::OK, json!({ "keypair": pair }))
        }
        ["network"] => (
            StatusCode::OK,
            json!({"versions": [cloud.version("v2.0", "/network/v2.0/")]}),
        ),
        _ => (
            StatusCode::NOT_FOUND,
            json!({"error": {"code": 404, "message": "no such thing"}}),
        ),
    };
    let headers = [(header::CONTENT_TYPE, "application/json")];
    if path.last() == Some(&"tokens") {
        return (status, headers, [("x-subject-token", TOKEN)], body.to_string()).into_response();
    }
    (status, headers, body.to_string()).into_response()
}

impl Cloud {
    fn version(&self, id: &str, path: &str) -> Value {
        let links = json!([{"rel": "self", "href": format!("{}{path}", self.base)}]);
        json!({"id": id, "status": "CURRENT", "links": links})
    }

    /// What Keystone says about every token.
    fn token(&self) -> Value {
        let services = [
            ("identity", "/identity/v3"),
            ("image", "/image"),
            ("compute", "/compute/v2.1"),
            ("network", "/network"),
        ];
        let catalog: Vec<Value> = services
            .iter()
            .map(|(kind, path)| {
                let endpoints = ["public", "internal", "admin"].map(|interface| {
                    json!({
                        "id": format!("{kind}-{interface}"), "interface": interface, "region": "RegionOne",
                        "region_id": "RegionOne", "url": format!("{}{path}", self.base),
                    })
                });
                json!({"id": kind, "name": kind, "type": kind, "endpoints": endpoints})
            })
            .collect();
        let domain = json!({"id": "default", "name": "Default"});
        let roles = ["member", "reader", "service"].map(|role| json!({"id": role, "name": role}));
        json!({"token": {
            "methods": ["password"], "audit_ids": ["a"], "is_domain": false,
            "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099-01-01T00:00:00.000000Z",
            "roles": roles,
            "user": {"id": "ab".repeat(16), "name": "bench", "domain": domain, "password_expires_at": null},
            "project": {"id": self.project, "name": "bench", "domain": domain},
            "catalog": catalog,
        }})
    }
}

fn image(id: &str) -> Value {
    json!({
        "id": id, "name": id, "os_distro": "ubuntu", "status": "active", "visibility": "public", "tags": [],
        "min_disk": 0, "min_ram": 0, "size": 1, "protected": false, "container_format": "bare", "disk_format": "qcow2",
    })
}

fn flavor() -> Value {
    json!({
        "id": "1", "name": FLAVOR, "ram": 2048, "vcpus": 1, "disk": 20, "swap": 0, "links": [], "rxtx_factor": 1.0,
        "OS-FLV-EXT-DATA:ephemeral": 0, "OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true,
    })
}
