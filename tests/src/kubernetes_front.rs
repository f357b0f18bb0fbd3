//! A line before a Kubernetes API server that writes down what is asked, and answers what a test names by itself, as that server would.
//!
//! | fault | the server | the client |
//! |---|---|---|
//! | [`Fault::Status`] | never sees the request | gets this status |
//! | [`Fault::Expired`] | never sees the watch | is told that its version is too old, as the first event |
//! | [`KubernetesFront::cut`] | sees nothing any more | loses its connections, and gets no new ones |
//!
//! Everything else passes as it is, watches too. So does what helm asks, and anybody else but our conductors: they say who they are.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::kubernetes::Kubernetes;

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is refused.
    Status(u16),
    /// It is a watch, and what it wants to go on from is no longer kept.
    Expired,
}

/// Which requests go wrong: those of a method, with these words in path and query, so many of them.
#[derive(Debug, Clone, Copy)]
struct Order {
    method: &'static str,
    words: &'static str,
    fault: Fault,
    left: usize,
}

#[derive(Debug, Default)]
struct State {
    orders: Vec<Order>,
    asked: Vec<String>,
}

/// The line. Dropping it closes it for good.
#[derive(Debug)]
pub struct KubernetesFront {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    is_cut: watch::Sender<bool>,
    acceptor: JoinHandle<()>,
}

impl KubernetesFront {
    /// Listens on a free port, with the server's own certificate.
    pub async fn start(kubernetes: &'static Kubernetes) -> Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identity = &kubernetes.identity;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(&identity.server.certificate)?],
                PrivateKeyDer::from_pem_file(&identity.server.key)?,
            )?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&identity.authority)?)?;
        // Who asks shows a token, which passes.
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let line = Line {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            connector: TlsConnector::from(Arc::new(client)),
            upstream: kubernetes.address(),
            state: Arc::default(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::clone(&line.state);
        let (is_cut, mut cut) = watch::channel(false);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *cut.borrow_and_update() {
                    continue;
                }
                let (line, mut cut) = (line.clone(), cut.clone());
                tokio::spawn(async move {
                    // Who does not get through sees that at its own end.
                    tokio::select! {
                        _ = line.carry(client) => {}
                        _ = cut.wait_for(|is_cut| *is_cut) => {}
                    }
                });
            }
        });
        Ok(Self {
            address,
            state,
            is_cut,
            acceptor,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next `times` requests of this method with these words in path or query go wrong.
    pub fn order(&self, method: &'static str, words: &'static str, fault: Fault, times: usize) {
        self.state().orders.push(Order {
            method,
            words,
            fault,
            left: times,
        });
    }

    /// How many requests are still to go wrong.
    pub fn ordered(&self) -> usize {
        self.state().orders.iter().map(|order| order.left).sum()
    }

    /// Requests with these words go right again.
    pub fn lift(&self, words: &str) {
        self.state().orders.retain(|order| order.words != words);
    }

    /// What was asked since the last time, as `METHOD /path?query`.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    /// The server is gone, for everybody behind this line.
    pub fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// It is there again.
    pub fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for KubernetesFront {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.cut();
    }
}

#[derive(Clone)]
struct Line {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    upstream: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Line {
    async fn carry(&self, client: TcpStream) -> Result<()> {
        let client = self.acceptor.accept(client).await?;
        let service = service_fn(|request| async {
            Ok::<_, Infallible>(self.answer(request).await.unwrap_or_else(|error| {
                said(
                    StatusCode::BAD_GATEWAY,
                    &json!({"message": format!("{error:#}")}).to_string(),
                )
            }))
        });
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(client), service)
            .await?;
        Ok(())
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Answer> {
        let fault = self.taken(&request);
        match fault {
            Some(Fault::Status(status)) => {
                let status = StatusCode::from_u16(status)?;
                let reason = status.canonical_reason().unwrap_or_default();
                let body = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": format!("as ordered: {reason}"), "reason": reason, "code": status.as_u16()});
                Ok(said(status, &body.to_string()))
            }
            Some(Fault::Expired) => {
                let event = json!({"type": "ERROR", "object": {
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old resource version", "reason": "Expired", "code": 410}});
                Ok(said(StatusCode::OK, &format!("{event}\n")))
            }
            None => self.passed(request).await,
        }
    }

    /// Writes the request down, and takes the first fault that is for it.
    fn taken(&self, request: &Request<Incoming>) -> Option<Fault> {
        let method = request.method().as_str();
        let place = request.uri().path_and_query().map_or("", |place| place.as_str());
        let agent = request
            .headers()
            .get(USER_AGENT)
            .map_or(&b""[..], HeaderValue::as_bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked.push(format!("{method} {place}"));
        if !agent.starts_with(b"magnum/") {
            return None;
        }
        let mut orders = state.orders.iter_mut();
        let order = orders.find(|one| one.left > 0 && one.method == method && place.contains(one.words))?;
        order.left -= 1;
        Some(order.fault)
    }

    async fn passed(&self, request: Request<Incoming>) -> Result<Answer> {
        let stream = TcpStream::connect(self.upstream).await?;
        let name = ServerName::IpAddress(self.upstream.ip().into());
        let stream = self.connector.connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.context("no answer")?;
        Ok(answer.map(BodyExt::boxed))
    }
}

fn said(status: StatusCode, body: &str) -> Answer {
    let body = Full::new(Bytes::from(body.to_owned())).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
