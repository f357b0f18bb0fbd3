//! Policy: our engine decides as the real oslo.policy does, policy files work as operators use them, and every route
//! asks what its rule says.

mod compare;
mod files;
mod program;
mod routes;
