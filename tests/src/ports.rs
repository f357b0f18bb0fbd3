//! Free ports for servers that cannot be told to pick one themselves.
//!
//! Ports come from below the range the kernel hands out to outgoing connections, so that a client of one
//! test cannot take the port of another test's server between the probe and the start. Two test processes
//! can still collide; starting a server therefore is retried with another port.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use rand::RngExt as _;

static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port on 127.0.0.1 that nobody listens on and that this process has not handed out before.
pub fn free_port() -> Result<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = taken.get_or_insert_default();
    for _ in 0..1000 {
        let port = rand::rng().random_range(15_000..32_000);
        if !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            taken.insert(port);
            return Ok(port);
        }
    }
    bail!("no free port found between 15000 and 32000 on 127.0.0.1")
}
