//! The conductor's side of the RPC: requests in, answers out, and what can be neither.
//!
//! | file | topic |
//! |---|---|
//! | `server` | consumes, decodes, hands out requests; answers |
//! | `delivery` | a request and its end: acknowledged, returned, or set aside |
//! | `monitor` | signs of life for callers that asked for them |
//! | `dead_letters` | what was set aside: what may be shown of it, and the queue that holds it |
//! | `inspection` | what the broker has of our queues, before a service is started |
//!
//! Bytes, names and transports are those of `magnum-rpc`, which says what they guarantee.

mod dead_letters;
mod delivery;
mod inspection;
mod monitor;
mod server;

pub use dead_letters::{DeadLetter, DeadLetterError, DeadLetters, Lent, Subject};
pub use delivery::Delivery;
pub use inspection::{QueueInspection, inspect};
pub use monitor::{CallMonitor, alive};
pub use server::{Incoming, RpcServer, reply};
