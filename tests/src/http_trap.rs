//! An HTTP line that loses exactly one exchange, put before a service: the one request that a test names by method,
//! path and number.
//!
//! | lost | the service | the client |
//! |---|---|---|
//! | request | never sees it | sees its connection end |
//! | answer | has done it | sees its connection end |
//! | late | does it when [`HttpTrap::deliver`] is called | sees its connection end |
//!
//! Each connection carries one exchange and says so to the client, so that nothing else is lost with it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is lost of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The request.
    Request,
    /// The answer.
    Answer,
    /// The request is on its way for longer than the client waits.
    Late,
}

#[derive(Debug, Default)]
struct State {
    /// Which request, counted from 1 since the trap was set, and what of it.
    trap: Option<(String, usize, Loss)>,
    seen: BTreeMap<String, usize>,
    sprung: bool,
    late: Vec<Vec<u8>>,
}

/// A line with a trap. Dropping it closes the line.
#[derive(Debug)]
pub struct HttpTrap {
    address: SocketAddr,
    upstream: SocketAddr,
    state: Arc<Mutex<State>>,
    acceptor: JoinHandle<()>,
}

impl HttpTrap {
    /// Listens on a free port and forwards to `upstream`.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that went away, or a service that did: the connection ends, which is all there is to say.
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { carry(client, upstream, &shared).await.ok() });
            }
        });
        Ok(Self {
            address,
            upstream,
            state,
            acceptor,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the `number`th request from now on that is `what`: method and path, `ID` for each uuid in it.
    pub fn lose(&self, what: &str, number: usize, loss: Loss) {
        let mut state = lock(&self.state);
        state.trap = Some((what.to_owned(), number, loss));
        state.seen.clear();
        state.sprung = false;
    }

    /// Whether that request came.
    pub fn sprung(&self) -> bool {
        lock(&self.state).sprung
    }

    /// How often each request was made since the trap was set.
    pub fn seen(&self) -> BTreeMap<String, usize> {
        lock(&self.state).seen.clone()
    }

    /// Brings late requests to the service, and waits for its answers. Returns how many there were.
    pub async fn deliver(&self) -> Result<usize> {
        let late = std::mem::take(&mut lock(&self.state).late);
        for request in &late {
            exchange(self.upstream, request).await?;
        }
        Ok(late.len())
    }
}

impl Drop for HttpTrap {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn carry(mut client: TcpStream, upstream: SocketAddr, state: &Mutex<State>) -> Result<()> {
    let request = read_message(&mut client).await?;
    let what = name_of(&request)?;
    let loss = {
        let mut state = lock(state);
        let seen = state.seen.entry(what.clone()).or_default();
        *seen += 1;
        let number = *seen;
        let loss = state
            .trap
            .as_ref()
            .filter(|(wanted, at, _)| *wanted == what && *at == number)
            .map(|(_, _, loss)| *loss);
        state.sprung |= loss.is_some();
        if loss == Some(Loss::Late) {
            state.late.push(request.clone());
        }
        loss
    };
    if matches!(loss, Some(Loss::Request | Loss::Late)) {
        return Ok(());
    }
    let answer = exchange(upstream, &request).await?;
    if loss.is_none() {
        client.write_all(&answer).await?;
        client.shutdown().await?;
    }
    Ok(())
}

/// The answer, with a header that says that it is the connection's last.
async fn exchange(upstream: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let mut server = TcpStream::connect(upstream).await?;
    server.write_all(request).await?;
    let answer = read_message(&mut server).await?;
    let head = head_end(&answer).context("a head")?;
    Ok([&answer[..head - 2], b"Connection: close\r\n\r\n", &answer[head..]].concat())
}

/// Head and body, of a request or an answer.
async fn read_message(from: &mut TcpStream) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        if let Some(head) = head_end(&message)
            && message.len() >= head + body_length(&message[..head])?
        {
            return Ok(message);
        }
        let count = from.read(&mut chunk).await?;
        ensure!(count > 0, "the connection ended within a message");
        message.extend_from_slice(&chunk[..count]);
    }
}

/// Where the body begins.
fn head_end(message: &[u8]) -> Option<usize> {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

fn body_length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    Ok(length.map_or(Ok(0), str::parse)?)
}

fn name_of(request: &[u8]) -> Result<String> {
    let head = std::str::from_utf8(&request[..head_end(request).context("a head")?])?;
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().context("a method")?, words.next().context("a path")?);
    let path = target.split('?').next().unwrap_or_default();
    let parts = path.split('/').map(|part| match uuid::Uuid::try_parse(part) {
        Ok(_) => "ID",
        Err(_) => part,
    });
    Ok(format!("{method} {}", parts.collect::<Vec<_>>().join("/")))
}
