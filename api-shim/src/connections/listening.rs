//! Sockets to listen on: our own, or one that systemd has given us.

use std::net::SocketAddr;

use futures::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Most connections that are still taken from the queue of a socket that is about to be closed.
const LAST_ONES: usize = 1024;

/// A listening socket.
#[derive(Debug)]
pub struct Listening {
    pub(super) socket: TcpListener,
    /// Whether it stays open in the service manager after we have closed it, and queues connections for the next
    /// process.
    pub(super) inherited: bool,
}

impl Listening {
    /// A socket that somebody else has opened and keeps open.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking, or the runtime cannot watch it.
    pub fn inherited(socket: std::net::TcpListener) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: TcpListener::from_std(socket)?,
            inherited: true,
        })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The system does not tell it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Who has connected and was not accepted yet.
    pub(super) async fn waiting(&self) -> Vec<(TcpStream, SocketAddr)> {
        // The runtime learns of a connection only when it asks the system: a turn for it to do so.
        tokio::task::yield_now().await;
        let mut waiting = Vec::new();
        while let Some(Ok(accepted)) = self.socket.accept().now_or_never() {
            waiting.push(accepted);
            if waiting.len() == LAST_ONES {
                break;
            }
        }
        waiting
    }
}

/// Binds a listening socket to the address.
///
/// # Errors
/// The system refuses: the address is taken, is not one of this host, or needs rights that the process lacks.
pub async fn bind(address: SocketAddr) -> std::io::Result<Listening> {
    Ok(Listening {
        socket: TcpListener::bind(address).await?,
        inherited: false,
    })
}
