//! From a listening socket to requests: HTTP/1.1, with or without TLS, within limits.
//!
//! Guaranteed: a maximum number of concurrent connections; a connection is closed when it is idle for too long, when
//! the head of a request takes too long, or when its client does not read the response (`stream`); a stop lets every
//! accepted request have its response. Not guaranteed: fairness between clients. The body of a request
//! has a time limit of its own ([`crate::request::Body`]).
//!
//! `axum::serve` is not used: it sets none of these limits.

mod listening;
mod stream;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt as _};

pub use self::listening::{Listening, bind};
pub use self::stream::StallLimits;
use self::stream::{StreamState, Watched};
pub use self::tls::{Tls, TlsError};
use crate::metric_definitions::OpenConnection;
use magnum_telemetry::field;

/// Time limit of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long, after a stop, an accepted connection may take to send its first request.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Limits of connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Time limit for the complete head of a request.
    pub head: Duration,
    /// Maximum size of a head, in bytes. A slightly larger one still reaches the service, which refuses it with a
    /// proper response.
    pub head_bytes: usize,
    /// When a stalled connection is closed.
    pub stall: StallLimits,
}

/// The three signals of an orderly shutdown, in this order. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ShutdownSignals {
    /// Requests are still served, and clients shall go elsewhere: each response closes its connection.
    pub drain: Arc<AtomicBool>,
    /// No new connections are accepted, and each open one closes after the request that it has begun.
    pub stop: CancellationToken,
    /// Connections are closed in the middle of their requests.
    pub abort: CancellationToken,
}

/// Both addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peers {
    /// The client's, or its proxy's.
    pub client: SocketAddr,
    /// The local address.
    pub local: SocketAddr,
    /// Whether TLS ends here.
    pub tls: bool,
}

/// Serves until `shutdown.stop`, and then until the last connection has closed.
pub async fn serve<S>(
    listening: Listening,
    tls: Option<Tls>,
    limits: Limits,
    shutdown: ShutdownSignals,
    service: S,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(limits.head_bytes.saturating_mul(4));
    let permits = Arc::new(Semaphore::new(limits.connections));
    let connections = TaskTracker::new();
    let server = Arc::new(ConnectionServer {
        http,
        tls,
        stall: limits.stall,
        shutdown: shutdown.clone(),
        service,
    });
    while let Some(permit) = unless(&shutdown.stop, Arc::clone(&permits).acquire_owned()).await {
        let Some(accepted) = unless(&shutdown.stop, accept(&listening.socket)).await else {
            break;
        };
        // The semaphore is never closed.
        let Ok(permit) = permit else { break };
        connections.spawn(Arc::clone(&server).serve(accepted, permit));
    }
    if !listening.inherited {
        // Closing the socket would reset connections that wait in its backlog: they are served, too.
        for accepted in listening.waiting().await {
            if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                connections.spawn(Arc::clone(&server).serve(accepted, permit));
            }
        }
    }
    drop(listening);
    connections.close();
    connections.wait().await;
}

async fn unless<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        done = work => Some(done),
    }
}

/// The next connection. A failed connection does not end the listener; neither does running out of file
/// descriptors: it tries again after a second.
async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match socket.accept().await {
            Ok(accepted) => return accepted,
            Err(error)
                if matches!(
                    error.kind(),
                    ConnectionAborted | ConnectionRefused | ConnectionReset
                ) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted at the moment");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// What all connections share.
struct ConnectionServer<S> {
    http: http1::Builder,
    tls: Option<Tls>,
    stall: StallLimits,
    shutdown: ShutdownSignals,
    service: S,
}

impl<S> ConnectionServer<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    async fn serve(self: Arc<Self>, (stream, client): (TcpStream, SocketAddr), permit: OwnedSemaphorePermit) {
        let _open = OpenConnection::counted();
        let local = stream.local_addr().unwrap_or(client);
        // Responses are written whole: waiting for more data would only delay them.
        stream.set_nodelay(true).ok();
        let peers = |tls| Peers { client, local, tls };
        match &self.tls {
            None => self.http(stream, peers(false)).await,
            Some(tls) => {
                let shaken = timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream));
                let shaken = tokio::select! {
                    shaken = shaken => shaken,
                    () = self.shutdown.abort.cancelled() => return,
                };
                match shaken {
                    Ok(Ok(stream)) => self.http(stream, peers(true)).await,
                    Ok(Err(error)) => tracing::debug!({ field::CLIENT } = %client, %error, "no TLS"),
                    Err(_) => tracing::debug!({ field::CLIENT } = %client, "the TLS handshake took too long"),
                }
            }
        }
        drop(permit);
    }

    async fn http(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peers: Peers) {
        let state = Arc::new(StreamState::default());
        let ShutdownSignals { drain, stop, abort } = &self.shutdown;
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let state = Arc::clone(&state);
            state.unread.store(false, Ordering::Relaxed);
            let mut request = request.map(|body| {
                Body::new(Read {
                    body,
                    ended: false,
                    state,
                })
            });
            request.extensions_mut().insert(peers);
            let handled = self.service.clone().oneshot(request);
            async move {
                let mut response = handled.await?;
                if drain.load(Ordering::Relaxed) || stop.is_cancelled() {
                    response
                        .headers_mut()
                        .insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let stream = Watched::new(stream, self.stall, Arc::clone(&state));
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let stopped = async {
            stop.cancelled().await;
            // The HTTP server closes a connection of which it has read nothing, even if the request is there already.
            if !state.received.load(Ordering::Relaxed) {
                sleep(FIRST_REQUEST_GRACE).await;
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = abort.cancelled() => return,
            () = stopped => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = abort.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!({ field::CLIENT } = %peers.client, %error, "a connection ended early");
        }
    }
}

/// A request's body that is noted when it is dropped before its end.
struct Read {
    body: Incoming,
    ended: bool,
    state: Arc<StreamState>,
}

impl http_body::Body for Read {
    type Data = bytes::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.ended |= matches!(frame, Poll::Ready(None | Some(Err(_))));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            self.state.unread.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::num::NonZeroU64;

    use axum::Router;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;
    use tokio::task::JoinHandle;

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    struct Served {
        address: SocketAddr,
        shutdown: ShutdownSignals,
        server: JoinHandle<()>,
    }

    async fn served(stall: StallLimits, router: Router) -> Served {
        let listening = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let address = listening.address().unwrap();
        let limits = Limits {
            connections: 8,
            head: SHORT * 10,
            head_bytes: 8192,
            stall,
        };
        let shutdown = ShutdownSignals::default();
        let server = tokio::spawn(serve(listening, None, limits, shutdown.clone(), router));
        Served {
            address,
            shutdown,
            server,
        }
    }

    fn stall(idle: Duration, response: Duration) -> StallLimits {
        StallLimits {
            idle,
            response,
            bytes_per_second: NonZeroU64::new(16 << 20).unwrap(),
        }
    }

    async fn read_to_end(mut client: TcpStream) -> String {
        let mut answer = Vec::new();
        let ended = timeout(SHORT * 60, client.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the connection is still open");
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn idle_connection_is_closed_at_any_stage_of_a_request() {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let served = served(stall(SHORT, SHORT * 10), router).await;
        for said in [
            "",
            "POST / HTTP/1.1\r\nHost: x\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
        ] {
            let mut client = TcpStream::connect(served.address).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            read_to_end(client).await;
        }
    }

    #[tokio::test]
    async fn slow_request_that_progresses_is_answered() {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let served = served(stall(SHORT, SHORT), router).await;
        let mut client = TcpStream::connect(served.address).await.unwrap();
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        client.write_all(head).await.unwrap();
        for byte in b"slow" {
            sleep(SHORT / 2).await;
            client.write_all(&[*byte]).await.unwrap();
        }
        let answer = read_to_end(client).await;
        assert!(answer.ends_with("slow"), "{answer}");
    }

    #[tokio::test]
    async fn slow_reader_is_disconnected() {
        // More than the buffers of two sockets hold.
        let large = Router::new().route("/", get(|| async { vec![b'x'; 64 << 20] }));
        let served = served(stall(SHORT * 100, SHORT), large).await;
        let mut client = TcpStream::connect(served.address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut taken = 0;
        let ended = timeout(SHORT * 60, async {
            let mut bytes = [0; 4096];
            // Moves all the time, and much more slowly than it should.
            while let Ok(count @ 1..) = client.read(&mut bytes).await {
                taken += count;
                if taken < 1 << 18 {
                    sleep(Duration::from_millis(50)).await;
                }
            }
        });
        assert!(ended.await.is_ok(), "the connection is still open");
        assert!(taken < 64 << 20, "the whole response was sent");
    }

    #[tokio::test]
    async fn stop_lets_requests_complete_and_abort_does_not() {
        let gate = Arc::new(Notify::new());
        let entered = Arc::new(Notify::new());
        let (inner, arrived) = (Arc::clone(&gate), Arc::clone(&entered));
        let handler = move || {
            let (gate, entered) = (Arc::clone(&inner), Arc::clone(&arrived));
            async move {
                entered.notify_one();
                gate.notified().await;
                "done"
            }
        };
        for abort in [false, true] {
            let router = Router::new().route("/", get(handler.clone()));
            let served = served(stall(SHORT * 100, SHORT * 100), router).await;
            let mut client = TcpStream::connect(served.address).await.unwrap();
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
            entered.notified().await;
            served.shutdown.stop.cancel();
            if abort {
                served.shutdown.abort.cancel();
            } else {
                gate.notify_one();
            }
            assert_eq!(read_to_end(client).await.ends_with("done"), !abort);
            timeout(SHORT * 60, served.server).await.unwrap().unwrap();
            assert!(TcpStream::connect(served.address).await.is_err());
        }
    }

    #[tokio::test]
    async fn request_sent_just_after_stop_is_answered() {
        let router = Router::new().route("/", get(|| async { "here" }));
        let served = served(stall(SHORT * 100, SHORT * 100), router).await;
        let mut client = TcpStream::connect(served.address).await.unwrap();
        let mut silent = TcpStream::connect(served.address).await.unwrap();
        // Another one's answer shows that these two were accepted.
        let mut other = TcpStream::connect(served.address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        other.write_all(request).await.unwrap();
        other.read_u8().await.unwrap();
        served.shutdown.stop.cancel();
        sleep(SHORT / 3).await;
        client.write_all(request).await.unwrap();
        let answer = read_to_end(client).await;
        assert!(
            answer.contains("connection: close") && answer.ends_with("here"),
            "{answer}"
        );
        assert!(silent.read_u8().await.is_err(), "nothing was asked");
        timeout(SHORT * 60, served.server).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn drain_closes_each_connection_after_its_response() {
        let router = Router::new().route("/", get(|| async { "here" }));
        let served = served(stall(SHORT * 100, SHORT * 100), router).await;
        served.shutdown.drain.store(true, Ordering::Relaxed);
        let mut client = TcpStream::connect(served.address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let answer = read_to_end(client).await;
        assert!(
            answer.contains("connection: close") && answer.ends_with("here"),
            "{answer}"
        );
    }
}
