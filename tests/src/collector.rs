//! An OpenTelemetry collector: takes traces by OTLP over HTTP, decodes the protobuf, and keeps the spans.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A span, as it came.
#[derive(Debug, Clone)]
pub struct Span {
    /// `service.name` of the program.
    pub service: String,
    /// Its name.
    pub name: String,
    /// The trace: 32 hexadecimal digits.
    pub trace: String,
    /// Its id: 16 hexadecimal digits.
    pub id: String,
    /// The id of the span that it lies in; empty at the root.
    pub parent: String,
    /// OTLP's number of its kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: i32,
    /// Its attributes as text.
    pub attributes: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Kept {
    spans: Vec<Span>,
    headers: Vec<HeaderMap>,
}

/// The collector. Dropping it ends it.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
    server: JoinHandle<()>,
}

impl Collector {
    /// Listens on a free port.
    pub async fn start() -> Result<Self> {
        Self::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Listens there.
    pub async fn on(address: SocketAddr) -> Result<Self> {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let app = Router::new()
            .route("/v1/traces", post(take))
            .with_state(Arc::clone(&kept));
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            // Ends with the test.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            kept,
            server,
        })
    }

    /// For `[otlp] endpoint`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Span> {
        self.lock(|kept| kept.spans.clone())
    }

    /// The headers of each export so far.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.lock(|kept| kept.headers.clone())
    }

    fn lock<T>(&self, read: impl FnOnce(&Kept) -> T) -> T {
        read(&self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(kept): State<Arc<Mutex<Kept>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let is_protobuf = headers
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes() == b"application/x-protobuf");
    let (true, Ok(request)) = (is_protobuf, ExportTraceServiceRequest::decode(body)) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.headers.push(headers);
    for resource in request.resource_spans {
        let about = resource
            .resource
            .map(|resource| resource.attributes)
            .unwrap_or_default();
        let service = attributes(about).remove("service.name").unwrap_or_default();
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        kept.spans.extend(spans.map(|span| Span {
            service: service.clone(),
            name: span.name,
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            kind: span.kind,
            attributes: attributes(span.attributes),
        }));
    }
    StatusCode::OK
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    pairs
        .into_iter()
        .map(|pair| (pair.key, text(pair.value)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
