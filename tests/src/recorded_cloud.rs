//! The cloud of the recorded requests: a Keystone that knows their users by fixed tokens, and what these see of Glance,
//! Nova and Neutron. Nothing can be changed in it.
//!
//! It is as plain as the one that was recorded: it filters images by name and networks by `router:external`, and knows
//! flavors only as a list. Everything it is asked can be read back.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, Settings};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

/// Password of every user.
const PASSWORD: &str = "recorded-secret";

/// Name, digit of the id, letter of the project's id, the project's name, roles.
const USERS: [(&str, &str, &str, &str, &[&str]); 7] = [
    ("alice", "1", "a", "alpha", &["member", "reader"]),
    ("rita", "2", "a", "alpha", &["reader"]),
    ("carol", "3", "a", "alpha", &["member", "reader"]),
    ("bob", "4", "b", "beta", &["member", "reader"]),
    ("root", "5", "d", "admin", &["admin", "member", "reader"]),
    ("norole", "6", "a", "alpha", &["guest"]),
    ("magnum", "7", "e", "service", &["admin", "service"]),
];

/// Id, name, whether it is external.
const NETWORKS: [(&str, &str, bool); 4] = [
    ("0000000a-2222-4222-8222-222222222222", "public", true),
    ("0000000b-2222-4222-8222-222222222222", "private", false),
    ("0000000c-2222-4222-8222-222222222222", "twin-net", false),
    ("0000000d-2222-4222-8222-222222222222", "twin-net", false),
];
const SUBNET: (&str, &str) = ("0000000b-3333-4333-8333-333333333333", "private-subnet");
/// Id, name, size of the root disk.
const FLAVORS: [(&str, &str, u32); 3] = [
    ("1", "m1.small", 20),
    ("2", "m1.medium", 40),
    ("9", "m1.diskless", 0),
];
const KEY_PAIRS: [&str; 2] = ["default-key", "other-key"];
const FORBIDDEN_IMAGE: &str = "000000ff-1111-4111-8111-111111111111";

/// A running one.
#[derive(Debug)]
pub struct RecordedCloud {
    address: SocketAddr,
    images: Vec<Value>,
    asked: Mutex<Vec<String>>,
}

/// The token of a user.
pub fn token_of(user: &str) -> String {
    format!("tok-{user}")
}

impl RecordedCloud {
    /// The one that all tests of this process share. It runs on a thread of its own, as tests come and go.
    pub async fn shared() -> Result<&'static Arc<Self>> {
        static SHARED: OnceCell<Arc<RecordedCloud>> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// One of a test's own.
    pub async fn start() -> Result<Arc<Self>> {
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else {
                    return;
                };
                let Ok(address) = listener.local_addr() else {
                    return;
                };
                let Ok(images) = images() else { return };
                let cloud = Arc::new(Self {
                    address,
                    images,
                    asked: Mutex::default(),
                });
                let serving = Arc::clone(&cloud);
                let app = Router::new().fallback(async move |request: Request| serving.answer(request).await);
                let _ = tell.send(cloud);
                let _ = axum::serve(listener, app).await;
            });
        });
        told.await.context("the stand-in cloud did not start")
    }

    /// Has an API validate tokens and look things up here.
    pub fn configure(&self, settings: &mut Settings) {
        settings.api.auth_strategy = AuthStrategy::Keystone;
        let section = &mut settings.keystone_authtoken;
        let keystone = format!("http://{}/identity/v3", self.address);
        section.auth_url = Some(keystone.clone());
        section.www_authenticate_uri = Some(keystone);
        section.username = Some("magnum".to_owned());
        section.password = Some(Secret::new(PASSWORD));
        section.project_name = Some("service".to_owned());
    }

    /// Everything that was asked so far, but of Keystone.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let path = head.uri.path().trim_end_matches('/').to_owned();
        let header = |name: &str| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        if !path.starts_with("/identity") {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(head.uri.to_string());
        }
        let is_new = head.method == "POST";
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
        match path.strip_prefix("/identity/v3") {
            Some("/auth/tokens") if is_new => self.log_in(&body),
            Some("/auth/tokens") => self.validate(&header("x-subject-token")),
            _ if user_of(&header("x-auth-token")).is_none() => refused(StatusCode::UNAUTHORIZED),
            _ => match self.found(&path, &query(head.uri.query().unwrap_or_default())) {
                Ok(document) => axum::Json(document).into_response(),
                Err(status) => refused(status),
            },
        }
    }

    fn log_in(&self, body: &Bytes) -> Response {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let user = &body["auth"]["identity"]["password"]["user"];
        match user["name"].as_str() {
            Some(name) if user["password"] == PASSWORD => self.token(&token_of(name), StatusCode::CREATED),
            _ => refused(StatusCode::UNAUTHORIZED),
        }
    }

    fn validate(&self, token: &str) -> Response {
        self.token(token, StatusCode::OK)
    }

    /// What Keystone says of a token.
    fn token(&self, token: &str, status: StatusCode) -> Response {
        let Some((name, digit, letter, project, roles)) = user_of(token) else {
            return refused(StatusCode::NOT_FOUND);
        };
        let domain = json!({"id": "default", "name": "Default"});
        let service = |kind: &str, path: &str| {
            let url = format!("http://{}{path}", self.address);
            let endpoints = ["public", "internal", "admin"].map(
                |interface| json!({"interface": interface, "region": "RegionOne", "region_id": "RegionOne", "url": url}),
            );
            json!({"type": kind, "name": kind, "endpoints": endpoints})
        };
        let roles: Vec<Value> = roles
            .iter()
            .map(|role| json!({"id": role, "name": role}))
            .collect();
        let document = json!({"token": {
            "methods": ["password"], "audit_ids": ["a"], "is_domain": false, "roles": roles,
            "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099-01-01T00:00:00.000000Z",
            "user": {"id": digit.repeat(32), "name": name, "domain": domain, "password_expires_at": null},
            "project": {"id": letter.repeat(32), "name": project, "domain": domain},
            "catalog": [
                service("identity", "/identity"), service("image", "/image"), service("compute", "/compute/v2.1"),
                service("network", "/network"),
            ],
        }});
        let headers = [("X-Subject-Token", token.to_owned())];
        (status, headers, axum::Json(document)).into_response()
    }

    fn found(&self, path: &str, query: &HashMap<String, String>) -> Result<Value, StatusCode> {
        let is = |name: &str, value: &str| query.get(name).is_none_or(|wanted| wanted == value);
        if let Some(project) = path.strip_prefix("/identity/v3/projects/") {
            let known = USERS.iter().any(|user| user.2.repeat(32) == project);
            let found = known.then(|| json!({"project": {"id": project}}));
            return found.ok_or(StatusCode::NOT_FOUND);
        }
        if let Some(name) = path.strip_prefix("/compute/v2.1/os-keypairs/") {
            let found = KEY_PAIRS
                .contains(&name)
                .then(|| json!({"keypair": {"name": name}}));
            return found.ok_or(StatusCode::NOT_FOUND);
        }
        if let Some(id) = path.strip_prefix("/image/v2/images/") {
            if id == FORBIDDEN_IMAGE {
                return Err(StatusCode::FORBIDDEN);
            }
            let found = self.images.iter().find(|image| image["id"] == id);
            return found.cloned().ok_or(StatusCode::NOT_FOUND);
        }
        match path {
            "/image/v2/images" => {
                let named = |image: &&Value| is("name", image["name"].as_str().unwrap_or_default());
                let is_hidden = query.contains_key("os_hidden");
                let images: Vec<&Value> = self.images.iter().filter(named).filter(|_| !is_hidden).collect();
                Ok(json!({"images": images}))
            }
            "/compute/v2.1/flavors/detail" => {
                let flavors = FLAVORS.map(|(id, name, disk)| json!({"id": id, "name": name, "disk": disk}));
                Ok(json!({"flavors": flavors}))
            }
            "/network/v2.0/networks" => {
                let networks: Vec<Value> = NETWORKS
                    .iter()
                    .filter(|(_, _, external)| is("router:external", &external.to_string()))
                    .map(|(id, name, external)| json!({"id": id, "name": name, "router:external": external}))
                    .collect();
                Ok(json!({"networks": networks}))
            }
            "/network/v2.0/subnets" => {
                let subnet = json!({"id": SUBNET.0, "name": SUBNET.1, "network_id": NETWORKS[1].0});
                Ok(json!({"subnets": [subnet]}))
            }
            _ => Err(StatusCode::NOT_FOUND),
        }
    }
}

type User = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

fn user_of(token: &str) -> Option<User> {
    USERS.into_iter().find(|user| token_of(user.0) == token)
}

fn refused(status: StatusCode) -> Response {
    let error =
        json!({"error": {"code": status.as_u16(), "title": "Refused", "message": "refused by the stand-in"}});
    (status, axum::Json(error)).into_response()
}

fn query(text: &str) -> HashMap<String, String> {
    let decoded = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8_lossy()
            .into_owned()
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// The images of the recording, as Glance shows them: properties stand beside the rest.
fn images() -> Result<Vec<Value>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/rest/images.json");
    let mut images: Vec<Value> = serde_json::from_slice(&std::fs::read(file)?)?;
    for image in &mut images {
        let properties = image["properties"].take();
        let Some(image) = image.as_object_mut() else {
            continue;
        };
        image.remove("properties");
        image.extend(
            properties
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    Ok(images)
}
