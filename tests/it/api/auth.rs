//! Tokens, validated by the real Keystone.

mod cached;
mod options;
mod outages;
mod service_tokens;
mod shared;
mod tokens;
mod world;
