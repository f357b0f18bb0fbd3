//! What stands between a client and the API's routes, on running servers.
//!
//! | module | proves |
//! |---|---|
//! | [`oslo`] | proxies' headers, CORS and health are what the real oslo.middleware makes of the same requests |
//! | [`sockets`] | limits of size, time, number and rate, against clients that do not behave |
//! | [`tells`] | ids, the access log and the metrics say what they should, and no secret |
//! | [`health`] | health is told within a bounded time while the database hangs |
//! | [`tls`] | HTTPS, wrong files, and a certificate that is replaced while the API runs |
//! | [`reload`] | what SIGHUP takes over; how a service goes that is told to stop |
//! | [`restart`] | nobody is refused while the API restarts behind a socket, or behind HAProxy |

mod health;
mod oslo;
mod reload;
mod restart;
mod sockets;
mod tells;
mod tls;
