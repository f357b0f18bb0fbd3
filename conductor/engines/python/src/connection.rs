//! A connection to a zygote: one worker with its guard, which ends with it.
//!
//! The first byte carries two file descriptors: the writing end of a pipe for standard error, and the reading end of the
//! pipe that the guard watches. The guard kills the worker's process group when the other end closes, and when no byte
//! comes for too long. So dropping a connection ends whatever its call has started, within milliseconds.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use magnum_engine_process::{GuardTiming, Lines, MAX_ERROR_LINE, TooMuch};
use nix::fcntl::OFlag;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::unistd::pipe2;
use serde::Serialize;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::messages::FromWorker;

/// Bytes of one message.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Bytes of all messages of a connection.
const MOST_BYTES: usize = 1 << 30;
/// A worker that was killed closes its pipes at once; one that cannot be killed hangs in the kernel.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A worker.
pub struct Connection {
    lines: Lines<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    stderr: Lines<Receiver>,
    /// Whether the worker has written more than is read.
    is_flooded: bool,
    /// Its end is the worker's.
    guard: Sender,
    heartbeat: Interval,
}

/// What comes from a worker.
pub enum Event {
    /// A message.
    Message(Box<FromWorker>),
    /// A line on standard error.
    StandardError(String),
    /// The worker has ended.
    End,
    /// Something that is no message.
    Garbage(String),
}

impl Connection {
    /// Has the zygote at `socket` fork a worker, and waits for its first message.
    ///
    /// # Errors
    /// Nobody listens, the worker ends at once, or this process has no more file descriptors.
    pub async fn open(socket: &Path, timing: GuardTiming) -> io::Result<Self> {
        let stream = UnixStream::connect(socket).await?;
        let (stderr, stderr_end) = pipe2(OFlag::O_CLOEXEC)?;
        let (guard_end, guard) = pipe2(OFlag::O_CLOEXEC)?;
        send_descriptors(&stream, [&stderr_end, &guard_end]).await?;
        drop((stderr_end, guard_end));
        let (reader, writer) = stream.into_split();
        let mut heartbeat = interval(timing.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = Self {
            lines: Lines::new(Some(reader), LONGEST_MESSAGE, MOST_BYTES),
            writer,
            stderr: Lines::new(Some(Receiver::from_owned_fd(stderr)?), MAX_ERROR_LINE, MOST_BYTES).cutting(),
            is_flooded: false,
            guard: Sender::from_owned_fd(guard)?,
            heartbeat,
        };
        loop {
            match connection.next().await {
                Event::StandardError(_) => {}
                Event::Message(message) if let FromWorker::Hello { pid } = *message => {
                    tracing::debug!(pid, "a worker of the plug-in host is ready");
                    return Ok(connection);
                }
                _ => return Err(io::Error::other("the worker ended before it said hello")),
            }
        }
    }

    /// Sends a message. A worker that has ended tells so by [`Connection::next`].
    pub async fn send(&mut self, message: &impl Serialize) {
        // Strings, numbers and maps of them always serialise.
        let mut line = serde_json::to_vec(message).unwrap_or_default();
        line.push(b'\n');
        if let Err(error) = self.writer.write_all(&line).await {
            tracing::debug!(%error, "a worker of the plug-in host takes no message");
        }
    }

    /// The next event; meanwhile the guard gets signs of life. May be dropped and called again.
    pub async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                _ = self.heartbeat.tick() => self.show_life(),
                line = self.stderr.next(), if !self.stderr.at_end() && !self.is_flooded => match line {
                    Ok(Some(line)) => return Event::StandardError(line),
                    Ok(None) => {}
                    Err(TooMuch) => self.is_flooded = true,
                },
                line = self.lines.next() => return match line {
                    Ok(Some(line)) if line.trim().is_empty() => continue,
                    Ok(Some(line)) => match serde_json::from_str(&line) {
                        Ok(message) => Event::Message(Box::new(message)),
                        Err(error) => Event::Garbage(error.to_string()),
                    },
                    Ok(None) => Event::End,
                    Err(TooMuch) => Event::Garbage(format!("a message of more than {LONGEST_MESSAGE} bytes")),
                },
            }
        }
    }

    /// Signs of life, for as long as this is polled: never ends.
    pub async fn keep_alive(&mut self) {
        loop {
            self.heartbeat.tick().await;
            self.show_life();
        }
    }

    fn show_life(&self) {
        // A guard that takes none has ended, or has enough of them.
        let _ = self.guard.try_write(b".");
    }

    /// Ends the worker, with everything in its process group, and waits until that is so. Returns what was left of its
    /// standard error.
    pub async fn end(mut self) -> Vec<String> {
        drop(self.guard);
        let mut last = Vec::new();
        // Its end of file: nobody has the pipe open any more.
        let _ = timeout(END_WITHIN, async {
            while let Ok(Some(line)) = self.stderr.next().await {
                last.push(line);
            }
        })
        .await;
        last
    }
}

async fn send_descriptors(stream: &UnixStream, descriptors: [&OwnedFd; 2]) -> io::Result<()> {
    let raw = descriptors.map(|descriptor| descriptor.as_raw_fd());
    let send = || {
        let control = [ControlMessage::ScmRights(&raw)];
        sendmsg::<()>(
            stream.as_raw_fd(),
            &[IoSlice::new(b"\n")],
            &control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )
        .map_err(io::Error::from)
    };
    stream.async_io(Interest::WRITABLE, send).await.map(drop)
}
