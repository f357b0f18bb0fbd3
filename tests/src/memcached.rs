//! A private memcached on a free port.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ports::free_port;
use crate::server::ServerProcess;

const START_WITHIN: Duration = Duration::from_secs(30);

/// One server of one test.
#[derive(Debug)]
pub struct Memcached {
    port: u16,
    process: ServerProcess,
}

impl Memcached {
    /// Starts it and waits until it answers.
    pub async fn start() -> Result<Self> {
        Self::on(free_port()?).await
    }

    /// The same on a port that was one's before.
    pub async fn on(port: u16) -> Result<Self> {
        let mut command = Command::new("memcached");
        // It refuses to run as root without a user.
        command.args([
            "-l",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-U",
            "0",
            "-m",
            "16",
            "-u",
            "nobody",
        ]);
        let process = ServerProcess::spawn("memcached", command, Signal::SIGTERM)?;
        let mut server = Self { port, process };
        let address = server.address();
        server
            .process
            .wait_ready(START_WITHIN, async || {
                send(address, "version\r\n", "\r\n").await.map(|_| ())
            })
            .await?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Names of all items.
    pub async fn keys(&self) -> Result<Vec<String>> {
        let dump = send(self.address(), "lru_crawler metadump all\r\n", "END\r\n").await?;
        Ok(dump
            .lines()
            .filter_map(|line| line.strip_prefix("key=")?.split(' ').next())
            .map(|key| key.replace("%2F", "/"))
            .collect())
    }

    /// An item's value, as it is kept.
    pub async fn value(&self, key: &str) -> Result<Vec<u8>> {
        let mut line = TcpStream::connect(self.address()).await?;
        line.write_all(format!("get {key}\r\nquit\r\n").as_bytes())
            .await?;
        let mut value = Vec::new();
        line.read_to_end(&mut value).await?;
        Ok(value)
    }

    /// Puts a copy of an item into the place of another.
    pub async fn copy(&self, from: &str, to: &str) -> Result<()> {
        let answer = self.value(from).await?;
        let head = answer.iter().position(|byte| *byte == b'\n').context("a value")? + 1;
        let length = std::str::from_utf8(&answer[..head])?
            .trim()
            .rsplit(' ')
            .next()
            .context("a length")?;
        let length: usize = length.parse()?;
        let value = answer.get(head..head + length).context("a whole value")?;
        let mut line = TcpStream::connect(self.address()).await?;
        let command = format!("set {to} 0 0 {length}\r\n");
        line.write_all(&[command.as_bytes(), value, b"\r\nquit\r\n"].concat())
            .await?;
        let mut stored = String::new();
        line.read_to_string(&mut stored).await?;
        ensure!(stored == "STORED\r\n", "{stored}");
        Ok(())
    }

    /// Ends it.
    pub async fn stop(self) -> Result<()> {
        self.process.kill().await?;
        Ok(())
    }
}

/// Sends a command and returns the response up to and with `end`.
async fn send(address: SocketAddr, command: &str, end: &str) -> Result<String> {
    let mut line = TcpStream::connect(address).await?;
    line.write_all(command.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        ensure!(line.read_buf(&mut answer).await? > 0, "it ended within an answer");
    }
    Ok(String::from_utf8(answer)?)
}
