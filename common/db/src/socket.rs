//! The TCP socket under a connection, to cut it when the server does not answer.
//!
//! A network that swallows packets, an address that moved to another host, a server that is paused: whoever waits for an
//! answer then waits for as long as the kernel does, up to hours. libmariadb has a limit for it that diesel cannot set, libpq
//! has none, and neither shows its socket through diesel. So it is looked for: the socket of this process that was made while
//! the connection was being opened, and that leads to the server's port. Openings take turns, so that it is the only one.
//!
//! Once cut, the library reports a lost connection at once, and the thread that waited comes back.
//!
//! Not given: sockets of Unix's own kind have none of these troubles and are not found, and nothing is where `/proc` cannot be
//! read. Such connections work, and wait.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{Shutdown, SockaddrStorage, getpeername, shutdown};

/// A socket of this process. Does not own it: the client library does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Socket {
    fd: RawFd,
    inode: u64,
}

impl Socket {
    /// Ends the conversation in both directions. Nothing happens when the library has closed it meanwhile.
    pub(super) fn cut(self) {
        // The number may be another file's by now.
        if inode_of(self.fd) == Some(self.inode) {
            shutdown(self.fd, Shutdown::Both).ok();
        }
    }
}

/// Openings take turns here.
static TURN: Mutex<()> = Mutex::new(());

/// Opens a connection with `establish`, whose server is at one of `ports`, and makes it ready with `set_up`. What takes longer
/// than `limit` without being ready is cut, and fails. Blocks.
pub(super) fn open<C, E>(
    ports: &[u16],
    limit: Duration,
    establish: impl FnOnce() -> Result<C, E>,
    set_up: impl FnOnce(&mut C) -> Result<(), E>,
) -> Result<(C, Option<Socket>), E> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = sockets().into_keys().collect();
    let found = Mutex::new(None);
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel::<()>();
        let (found, before) = (&found, &before);
        let watcher = thread::Builder::new().name("database-open".to_owned());
        let watched = watcher.spawn_scoped(scope, move || {
            // An address after the other is tried, and each may lead nowhere.
            while is_ready.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                match *found.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some(socket) => Socket::cut(socket),
                    None => leading(new_since(before), ports).for_each(Socket::cut),
                }
            }
        });
        if let Err(error) = watched {
            tracing::warn!(%error, "no thread to watch the opening of a database connection; it may take long");
        }
        let mut conn = establish()?;
        let socket = connected(new_since(before), ports);
        *found.lock().unwrap_or_else(PoisonError::into_inner) = socket;
        drop(turn);
        set_up(&mut conn)?;
        drop(ready);
        Ok((conn, socket))
    })
}

fn new_since(before: &HashSet<u64>) -> impl Iterator<Item = Socket> {
    let new = sockets().into_iter();
    new.filter(|(inode, _)| !before.contains(inode))
        .map(|(inode, fd)| Socket { fd, inode })
}

/// Of these, the one that is connected to one of the ports, if it is one.
fn connected(mut new: impl Iterator<Item = Socket>, ports: &[u16]) -> Option<Socket> {
    let is_connected = |socket: &Socket| {
        let Ok(peer) = getpeername::<SockaddrStorage>(socket.fd) else {
            return false;
        };
        let port = match (peer.as_sockaddr_in(), peer.as_sockaddr_in6()) {
            (Some(peer), _) => peer.port(),
            (_, Some(peer)) => peer.port(),
            _ => return false,
        };
        ports.contains(&port)
    };
    let found = new.find(is_connected)?;
    new.find(is_connected).is_none().then_some(found)
}

/// Of these, those that lead to one of the ports, connected or not. Reads the kernel's whole table.
fn leading(new: impl Iterator<Item = Socket>, ports: &[u16]) -> impl Iterator<Item = Socket> {
    let mut leading = HashSet::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        let table = fs::read_to_string(table).unwrap_or_default();
        leading.extend(leading_to(&table, ports));
    }
    new.filter(move |socket| leading.contains(&socket.inode))
}

/// The inodes in a table of the kernel's (`proc_net_tcp`) of sockets that lead to one of these ports: `sl`, local and remote
/// address, and the inode as the tenth column.
fn leading_to<'a>(table: &'a str, ports: &'a [u16]) -> impl Iterator<Item = u64> + 'a {
    table.lines().filter_map(|line| {
        let mut columns = line.split_whitespace();
        let remote = columns.nth(2)?;
        let (_, port) = remote.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = columns.nth(6)?.parse().ok()?;
        ports.contains(&port).then_some(inode)
    })
}

/// The sockets of this process, by inode.
fn sockets() -> HashMap<u64, RawFd> {
    let Ok(files) = fs::read_dir("/proc/self/fd") else {
        return HashMap::new();
    };
    files
        .filter_map(|file| {
            let fd = file.ok()?.file_name().to_str()?.parse().ok()?;
            Some((inode_of(fd)?, fd))
        })
        .collect()
}

fn inode_of(fd: RawFd) -> Option<u64> {
    let target = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    const PATIENT: Duration = Duration::from_secs(60);

    fn server() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn connect(port: u16) -> std::io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
    }

    #[test]
    fn a_silent_server_is_waited_for_until_the_socket_is_cut() {
        let (_listener, port) = server();
        let (_other_listener, other_port) = server();
        let _other = connect(other_port).unwrap();
        let (mut stream, socket) = open(&[port], PATIENT, || connect(port), |_| Ok(())).unwrap();
        let socket = socket.unwrap();
        let waiting = thread::spawn(move || (stream.read(&mut [0]).unwrap(), stream));
        socket.cut();
        let (bytes, stream) = waiting.join().unwrap();
        assert_eq!(bytes, 0);
        drop(stream);
        socket.cut();
    }

    #[test]
    fn an_opening_that_does_not_end_is_cut() {
        let (_listener, port) = server();
        let limit = Duration::from_millis(20);
        let outcome = open(
            &[port],
            limit,
            || connect(port)?.read_exact(&mut [0]),
            |()| Ok(()),
        );
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let set_up = |stream: &mut TcpStream| stream.read_exact(&mut [0]);
        let outcome = open(&[port], limit, || connect(port), set_up);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:9C40 0100007F:0CEA 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 20 4 30\n\
             1: 0100007F:0CEA 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30\n\
             2: 0100007F:9C42 0100007F:1538 02 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 20 4 30\n\
             half a line: 0\n";
        assert_eq!(leading_to(table, &[3306]).collect::<Vec<_>>(), [4711]);
        assert_eq!(leading_to(table, &[3306, 5432]).collect::<Vec<_>>(), [4711, 4713]);
    }
}
