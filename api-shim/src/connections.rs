//! Connections that end when nothing moves on them.
//!
//! A client that connects and then says nothing, or stops in the middle of a request or of reading its answer,
//! would hold its connection for ever, and some thousands of them all that the process may have. Here a
//! connection on which no byte moves for a while is closed, one that waits for its next request included.
//!
//! Not guaranteed: anything against a client that sends a byte now and then. That is a proxy's business.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// Accepts connections that may be silent for at most this long.
pub struct Patient {
    listener: TcpListener,
    patience: Duration,
}

impl Patient {
    /// `patience` must be longer than any request takes: a client that waits for its answer is silent too.
    pub fn new(listener: TcpListener, patience: Duration) -> Self {
        Self { listener, patience }
    }
}

impl Listener for Patient {
    type Io = Moving<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Moving::new(stream, self.patience), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A stream that fails when nothing moves on it for too long.
pub struct Moving<S> {
    stream: S,
    patience: Duration,
    end: Pin<Box<Sleep>>,
}

impl<S> Moving<S> {
    fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            end: Box::pin(sleep(patience)),
        }
    }

    /// Passes on what happened; nothing, for too long, is an error.
    fn watch<T>(&mut self, cx: &mut Context<'_>, happened: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if happened.is_ready() {
            let end = Instant::now() + self.patience;
            self.end.as_mut().reset(end);
            return happened;
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.watch(cx, read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // A socket has nothing to flush: that it is ready at once does not mean that anything moved.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(300);

    async fn served() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", post(|body: String| async move { body }));
        tokio::spawn(async move { axum::serve(Patient::new(listener, PATIENCE), router).await });
        address
    }

    #[tokio::test]
    async fn a_connection_that_stands_still_is_closed_wherever_it_stopped() {
        let address = served().await;
        for said in [
            "",
            "POST / HTTP/1.1\r\nHost: x\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
        ] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(said.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let ended = tokio::time::timeout(PATIENCE * 20, client.read_to_end(&mut answer)).await;
            assert!(ended.is_ok(), "{said:?} keeps its connection");
        }
    }

    #[tokio::test]
    async fn a_slow_request_that_moves_is_answered() {
        let mut client = TcpStream::connect(served().await).await.unwrap();
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        client.write_all(head).await.unwrap();
        for byte in b"slow" {
            sleep(PATIENCE / 2).await;
            client.write_all(&[*byte]).await.unwrap();
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("slow"), "{answer}");
    }
}
