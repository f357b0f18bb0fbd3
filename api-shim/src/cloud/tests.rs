//! Look-ups against a stand-in that answers what a test has it answer, and remembers what it was asked.

mod compute;
mod images;
mod networks;
mod outages;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, Settings};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::error::CloudError;
use super::{Cloud, Inquiry};
use crate::faults::ApiFault;

/// What the stand-in says to a path and a query.
type Say = fn(&str, &str) -> (u16, Value);

/// A running stand-in.
struct StandIn {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StandIn {
    async fn start(say: Say) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let app = Router::new().fallback(async move |request: Request| {
            assert_eq!(request.headers()["x-auth-token"], "token-of-somebody");
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            seen.lock().unwrap().push(request.uri().to_string());
            match say(path, query) {
                (0, _) => {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    StatusCode::OK.into_response()
                }
                (status, Value::Null) => (StatusCode::from_u16(status).unwrap(), "<html>").into_response(),
                (status, body) => (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response(),
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, asked, serving }
    }

    /// A request of somebody who has this stand-in in the catalog.
    fn inquire(&self) -> Inquiry {
        self.inquire_of(&["image", "compute", "network", "volumev3", "identity"])
    }

    fn inquire_of(&self, kinds: &[&str]) -> Inquiry {
        let mut settings = Settings::default();
        settings.api.auth_strategy = AuthStrategy::Keystone;
        settings.api.lookup_timeout = Duration::from_millis(500);
        let catalog: Vec<Value> = kinds
            .iter()
            .map(|kind| {
                let url = format!("{}/{kind}", self.base);
                let interface = if *kind == "identity" { "internal" } else { "public" };
                json!({"type": kind, "endpoints": [{"interface": interface, "region": "one", "url": url}]})
            })
            .collect();
        let caller = Caller {
            auth_token: Some(Secret::new("token-of-somebody")),
            auth_token_info: Some(
                to_raw_value(&json!({"token": {"catalog": catalog}}))
                    .unwrap()
                    .into(),
            ),
            ..Caller::default()
        };
        let context = RequestContext::for_caller(&caller, &RequestId::random());
        Cloud::from_settings(&settings).unwrap().inquire(&context)
    }

    /// What was asked so far, in order.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Status and text of the fault that a client gets.
fn fault_of<T: std::fmt::Debug>(outcome: Result<T, CloudError>) -> (u16, String) {
    let fault = ApiFault::from(outcome.unwrap_err());
    (fault.status().as_u16(), fault.detail().to_owned())
}
