//! The API on running servers: what is asked, by whom, and what is answered.
//!
//! | module | proves |
//! |---|---|
//! | `auth` | who is let in, how often Keystone is asked, what happens without it |
//! | `edge` | proxies, CORS, health, TLS, limits, restarts without a lost request |
//! | `lookups` | who can name what, how often services are asked, what happens without one |
//! | `policy` | every decision is that of oslo.policy; every route answers every role as a table says |
//! | `properties` | whatever the API's document allows or not is answered as it says |
//! | `rest` | every recorded request is answered as Magnum answers it, or differs as the table of differences says |

mod auth;
mod edge;
mod lookups;
mod policy;
mod properties;
mod rest;
