//! `magnum-api`: a thin HTTP shim.
//!
//! It validates and authorises requests, reads the database, writes cluster templates and quotas, and hands
//! everything that a driver must do to the conductors as a confirmed message. It never calls a driver.
//!
//! | module | topic |
//! |---|---|
//! | [`cli`], [`app`], [`state`] | the program; start, reload and stop; what handlers can reach |
//! | [`connections`], [`edge`], [`router`], [`routes`], [`request`], [`microversion`], [`auth`] | from a socket to a handler |
//! | [`v1`] | the handlers, one file per resource |
//! | [`validation`], [`policy`] | what may be asked, and by whom |
//! | [`store`] | reads and writes of the database |
//! | [`conductor_api`] | what is asked of a conductor |
//! | [`cloud`], [`image_catalog`], [`driver_catalog`] | what other services know; drivers to choose from |
//! | [`views`], [`faults`] | from a result to a response body |
//! | [`openapi`], [`description`] | the shapes of requests and answers; the API's own description, from the tables that read and render |
//! | [`health`], [`admin`], [`metric_definitions`] | for balancers and operators |

pub mod admin;
pub mod app;
pub mod auth;
pub mod cli;
pub mod cloud;
pub mod conductor_api;
pub mod connections;
pub mod description;
pub mod driver_catalog;
pub mod edge;
pub mod faults;
pub mod health;
pub mod image_catalog;
pub mod metric_definitions;
pub mod microversion;
pub mod openapi;
pub mod policy;
pub mod request;
pub mod router;
pub mod routes;
pub mod state;
pub mod store;
pub mod v1;
pub mod validation;
pub mod views;

pub use app::{Api, StartError};
