//! Opening one connection: some host of the list, TLS, login, names.

use std::fmt::Write as _;
use std::io::ErrorKind as IoKind;
use std::sync::Arc;
use std::time::Duration;

use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::tcp::{AsyncTcpStream, RustlsConnector};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism};
use lapin::{Connection, ConnectionProperties, ErrorKind};
use tokio::time::timeout;
use uuid::Uuid;

use super::hosts::HostOrder;
use super::{stream_runtime, tls};
use crate::error::TransportError;
use crate::options::{LoginMethod, OptionsError, RabbitOptions};
use crate::url::{BrokerHost, RabbitUrl, UrlError};
use magnum_config::FailoverStrategy;
use magnum_telemetry::field;

/// Longest wait for one host, handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest frame we take and send. lapin keeps 32 of them per direction and connection in memory, so the
/// broker's own limit of 128 KiB would cost 8 MiB per connection; a larger message takes more frames, which costs
/// little. Requests are some 7 KiB.
const FRAME_MAX: u32 = 32 * 1024;

/// Names on this wire are at most this long.
const MAX_SHORT_STRING: usize = 255;

/// Opens connections to one cluster of brokers.
pub struct Opener {
    url: RabbitUrl,
    name: String,
    login: SASLMechanism,
    heartbeat: u16,
    tls: Option<RustlsConnector>,
    failover: FailoverStrategy,
}

/// Why no host could be used: one line per host, without credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

impl Opener {
    /// By the options; reads the TLS files, and makes ready what closes the connections.
    ///
    /// # Errors
    /// The name of the virtual host is too long, a TLS file cannot be read, or the system gives no thread.
    pub fn new(url: RabbitUrl, options: &RabbitOptions, name: &str) -> Result<Self, TransportError> {
        if url.virtual_host.len() > MAX_SHORT_STRING {
            return Err(OptionsError::from(UrlError::LongVirtualHost).into());
        }
        stream_runtime::make()?;
        Ok(Self {
            url,
            name: name.to_owned(),
            login: match options.rabbit_login_method {
                LoginMethod::Plain => SASLMechanism::Plain,
                LoginMethod::AmqPlain => SASLMechanism::AMQPlain,
                LoginMethod::External => SASLMechanism::External,
            },
            failover: options.kombu_failover_strategy,
            heartbeat: u16::try_from(options.heartbeat_timeout_threshold.as_secs()).unwrap_or(u16::MAX),
            tls: tls::connector(options)?.map(|config| RustlsConnector::from(Arc::new(config))),
        })
    }

    /// A connection of its own, for `purpose` as the broker shows it. Tries every host once.
    ///
    /// # Errors
    /// No host lets us in.
    pub async fn open_once(&self, purpose: &str) -> Result<Connection, OpenError> {
        self.open(purpose, None, &mut self.host_order()).await
    }

    /// An order of the hosts, for one connection and those that replace it.
    pub(super) fn host_order(&self) -> HostOrder {
        HostOrder::new(self.url.hosts.len(), self.failover)
    }

    /// Tries every host once and takes the first that answers. The heartbeat is as configured, and no longer than that.
    pub(super) async fn open(
        &self,
        purpose: &str,
        longest_heartbeat: Option<Duration>,
        order: &mut HostOrder,
    ) -> Result<Connection, OpenError> {
        let heartbeat = heartbeat(self.heartbeat, longest_heartbeat);
        let mut errors = String::new();
        for index in order.round() {
            let Some(host) = self.url.hosts.get(index) else {
                continue;
            };
            // Before the broker answers: a caller that waits for this may time out earlier than we do.
            order.trying(index);
            match timeout(CONNECT_TIMEOUT, self.open_host(host, purpose, heartbeat)).await {
                Ok(Ok(connection)) => {
                    tracing::debug!({ field::BROKER } = %host, purpose, "connected to the broker");
                    return Ok(connection);
                }
                Ok(Err(error)) => push_line(&mut errors, host, &self.explain(&error)),
                Err(_) => push_line(&mut errors, host, "no answer within 10 s"),
            }
        }
        Err(OpenError(errors))
    }

    /// The same as [`explain`]. Besides, a peer that hangs up or talks gibberish before the login may simply expect
    /// the other kind of connection; neither side of a broker's port says so in words. Nor need a broker's refusal
    /// of our certificate arrive: since TLS 1.3 it comes after the handshake, and the reset behind it may overtake it.
    fn explain(&self, error: &lapin::Error) -> String {
        let is_hung_up = match error.kind() {
            ErrorKind::IOError(error) => matches!(
                error.kind(),
                IoKind::ConnectionReset
                    | IoKind::ConnectionAborted
                    | IoKind::BrokenPipe
                    | IoKind::UnexpectedEof
            ),
            ErrorKind::ParsingError(_)
            | ErrorKind::InvalidProtocolVersion(_)
            | ErrorKind::InvalidConnectionState(_) => true,
            _ => false,
        };
        let said = explain(error);
        match (is_hung_up, &self.tls) {
            (false, _) => said,
            (true, Some(_)) => {
                format!(
                    "{said} ([oslo_messaging_rabbit] ssl is on: does that port of transport_url speak TLS, and does \
                     the broker ask for another certificate than that of ssl_cert_file?)"
                )
            }
            (true, None) => format!(
                "{said} ([oslo_messaging_rabbit] ssl is off: does that port of transport_url want TLS?)"
            ),
        }
    }

    async fn open_host(&self, host: &BrokerHost, purpose: &str, heartbeat: u16) -> lapin::Result<Connection> {
        let uri = AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: host.user.clone(),
                    password: host.password.expose().to_owned(),
                },
                host: host.host.clone(),
                port: host.port,
            },
            vhost: self.url.virtual_host.clone(),
            query: AMQPQueryString {
                heartbeat: Some(heartbeat),
                frame_max: Some(FRAME_MAX),
                auth_mechanism: Some(self.login),
                ..AMQPQueryString::default()
            },
        };
        let name = format!(
            "{}:{}:{}:{}",
            self.name,
            std::process::id(),
            purpose,
            Uuid::new_v4()
        );
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let tls = self.tls.clone();
        Connection::connector(
            uri,
            lapin::runtime::default_runtime()?,
            async move |uri, runtime| {
                let address = (uri.authority.host.clone(), uri.authority.port);
                let connect = async {
                    let address = runtime.to_socket_addrs(address);
                    let stream = AsyncTcpStream::connect(&runtime, address).await?;
                    match &tls {
                        Some(connector) => stream.into_rustls(connector, &uri.authority.host).await,
                        None => Ok(stream),
                    }
                };
                // Bounded here as well: this runs on the connection's own thread, which outlives our patience.
                match timeout(CONNECT_TIMEOUT, connect).await {
                    Ok(stream) => Ok(stream?),
                    Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
                }
            },
            properties,
        )
        .await
    }
}

/// The heartbeat to ask for, in seconds: what is configured, and no more than `longest`. 0, which is none, stays.
fn heartbeat(configured: u16, longest: Option<Duration>) -> u16 {
    match longest {
        Some(longest) => configured.min(u16::try_from(longest.as_secs()).unwrap_or(u16::MAX).max(1)),
        None => configured,
    }
}

fn push_line(errors: &mut String, host: &BrokerHost, reason: &str) {
    if !errors.is_empty() {
        errors.push_str("; ");
    }
    // Writing to a string cannot fail.
    let _infallible = write!(errors, "{host}: {reason}");
}

/// The broker's word, with what to do about it where that is known.
pub fn explain(error: &lapin::Error) -> String {
    let hint = match error.kind() {
        ErrorKind::IOError(error) => handshake(error).map(tls::hint).unwrap_or_default(),
        ErrorKind::ProtocolError(amqp) => match amqp.kind() {
            AMQPErrorKind::Hard(AMQPHardError::INTERNALERROR) => {
                "RabbitMQ 4.3 and later refuse queues that are not durable; set [oslo_messaging_rabbit] \
                 rabbit_quorum_queue = true and rabbit_transient_quorum_queue = true on all peers"
            }
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => {
                "check user, password and permissions of transport_url"
            }
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) => "check the virtual host of transport_url",
            _ => "",
        },
        _ => "",
    };
    if hint.is_empty() {
        error.to_string()
    } else {
        format!("{error} ({hint})")
    }
}

/// The failed TLS handshake that an I/O error stands for.
fn handshake(error: &std::io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// A name as AMQP carries it. Names from the wire (a caller's reply queue) can be too long.
///
/// # Errors
/// It has more than 255 bytes.
pub fn short(text: &str) -> Result<lapin::types::ShortString, String> {
    lapin::types::ShortString::try_new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_never_longer_than_configured_and_never_turned_on_or_off_by_a_limit() {
        let limit = |seconds| Some(Duration::from_secs_f64(seconds));
        assert_eq!(heartbeat(60, None), 60);
        assert_eq!(heartbeat(60, limit(30.0)), 30);
        assert_eq!(heartbeat(10, limit(30.0)), 10);
        assert_eq!(heartbeat(60, limit(0.3)), 1);
        assert_eq!(heartbeat(0, limit(30.0)), 0);
    }
}
