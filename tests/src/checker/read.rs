//! Reads a history: the driver's record, and the rows by SQL of our own.

use std::collections::BTreeMap;

use anyhow::Result;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use magnum_db::{AnyConnection, Backend, Database};

use super::history::{Call, ClusterRow, End, GroupRow, Operation, Overlap};
use crate::driver_record::{CallLine, DriverRecord};

#[derive(QueryableByName)]
struct OperationLine {
    #[diesel(sql_type = Text)]
    uuid: String,
    #[diesel(sql_type = Nullable<Text>)]
    message: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    request: Option<String>,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    cluster: String,
    #[diesel(sql_type = Nullable<Text>)]
    tenant: Option<String>,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
    #[diesel(sql_type = BigInt)]
    attempts: i64,
    #[diesel(sql_type = BigInt)]
    created: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    ended: Option<i64>,
}

#[derive(QueryableByName)]
struct ClusterLine {
    #[diesel(sql_type = Text)]
    uuid: String,
    #[diesel(sql_type = Nullable<Text>)]
    status: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
}

#[derive(QueryableByName)]
struct GroupLine {
    #[diesel(sql_type = Text)]
    cluster: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Text>)]
    status: Option<String>,
    #[diesel(sql_type = BigInt)]
    nodes: i64,
}

/// The journal.
pub async fn operations(database: &Database) -> Result<Vec<Operation>> {
    let lines: Vec<OperationLine> = database
        .run(|conn| {
            let query = format!(
                "SELECT uuid, message_id AS message, request_id AS request, kind, cluster_uuid AS cluster, project_id AS \
                 tenant, state, reason, {} AS attempts, created_ms AS created, ended_ms AS ended FROM \
                 conductor_operation ORDER BY id",
                integer(conn, "attempts")
            );
            Ok(diesel::sql_query(query).load(conn)?)
        })
        .await?;
    let operations = lines.into_iter().map(|line| Operation {
        id: line.uuid,
        message: line.message,
        request: line.request,
        kind: line.kind,
        cluster: line.cluster,
        tenant: line.tenant.unwrap_or_default(),
        state: line.state,
        reason: line.reason,
        attempts: line.attempts,
        created: line.created,
        ended: line.ended,
    });
    Ok(operations.collect())
}

/// Clusters with their node groups.
pub async fn clusters(database: &Database) -> Result<Vec<ClusterRow>> {
    let (clusters, groups): (Vec<ClusterLine>, Vec<GroupLine>) = database
        .run(|conn| {
            let clusters = "SELECT uuid, status, status_reason AS reason FROM cluster ORDER BY id";
            let groups = format!(
                "SELECT cluster_id AS cluster, name, status, {} AS nodes FROM nodegroup ORDER BY id",
                integer(conn, "node_count")
            );
            Ok((
                diesel::sql_query(clusters).load(conn)?,
                diesel::sql_query(groups).load(conn)?,
            ))
        })
        .await?;
    let mut of_cluster: BTreeMap<String, Vec<GroupRow>> = BTreeMap::new();
    for group in groups {
        of_cluster.entry(group.cluster).or_default().push(GroupRow {
            name: group.name,
            status: group.status.unwrap_or_default(),
            nodes: group.nodes,
        });
    }
    let rows = clusters.into_iter().map(|line| ClusterRow {
        groups: of_cluster.remove(&line.uuid).unwrap_or_default(),
        uuid: line.uuid,
        status: line.status.unwrap_or_default(),
        reason: line.reason,
    });
    Ok(rows.collect())
}

/// A column as a number of one size on every database.
fn integer(conn: &AnyConnection, column: &str) -> String {
    match conn.backend() {
        Backend::Mysql => format!("CAST({column} AS SIGNED)"),
        Backend::Sqlite | Backend::Postgres => format!("CAST({column} AS BIGINT)"),
    }
}

/// The calls that a driver has written down, and those that found another at work.
pub fn calls(record: &DriverRecord) -> Result<(Vec<Call>, Vec<Overlap>)> {
    let (mut calls, mut overlaps): (Vec<Call>, Vec<Overlap>) = (Vec::new(), Vec::new());
    // Process ids come again in a long run: the last that began is meant.
    let mut at_work: BTreeMap<(u32, String, String), usize> = BTreeMap::new();
    for line in record.lines()? {
        let key = (line.pid, line.operation.clone(), line.call.clone());
        match line.event.as_str() {
            "begin" => {
                at_work.insert(key, calls.len());
                calls.push(begun(line));
            }
            "end" => {
                if let Some(call) = at_work.remove(&key).and_then(|index| calls.get_mut(index)) {
                    call.end = Some(End {
                        at: line.at,
                        outcome: line.outcome.unwrap_or_default(),
                        says: line.says,
                    });
                }
            }
            _ => overlaps.push(Overlap {
                cluster: line.cluster,
                operation: line.operation,
                pid: line.pid,
            }),
        }
    }
    Ok((calls, overlaps))
}

fn begun(line: CallLine) -> Call {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of this century")]
    let began_wall = (line.wall * 1000.0) as i64;
    Call {
        call: line.call,
        cluster: line.cluster,
        operation: line.operation,
        attempt: line.attempt,
        conductor: line.conductor.unwrap_or_default(),
        pid: line.pid,
        began: line.at,
        began_wall,
        end: None,
    }
}
