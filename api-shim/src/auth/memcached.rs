//! One memcached, spoken to in its text protocol: the two commands that are needed.
//!
//! Own code, after a look at what there is: `async-memcached` knows no IPv6 and stands on a crate that nobody maintains,
//! `memcache-async` reserves as much memory as the server says, `memcache` is synchronous and links OpenSSL.
//!
//! Guarantees: never fails, at worst it has nothing; an answer is read up to [`LARGEST`] bytes and within the time that
//! is set, whatever comes; after a failure the server is left alone for a while. Said in the log once per outage.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use magnum_config::KeystoneAuthtokenSection;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

/// More than memcached keeps in one item by default.
const LARGEST: usize = 2 * 1024 * 1024;
/// Longer than any line of an answer.
const LONGEST_LINE: u64 = 2048;
const DEFAULT_PORT: u16 = 11211;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Line = BufReader<Box<dyn Stream>>;

/// One server.
pub struct Memcached {
    address: String,
    within: Duration,
    dead_for: Duration,
    kept_at_most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Line>,
    /// It failed, and is not asked before this.
    dead_until: Option<Instant>,
}

impl Memcached {
    /// Connects to nothing yet. `address` is `host:port`, `[v6]:port`, with or without `inet:` or `inet6:` in front, or
    /// `unix:/path`.
    pub fn new(address: &str, section: &KeystoneAuthtokenSection) -> Self {
        Self {
            address: address.to_owned(),
            within: section.memcache_pool_socket_timeout,
            dead_for: section.memcache_pool_dead_retry,
            kept_at_most: section.memcache_pool_maxsize,
            state: Mutex::default(),
        }
    }

    /// As it was configured.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The value of a key without spaces.
    pub async fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.exchange(&Command::Get { key }).await.flatten()
    }

    /// Keeps a value for some seconds.
    pub async fn set(&self, key: &str, value: &[u8], seconds: u64) {
        self.exchange(&Command::Set { key, value, seconds }).await;
    }

    /// A line that was used up to a border between two exchanges is kept; one whose exchange failed, ran out of time or
    /// was cut short is closed by being dropped. A kept one may have been closed by the server meanwhile, so that its
    /// failure says nothing: the exchange is repeated on a new one.
    async fn exchange(&self, command: &Command<'_>) -> Option<Option<Vec<u8>>> {
        let idle = {
            let mut state = self.state();
            if state.dead_until.is_some_and(|until| Instant::now() < until) {
                return None;
            }
            state.idle.pop()
        };
        let done = tokio::time::timeout(self.within, async {
            if let Some(mut line) = idle
                && let Ok(answer) = command.run(&mut line).await
            {
                return Ok((answer, line));
            }
            let mut line = connect(&self.address).await?;
            let answer = command.run(&mut line).await?;
            Ok::<_, io::Error>((answer, line))
        })
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match done {
            Ok((answer, line)) => {
                let mut state = self.state();
                if state.dead_until.take().is_some() {
                    tracing::info!(server = self.address, "memcached is back");
                }
                if state.idle.len() < self.kept_at_most {
                    state.idle.push(line);
                }
                Some(answer)
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    fn failed(&self, error: &io::Error) {
        let mut state = self.state();
        // Others that had begun before it failed have nothing new to say.
        if state.dead_until.is_none() {
            tracing::warn!(
                server = self.address,
                error = %error,
                again_s = self.dead_for.as_secs(),
                "memcached is not available; tokens are remembered by this process only"
            );
        }
        state.idle.clear();
        state.dead_until = Some(Instant::now() + self.dead_for);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Command<'a> {
    Get {
        key: &'a str,
    },
    Set {
        key: &'a str,
        value: &'a [u8],
        seconds: u64,
    },
}

impl Command<'_> {
    async fn run(&self, line: &mut Line) -> io::Result<Option<Vec<u8>>> {
        match self {
            Self::Get { key } => {
                line.write_all(format!("get {key}\r\n").as_bytes()).await?;
                line.flush().await?;
                read_value(line).await
            }
            Self::Set { key, value, seconds } => {
                let command = format!("set {key} 0 {seconds} {}\r\n", value.len());
                line.write_all(&[command.as_bytes(), value, b"\r\n"].concat())
                    .await?;
                line.flush().await?;
                match read_line(line).await?.as_str() {
                    // It is too large, or there is no memory for it: not worth leaving the server alone.
                    "STORED" | "NOT_STORED" => Ok(None),
                    refused if refused.starts_with("SERVER_ERROR") => Ok(None),
                    other => Err(unexpected(other)),
                }
            }
        }
    }
}

async fn connect(address: &str) -> io::Result<Line> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok(BufReader::new(Box::new(UnixStream::connect(path).await?)));
    }
    let stream = TcpStream::connect(host_and_port(address)).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(Box::new(stream)))
}

fn host_and_port(address: &str) -> String {
    let host = address
        .strip_prefix("inet6:")
        .or_else(|| address.strip_prefix("inet:"))
        .unwrap_or(address);
    // Behind a bracket only a port has a colon.
    let after = host.rfind(']').map_or(host, |bracket| &host[bracket..]);
    if after.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:{DEFAULT_PORT}")
    }
}

/// `END`, or `VALUE <key> <flags> <length>`, the value, an empty line and `END`.
async fn read_value(line: &mut Line) -> io::Result<Option<Vec<u8>>> {
    let head = read_line(line).await?;
    if head == "END" {
        return Ok(None);
    }
    let length = head
        .strip_prefix("VALUE ")
        .and_then(|rest| rest.split(' ').nth(2))
        .and_then(|length| length.parse().ok())
        .filter(|length: &usize| *length <= LARGEST)
        .ok_or_else(|| unexpected(&head))?;
    let mut value = vec![0; length];
    line.read_exact(&mut value).await?;
    let rest = (read_line(line).await?, read_line(line).await?);
    if rest.0.is_empty() && rest.1 == "END" {
        Ok(Some(value))
    } else {
        Err(unexpected(&rest.1))
    }
}

async fn read_line(line: &mut Line) -> io::Result<String> {
    let mut bytes = Vec::new();
    line.take(LONGEST_LINE).read_until(b'\n', &mut bytes).await?;
    match bytes.strip_suffix(b"\r\n") {
        Some(text) => Ok(String::from_utf8_lossy(text).into_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn unexpected(answer: &str) -> io::Error {
    let shown: String = answer.chars().take(80).collect();
    io::Error::new(io::ErrorKind::InvalidData, format!("unexpected answer {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_in_the_forms_of_python_memcached() {
        for (address, expected) in [
            ("m", "m:11211"),
            ("m:1", "m:1"),
            ("inet:m:1", "m:1"),
            ("[::1]", "[::1]:11211"),
            ("inet6:[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(host_and_port(address), expected, "{address}");
        }
    }

    async fn value_of(answer: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let (near, mut far) = tokio::io::duplex(4096);
        far.write_all(answer).await?;
        drop(far);
        read_value(&mut BufReader::new(Box::new(near))).await
    }

    #[tokio::test]
    async fn only_a_whole_answer_is_one() {
        assert_eq!(value_of(b"END\r\n").await.unwrap(), None);
        assert_eq!(
            value_of(b"VALUE k 0 3\r\na\r\nb\r\n")
                .await
                .map_err(|error| error.kind()),
            Err(io::ErrorKind::UnexpectedEof)
        );
        assert_eq!(
            value_of(b"VALUE k 0 4\r\na\r\nb\r\nEND\r\n").await.unwrap(),
            Some(b"a\r\nb".to_vec())
        );
        for answer in [
            &b""[..],
            b"END",
            b"VALUE k 0\r\n",
            b"VALUE k 0 -1\r\n",
            b"VALUE k 0 99999999999\r\n",
            b"VALUE k 0 2\r\nabc\r\nEND\r\n",
            b"SERVER_ERROR out of memory\r\n",
            &[b'x'; 4000],
        ] {
            assert!(
                value_of(answer).await.is_err(),
                "{}",
                String::from_utf8_lossy(answer)
            );
        }
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_asked_once_and_again_when_its_time_has_come() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let section = KeystoneAuthtokenSection {
            memcache_pool_dead_retry: Duration::from_secs(1),
            ..KeystoneAuthtokenSection::default()
        };
        let server = Memcached::new(&address, &section);
        assert_eq!(server.get("k").await, None);
        let dead_until = server.state().dead_until.unwrap();
        assert_eq!(server.get("k").await, None);
        assert_eq!(server.state().dead_until, Some(dead_until), "not asked");
        tokio::time::sleep_until(dead_until).await;
        assert_eq!(server.get("k").await, None);
        assert!(server.state().dead_until > Some(dead_until), "asked again");
    }
}
