//! The API's side of the RPC: casts and calls.
//!
//! | file | topic |
//! |---|---|
//! | `client` | asking: cast, fanout, call |
//! | `call` | replies, and the calls that wait for them |
//!
//! Bytes, names and transports are those of `magnum-rpc`, which says what they guarantee.

mod call;
mod client;

pub use client::{CallError, CallOptions, RpcClient};
