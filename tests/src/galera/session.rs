//! Sessions of the administrator on a node, which may be paused and then says nothing.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::Text;
use tokio::time::timeout;

use crate::mariadb::{PASSWORD, USER};

const ANSWER: Duration = Duration::from_millis(1500);

/// Runs statements as administrator on a node, or what a balancer leads to, outside of any database.
pub async fn execute(address: SocketAddr, sql: &str) -> Result<()> {
    let sql = sql.to_owned();
    let mut connection = connect(address).await?;
    tokio::task::spawn_blocking(move || connection.batch_execute(&sql).with_context(|| sql.clone())).await?
}

/// Asks for one text, which the query calls `value`.
pub(super) async fn ask(address: SocketAddr, query: String) -> Result<String> {
    #[derive(QueryableByName)]
    struct Answer {
        #[diesel(sql_type = Text)]
        value: String,
    }
    let mut connection = connect(address).await?;
    let asking =
        tokio::task::spawn_blocking(move || diesel::sql_query(query).get_result::<Answer>(&mut connection));
    Ok(timeout(ANSWER, asking).await.context("no answer")???.value)
}

async fn connect(address: SocketAddr) -> Result<MysqlConnection> {
    let url = format!("mysql://{USER}:{PASSWORD}@{address}/mysql");
    let connecting = tokio::task::spawn_blocking(move || MysqlConnection::establish(&url));
    // A node that is paused takes the connection and says nothing, until it goes on or is killed.
    Ok(timeout(ANSWER, connecting).await.context("no answer")???)
}
