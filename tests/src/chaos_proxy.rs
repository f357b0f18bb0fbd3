//! A TCP line that misbehaves on command, put before a broker or a database.
//!
//! | state | new connections | open connections |
//! |---|---|---|
//! | forwarding | reach the upstream | carry bytes |
//! | cut | are closed at once | were closed when the line was cut |
//! | stalled | are accepted, carry nothing | stay open, carry nothing: a dead network that nobody reported |
//!
//! The address stays the same in all states. Bytes already handed to the kernel when the line is cut may
//! or may not have arrived, as in life.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Forwarding,
    Cut,
    Stalled,
}

/// One proxied upstream. Dropping it closes the line for good.
#[derive(Debug)]
pub struct ChaosProxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    accepted: Arc<AtomicUsize>,
    acceptor: JoinHandle<()>,
}

impl ChaosProxy {
    /// Listens on a free port and forwards to `upstream`, which need not be there yet.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (line, state) = watch::channel(Line::Forwarding);
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(carry(client, upstream, state.clone()));
            }
        });
        Ok(Self {
            address,
            line,
            accepted,
            acceptor,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far, in any state: how a test sees that a client tries again.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Closes every connection and refuses new ones.
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Lets nothing pass, but keeps connections open.
    pub fn stall(&self) {
        self.line.send_replace(Line::Stalled);
    }

    /// Forwards again. Connections that were cut stay closed; stalled ones go on.
    pub fn restore(&self) {
        self.line.send_replace(Line::Forwarding);
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        self.line.send_replace(Line::Cut);
        self.acceptor.abort();
    }
}

/// Carries one connection until an end closes it or the line is cut. Returning closes both sockets.
async fn carry(client: TcpStream, upstream: SocketAddr, mut line: watch::Receiver<Line>) {
    // A stalled line takes the connection and goes no further.
    if line.wait_for(|state| *state != Line::Stalled).await.is_err() || *line.borrow() == Line::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else {
        return;
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = line.clone();
    tokio::select! {
        _ = cut.wait_for(|state| *state == Line::Cut) => {}
        _ = copy(from_client, to_server, line.clone()) => {}
        _ = copy(from_server, to_client, line) => {}
    }
}

/// Copies one direction, pausing while the line is stalled.
async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut line: watch::Receiver<Line>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if line.wait_for(|state| *state != Line::Stalled).await.is_err()
            || to.write_all(&buffer[..count]).await.is_err()
        {
            return;
        }
    }
}
