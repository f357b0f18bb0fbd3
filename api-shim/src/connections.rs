//! From a listening socket to requests: HTTP/1.1, with or without TLS, within limits.
//!
//! Guaranteed: at most so many connections at a time; a connection ends when it is silent for too long, when the
//! head of a request takes too long, or when its client does not take the answer (`stream`); the end of serving
//! lets every accepted request have its answer. Not guaranteed: fairness between clients. The body of a request
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
pub use self::stream::Patience;
use self::stream::{Signs, Watched};
pub use self::tls::{Tls, TlsError};
use crate::metric_definitions::OpenConnection;
use magnum_telemetry::field;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long, after the end of serving began, the first request of a connection may be on its way.
const SPEAK_NOW: Duration = Duration::from_secs(1);

/// What limits connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many at a time.
    pub connections: usize,
    /// Until the head of a request must be there.
    pub head: Duration,
    /// The largest head. What is a little larger still reaches the service, which can say so in a better way.
    pub head_bytes: usize,
    /// When a connection counts as dead.
    pub patience: Patience,
}

/// The two ends of serving.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// Set while the service still takes requests, but wants its clients to go elsewhere: each answer ends its
    /// connection.
    pub leaving: Arc<AtomicBool>,
    /// No more connections; each ends after the request that it has begun.
    pub stop: CancellationToken,
    /// Connections end where they are.
    pub cut: CancellationToken,
}

/// Both addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peers {
    /// The client's, or its proxy's.
    pub client: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// Whether TLS ends here.
    pub tls: bool,
}

/// Serves until told to stop, and then until the last connection has ended.
pub async fn serve<S>(listening: Listening, tls: Option<Tls>, limits: Limits, ending: Ending, service: S)
where
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
    let one = Arc::new(One {
        http,
        tls,
        patience: limits.patience,
        ending: ending.clone(),
        service,
    });
    while let Some(permit) = unless(&ending.stop, Arc::clone(&permits).acquire_owned()).await {
        let Some(accepted) = unless(&ending.stop, accept(&listening.socket)).await else {
            break;
        };
        // The semaphore is never closed.
        let Ok(permit) = permit else { break };
        connections.spawn(Arc::clone(&one).serve(accepted, permit));
    }
    if !listening.inherited {
        // Who has connected already would be refused by our closing; who comes now, never knew us.
        for accepted in listening.waiting().await {
            if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                connections.spawn(Arc::clone(&one).serve(accepted, permit));
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

/// The next connection. What goes wrong with one of them is not the listener's end; no more file descriptors is
/// waited out.
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

/// What each connection needs.
struct One<S> {
    http: http1::Builder,
    tls: Option<Tls>,
    patience: Patience,
    ending: Ending,
    service: S,
}

impl<S> One<S>
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
        // Answers are written whole: waiting for more to send would only delay them.
        stream.set_nodelay(true).ok();
        let peers = |tls| Peers { client, local, tls };
        match &self.tls {
            None => self.http(stream, peers(false)).await,
            Some(tls) => {
                let shaken = timeout(HANDSHAKE, tls.acceptor().accept(stream));
                let shaken = tokio::select! {
                    shaken = shaken => shaken,
                    () = self.ending.cut.cancelled() => return,
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
        let signs = Arc::new(Signs::default());
        let Ending { leaving, stop, cut } = &self.ending;
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let signs = Arc::clone(&signs);
            signs.unread.store(false, Ordering::Relaxed);
            let mut request = request.map(|body| {
                Body::new(Read {
                    body,
                    ended: false,
                    signs,
                })
            });
            request.extensions_mut().insert(peers);
            let answered = self.service.clone().oneshot(request);
            async move {
                let mut response = answered.await?;
                if leaving.load(Ordering::Relaxed) || stop.is_cancelled() {
                    response
                        .headers_mut()
                        .insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        let stream = Watched::new(stream, self.patience, Arc::clone(&signs));
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let farewell = async {
            stop.cancelled().await;
            // The HTTP server closes a connection of which it has read nothing, even if the request is there already.
            if !signs.spoken.load(Ordering::Relaxed) {
                sleep(SPEAK_NOW).await;
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = cut.cancelled() => return,
            () = farewell => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = cut.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!({ field::CLIENT } = %peers.client, %error, "a connection ended early");
        }
    }
}

/// A request's body that leaves a sign when it is dropped before its end.
struct Read {
    body: Incoming,
    ended: bool,
    signs: Arc<Signs>,
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
            self.signs.unread.store(true, Ordering::Relaxed);
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
        ending: Ending,
        server: JoinHandle<()>,
    }

    async fn served(patience: Patience, router: Router) -> Served {
        let listening = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let address = listening.address().unwrap();
        let limits = Limits {
            connections: 8,
            head: SHORT * 10,
            head_bytes: 8192,
            patience,
        };
        let ending = Ending::default();
        let server = tokio::spawn(serve(listening, None, limits, ending.clone(), router));
        Served {
            address,
            ending,
            server,
        }
    }

    fn patience(silence: Duration, answer: Duration) -> Patience {
        Patience {
            silence,
            answer,
            pace: NonZeroU64::new(16 << 20).unwrap(),
        }
    }

    async fn to_the_end(mut client: TcpStream) -> String {
        let mut answer = Vec::new();
        let ended = timeout(SHORT * 60, client.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "it keeps its connection");
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn a_connection_that_stands_still_is_closed_wherever_it_stopped() {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let served = served(patience(SHORT, SHORT * 10), router).await;
        for said in [
            "",
            "POST / HTTP/1.1\r\nHost: x\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
        ] {
            let mut client = TcpStream::connect(served.address).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            to_the_end(client).await;
        }
    }

    #[tokio::test]
    async fn a_slow_request_that_moves_is_answered() {
        let router = Router::new().route("/", post(|body: String| async move { body }));
        let served = served(patience(SHORT, SHORT), router).await;
        let mut client = TcpStream::connect(served.address).await.unwrap();
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        client.write_all(head).await.unwrap();
        for byte in b"slow" {
            sleep(SHORT / 2).await;
            client.write_all(&[*byte]).await.unwrap();
        }
        let answer = to_the_end(client).await;
        assert!(answer.ends_with("slow"), "{answer}");
    }

    #[tokio::test]
    async fn who_takes_a_byte_of_the_answer_now_and_then_loses_it() {
        // More than the buffers of two sockets hold.
        let large = Router::new().route("/", get(|| async { vec![b'x'; 64 << 20] }));
        let served = served(patience(SHORT * 100, SHORT), large).await;
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
        assert!(ended.await.is_ok(), "it keeps its connection");
        assert!(taken < 64 << 20, "it was sent everything");
    }

    #[tokio::test]
    async fn stopping_answers_what_was_begun_and_cutting_does_not() {
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
        for cut in [false, true] {
            let router = Router::new().route("/", get(handler.clone()));
            let served = served(patience(SHORT * 100, SHORT * 100), router).await;
            let mut client = TcpStream::connect(served.address).await.unwrap();
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
            entered.notified().await;
            served.ending.stop.cancel();
            if cut {
                served.ending.cut.cancel();
            } else {
                gate.notify_one();
            }
            assert_eq!(to_the_end(client).await.ends_with("done"), !cut);
            timeout(SHORT * 60, served.server).await.unwrap().unwrap();
            assert!(TcpStream::connect(served.address).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_request_that_is_on_its_way_when_the_end_begins_is_answered() {
        let router = Router::new().route("/", get(|| async { "here" }));
        let served = served(patience(SHORT * 100, SHORT * 100), router).await;
        let mut client = TcpStream::connect(served.address).await.unwrap();
        let mut silent = TcpStream::connect(served.address).await.unwrap();
        // Another one's answer shows that these two were accepted.
        let mut other = TcpStream::connect(served.address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        other.write_all(request).await.unwrap();
        other.read_u8().await.unwrap();
        served.ending.stop.cancel();
        sleep(SHORT / 3).await;
        client.write_all(request).await.unwrap();
        let answer = to_the_end(client).await;
        assert!(
            answer.contains("connection: close") && answer.ends_with("here"),
            "{answer}"
        );
        assert!(silent.read_u8().await.is_err(), "nothing was asked");
        timeout(SHORT * 60, served.server).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_wants_its_clients_to_leave_ends_each_connection_with_an_answer() {
        let router = Router::new().route("/", get(|| async { "here" }));
        let served = served(patience(SHORT * 100, SHORT * 100), router).await;
        served.ending.leaving.store(true, Ordering::Relaxed);
        let mut client = TcpStream::connect(served.address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let answer = to_the_end(client).await;
        assert!(
            answer.contains("connection: close") && answer.ends_with("here"),
            "{answer}"
        );
    }
}
