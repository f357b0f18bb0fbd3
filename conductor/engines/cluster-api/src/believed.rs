//! The certificates that a cluster believes when it talks to the cloud.
//!
//! Cluster API's provider for OpenStack has none of its own, and sees none of its host's: it gets all that it is to believe with a
//! cluster's credential.

use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use magnum_driver_api::{DriverError, Reason};

/// Those of the file of `[drivers] openstack_ca_file`, or else those that this host believes.
///
/// # Errors
/// The file cannot be read, or this host has none.
pub async fn believed(file: Option<PathBuf>) -> Result<String, DriverError> {
    let read = tokio::task::spawn_blocking(move || match file {
        Some(file) => std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display())),
        None => of_this_host(),
    });
    let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
    read.map_err(|why| {
        DriverError::NotHere(Reason::internal(
            "this conductor has no certificates for clusters to believe",
            why,
        ))
    })
}

fn of_this_host() -> Result<String, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, ToString::to_string);
        return Err(format!("this host has no certificates of authorities {why}"));
    }
    let mut all = String::new();
    for certificate in found.certs {
        let text = STANDARD.encode(&certificate);
        all.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in text.as_bytes().chunks(64) {
            // Base 64 is ASCII.
            let _ = writeln!(all, "{}", String::from_utf8_lossy(line));
        }
        all.push_str("-----END CERTIFICATE-----\n");
    }
    Ok(all)
}
