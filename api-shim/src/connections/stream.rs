//! A stream that gives up on a stalled client.
//!
//! | the connection is closed when | after |
//! |---|---|
//! | no byte moves in either direction | [`StallLimits::idle`] |
//! | the client does not read a response | [`StallLimits::response`], and one more second per [`StallLimits::bytes_per_second`] bytes read |
//!
//! The second rule is for a client that reads a byte now and then. Slow sending is limited by the reader: the head of a
//! request by the HTTP server, the body by the handler's extractor.
//!
//! When a request's body was not read to its end, closing at once would make the system discard the response that is
//! on its way. Then our side is closed, and what still comes is read and discarded for a while.

use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Time limit for discarding the rest of a request.
const LINGER: Duration = Duration::from_secs(60);

/// Time limit without a byte meanwhile.
const LINGER_IDLE: Duration = Duration::from_secs(5);

/// When a stalled connection is closed.
#[derive(Debug, Clone, Copy)]
pub struct StallLimits {
    /// Time without a byte in either direction. Must be longer than any request takes: a client that waits for its
    /// response is silent, too.
    pub idle: Duration,
    /// Time limit for the client to read a response, for its first bytes.
    pub response: Duration,
    /// Minimum rate at which the client reads the rest, on average. Bytes in the system's buffers count as read.
    pub bytes_per_second: NonZeroU64,
}

/// What a connection's stream and its requests know of each other.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    /// At least one byte was received.
    pub(super) received: AtomicBool,
    /// A request's body was not read to its end.
    pub(super) unread: AtomicBool,
}

/// A stream under watch.
pub(super) struct Watched<S> {
    stream: S,
    stall: StallLimits,
    state: Arc<StreamState>,
    /// When a byte moved last.
    moved: Instant,
    /// Since when a response is being sent, and how many bytes of it were written.
    sending: Option<(Instant, u64)>,
    /// The sleeps of the two directions; each wakes the task that polls it.
    reading_ends: Pin<Box<Sleep>>,
    writing_ends: Pin<Box<Sleep>>,
    /// Our side is closed, since when.
    closed: Option<Instant>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, stall: StallLimits, state: Arc<StreamState>) -> Self {
        let now = Instant::now();
        let end = now + stall.idle;
        Self {
            stream,
            stall,
            state,
            moved: now,
            sending: None,
            reading_ends: Box::pin(sleep_until(end)),
            writing_ends: Box::pin(sleep_until(end)),
            closed: None,
        }
    }

    /// When the write in progress times out.
    fn write_deadline(&self) -> Instant {
        let idle = self.moved + self.stall.idle;
        match self.sending {
            Some((since, bytes)) => {
                let slowest = since + self.stall.response + time_for(bytes, self.stall.bytes_per_second);
                idle.min(slowest)
            }
            None => idle,
        }
    }
}

/// The time that so many bytes may take.
fn time_for(bytes: u64, bytes_per_second: NonZeroU64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / bytes_per_second)
}

/// Pending until `deadline`, then an error.
fn time_out_at<T>(
    sleep: &mut Pin<Box<Sleep>>,
    deadline: Instant,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    if sleep.deadline() != deadline {
        sleep.as_mut().reset(deadline);
    }
    ready!(sleep.as_mut().poll(cx));
    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() {
            let end = self.moved + self.stall.idle;
            return time_out_at(&mut self.reading_ends, end, cx);
        }
        if buffer.filled().len() > before {
            self.moved = Instant::now();
            self.sending = None;
            self.state.received.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn watch_writing(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let now = Instant::now();
        let (_, taken) = self.sending.get_or_insert((now, 0));
        match written {
            Poll::Ready(Ok(bytes)) => {
                *taken = taken.saturating_add(bytes as u64);
                self.moved = now;
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                let end = self.write_deadline();
                return time_out_at(&mut self.writing_ends, end, cx);
            }
        }
        written
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch_writing(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch_writing(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // That there is nothing more to flush does not mean that anything moved; TLS may have to wait here.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => {
                let end = self.write_deadline();
                time_out_at(&mut self.writing_ends, end, cx)
            }
            done => done,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = match self.closed {
            Some(since) => since,
            None => {
                match Pin::new(&mut self.stream).poll_shutdown(cx) {
                    Poll::Ready(done) => done?,
                    Poll::Pending => {
                        let end = self.write_deadline();
                        return time_out_at(&mut self.writing_ends, end, cx);
                    }
                }
                let now = Instant::now();
                (self.closed, self.moved) = (Some(now), now);
                now
            }
        };
        if !self.state.unread.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut discarded = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        loop {
            let mut buffer = ReadBuf::uninit(&mut discarded);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => self.moved = Instant::now(),
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let end = (self.moved + LINGER_IDLE).min(closed + LINGER);
                    ready!(time_out_at::<()>(&mut self.reading_ends, end, cx)).ok();
                    return Poll::Ready(Ok(()));
                }
            }
            if closed.elapsed() > LINGER {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
