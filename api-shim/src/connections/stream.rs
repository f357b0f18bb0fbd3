//! A stream that gives up on a client that gives nothing and takes nothing.
//!
//! | what | ends the connection |
//! |---|---|
//! | nothing moves, in either direction | after [`Patience::silence`] |
//! | an answer is not taken | after [`Patience::answer`], and one more second for each [`Patience::pace`] bytes taken |
//!
//! The second rule is for a client that takes a byte now and then. What it sends slowly is limited where it is
//! waited for: the head of a request by the HTTP server, the body by who reads it.
//!
//! When a request's body was not read to its end, closing at once would make the system throw away the answer that
//! is on its way. Then our side is closed, and what still comes is read and thrown away for a while.

use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Longest time that is read on for an answer's sake.
const LINGER: Duration = Duration::from_secs(60);

/// Longest silence meanwhile.
const LINGER_SILENCE: Duration = Duration::from_secs(5);

/// When a connection counts as dead.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Nothing moves. Must be longer than any request takes: a client that waits for its answer is silent, too.
    pub silence: Duration,
    /// An answer waits for its client.
    pub answer: Duration,
    /// Bytes of an answer that a client must take per second, on average, once `answer` is used up. What the system
    /// has taken in for the client counts as taken.
    pub pace: NonZeroU64,
}

/// What a connection's stream and its requests tell each other.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// At least one byte came.
    pub(super) spoken: AtomicBool,
    /// A request's body was not read to its end.
    pub(super) unread: AtomicBool,
}

/// A stream under watch.
pub(super) struct Watched<S> {
    stream: S,
    patience: Patience,
    signs: Arc<Signs>,
    /// When something moved last.
    moved: Instant,
    /// Since when something is being sent, and how much of it was taken.
    sending: Option<(Instant, u64)>,
    /// The sleeps of the two directions; each wakes the task that polls it.
    reading_ends: Pin<Box<Sleep>>,
    writing_ends: Pin<Box<Sleep>>,
    /// Our side is closed, since when.
    closed: Option<Instant>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, patience: Patience, signs: Arc<Signs>) -> Self {
        let now = Instant::now();
        let end = now + patience.silence;
        Self {
            stream,
            patience,
            signs,
            moved: now,
            sending: None,
            reading_ends: Box::pin(sleep_until(end)),
            writing_ends: Box::pin(sleep_until(end)),
            closed: None,
        }
    }

    /// Until when what is being sent must have been taken.
    fn taken_by(&self) -> Instant {
        let silence = self.moved + self.patience.silence;
        match self.sending {
            Some((since, bytes)) => {
                let pace = since + self.patience.answer + earned(bytes, self.patience.pace);
                silence.min(pace)
            }
            None => silence,
        }
    }
}

/// The time that taking so many bytes may need.
fn earned(bytes: u64, pace: NonZeroU64) -> Duration {
    Duration::from_millis(bytes.saturating_mul(1000) / pace)
}

/// Pending, until `end`: then it is an error.
fn give_up<T>(sleep: &mut Pin<Box<Sleep>>, end: Instant, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
    if sleep.deadline() != end {
        sleep.as_mut().reset(end);
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
            let end = self.moved + self.patience.silence;
            return give_up(&mut self.reading_ends, end, cx);
        }
        if buffer.filled().len() > before {
            self.moved = Instant::now();
            self.sending = None;
            self.signs.spoken.store(true, Ordering::Relaxed);
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
                let end = self.taken_by();
                return give_up(&mut self.writing_ends, end, cx);
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
                let end = self.taken_by();
                give_up(&mut self.writing_ends, end, cx)
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
                        let end = self.taken_by();
                        return give_up(&mut self.writing_ends, end, cx);
                    }
                }
                let now = Instant::now();
                (self.closed, self.moved) = (Some(now), now);
                now
            }
        };
        if !self.signs.unread.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut thrown_away = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        loop {
            let mut buffer = ReadBuf::uninit(&mut thrown_away);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => self.moved = Instant::now(),
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let end = (self.moved + LINGER_SILENCE).min(closed + LINGER);
                    ready!(give_up::<()>(&mut self.reading_ends, end, cx)).ok();
                    return Poll::Ready(Ok(()));
                }
            }
            if closed.elapsed() > LINGER {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
