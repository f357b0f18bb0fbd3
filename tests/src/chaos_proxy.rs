//! A TCP line that misbehaves on command, put before a broker or a database.
//!
//! | state | new connections | open connections |
//! |---|---|---|
//! | forwarding | reach the upstream | carry bytes |
//! | slow | reach the upstream | carry bytes, each piece of them later |
//! | cut | are closed at once | were closed when the line was cut |
//! | stalled | are accepted, carry nothing | stay open, carry nothing: a dead network that nobody reported |
//! | forwarding after [`ChaosProxy::redirect`] | reach the new upstream | were closed: an address that has moved in order |
//! | forwarding after [`ChaosProxy::forget`] | reach the upstream | stay open, and swallow what they are given, for ever: an address that has moved |
//!
//! The address stays the same in all states. Bytes already handed to the kernel when the line is cut may
//! or may not have arrived, as in life. [`ChaosProxy::cut_after`] cuts one connection at the worst moment: when something
//! was sent and its answer has not come.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Forwarding,
    Slow(Duration),
    Cut,
    Stalled,
}

#[derive(Debug, Clone, Copy)]
struct State {
    line: Line,
    /// How often connections were forgotten. One that is older than the last time is dead.
    forgotten: u64,
    /// Where new connections lead.
    upstream: SocketAddr,
}

impl State {
    fn is_stalled(&self) -> bool {
        self.line == Line::Stalled
    }

    fn is_cut(&self) -> bool {
        self.line == Line::Cut
    }
}

/// Which words of a client end their connection, and how often they still do.
#[derive(Debug, Default)]
struct Snip {
    after: Mutex<Option<(&'static [u8], usize)>>,
    done: AtomicUsize,
}

impl Snip {
    /// Whether this is where the connection is to end.
    fn is_here(&self, sent: &[u8]) -> bool {
        let mut after = self.after.lock().unwrap_or_else(PoisonError::into_inner);
        match after.as_mut() {
            Some((words, left @ 1..)) if sent.windows(words.len()).any(|window| window == *words) => {
                *left -= 1;
                self.done.fetch_add(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }
}

/// What became of connections and of what they carried.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    /// Open connections that were closed, or lead nowhere since.
    broken: AtomicUsize,
    /// Pieces that were kept back.
    kept_back: AtomicUsize,
}

/// One proxied upstream. Dropping it closes the line for good.
#[derive(Debug)]
pub struct ChaosProxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    snip: Arc<Snip>,
    counts: Arc<Counts>,
    acceptor: JoinHandle<()>,
}

impl ChaosProxy {
    /// Listens on a free port and forwards to `upstream`, which need not be there yet.
    pub async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, state) = watch::channel(State {
            line: Line::Forwarding,
            forgotten: 0,
            upstream,
        });
        let snip = Arc::new(Snip::default());
        let shared = Arc::clone(&snip);
        let counts = Arc::new(Counts::default());
        let counter = Arc::clone(&counts);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counter.accepted.fetch_add(1, Ordering::Relaxed);
                let counts = Arc::clone(&counter);
                tokio::spawn(carry(client, state.clone(), Arc::clone(&shared), counts));
            }
        });
        Ok(Self {
            address,
            state: sender,
            snip,
            counts,
            acceptor,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections accepted so far, in any state: how a test sees that a client tries again.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// How many open connections were cut or forgotten.
    pub fn broken(&self) -> usize {
        self.counts.broken.load(Ordering::Relaxed)
    }

    /// How many pieces were late, or met a stalled line.
    pub fn kept_back(&self) -> usize {
        self.counts.kept_back.load(Ordering::Relaxed)
    }

    /// Closes every connection and refuses new ones.
    pub fn cut(&self) {
        self.set(Line::Cut);
    }

    /// Lets nothing pass, but keeps connections open.
    pub fn stall(&self) {
        self.set(Line::Stalled);
    }

    /// Keeps back each piece that passes, in either direction, for so long.
    pub fn slow(&self, each: Duration) {
        self.set(Line::Slow(each));
    }

    /// Forwards again. Connections that were cut stay closed; stalled ones go on.
    pub fn restore(&self) {
        self.set(Line::Forwarding);
    }

    /// Forwards new connections; those that are open stay so and lead nowhere. The upstream sees them closed.
    pub fn forget(&self) {
        self.state.send_modify(|state| {
            state.line = Line::Forwarding;
            state.forgotten += 1;
        });
    }

    /// Forwards new connections to another upstream, and closes those that are open.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.state.send_modify(|state| {
            state.line = Line::Forwarding;
            state.upstream = upstream;
        });
    }

    /// Has the next `times` pieces in which a client sends `words` arrive, and closes their connections before the answer.
    pub fn cut_after(&self, words: &'static [u8], times: usize) {
        *self.snip.after.lock().unwrap_or_else(PoisonError::into_inner) = Some((words, times));
    }

    /// How many connections [`Self::cut_after`] has closed.
    pub fn cuts(&self) -> usize {
        self.snip.done.load(Ordering::Relaxed)
    }

    fn set(&self, line: Line) {
        self.state.send_modify(|state| state.line = line);
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        self.set(Line::Cut);
        self.acceptor.abort();
    }
}

/// Carries one connection until an end closes it or the line is cut. Returning closes both sockets.
async fn carry(
    mut client: TcpStream,
    mut state: watch::Receiver<State>,
    snip: Arc<Snip>,
    counts: Arc<Counts>,
) {
    // A stalled line takes the connection and goes no further.
    if state.wait_for(|state| !state.is_stalled()).await.is_err() || state.borrow().is_cut() {
        return;
    }
    let (born, upstream) = {
        let state = state.borrow();
        (state.forgotten, state.upstream)
    };
    let Ok(mut server) = TcpStream::connect(upstream).await else {
        return;
    };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let mut watched = state.clone();
        tokio::select! {
            // First of all: what a stalled line holds does not slip through when it is forgotten.
            biased;
            _ = watched.wait_for(|state| state.is_cut() || state.upstream != upstream || state.forgotten > born) => {}
            () = copy(from_client, to_server, state.clone(), Some(&snip), &counts) => return,
            () = copy(from_server, to_client, state.clone(), None, &counts) => return,
        }
    }
    counts.broken.fetch_add(1, Ordering::Relaxed);
    let is_closed = {
        let state = state.borrow();
        state.is_cut() || state.upstream != upstream
    };
    if is_closed {
        return;
    }
    drop(server);
    let mut nowhere = vec![0; 16 * 1024];
    tokio::select! {
        _ = state.wait_for(State::is_cut) => {}
        () = async { while let Ok(1..) = client.read(&mut nowhere).await {} } => {}
    }
}

/// Copies one direction, pausing while the line is stalled.
async fn copy(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut state: watch::Receiver<State>,
    snip: Option<&Snip>,
    counts: &Counts,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let line = state.borrow().line;
        if line != Line::Forwarding {
            counts.kept_back.fetch_add(1, Ordering::Relaxed);
        }
        if let Line::Slow(each) = line {
            tokio::time::sleep(each).await;
        }
        if state.wait_for(|state| !state.is_stalled()).await.is_err()
            || to.write_all(&buffer[..count]).await.is_err()
            || snip.is_some_and(|snip| snip.is_here(&buffer[..count]))
        {
            return;
        }
    }
}
