//! The rows that both begin with, and how they come back.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::Backend;
use crate::deployment::Deployment;
use crate::python_magnum::{ANNA, NORTH, UBUNTU};

/// The other project, and its member, in the stand-in Keystone.
const SOUTH: &str = "22222222222222222222222222222222";
const BERT: &str = "62657274000000000000000000000000";

/// The tables of Magnum that change.
const CHANGED: [&str; 6] = [
    "cluster_template",
    "quotas",
    "cluster",
    "nodegroup",
    "federation",
    "x509keypair",
];

/// The rows of the recordings, with the people and images of the stand-in cloud.
fn sample() -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/db/sample-rows.mysql.sql");
    let mut rows = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    for (recorded, here) in [
        ("'11111111111111111111111111111111'", ANNA),
        ("'44444444444444444444444444444444'", BERT),
        ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", NORTH),
        ("'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'", SOUTH),
        ("'00000001-1111-4111-8111-111111111111'", UBUNTU),
        ("'fake_alpha'", "scripted"),
        ("'fake_zeta'", "scripted"),
    ] {
        rows = rows.replace(recorded, &format!("'{here}'"));
    }
    Ok(rows)
}

/// One with these rows.
pub async fn deployment() -> Result<Deployment> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.database.execute(&sample()?).await?;
    Ok(deployment)
}

/// Has no cluster in progress: nothing is going on there, and conductors would look.
pub async fn end_what_is_in_progress(deployment: &Deployment) -> Result<()> {
    let sql: String = ["cluster", "nodegroup"]
        .map(|table| {
            format!(
                "UPDATE {table} SET status = 'CREATE_COMPLETE' WHERE status = 'CREATE_IN_PROGRESS'; \
                 UPDATE {table} SET status = 'DELETE_FAILED' WHERE status = 'DELETE_IN_PROGRESS';"
            )
        })
        .concat();
    deployment.database.execute(&sql).await
}

/// Keeps the rows as they are now.
pub async fn keep(deployment: &Deployment) -> Result<()> {
    let sql: String = CHANGED
        .iter()
        .map(|table| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table};"))
        .collect();
    deployment.database.execute(&sql).await
}

/// Keeps the certificates that clusters have now, too.
pub async fn keep_certificates(deployment: &Deployment) -> Result<()> {
    let references: String = [
        "ca_cert_ref",
        "magnum_cert_ref",
        "etcd_ca_cert_ref",
        "front_proxy_ca_cert_ref",
    ]
    .map(|name| format!("kept_cluster.{name} = cluster.{name}"))
    .join(", ");
    let sql = format!(
        "UPDATE kept_cluster JOIN cluster ON cluster.id = kept_cluster.id SET {references}; \
         DELETE FROM kept_x509keypair; INSERT INTO kept_x509keypair SELECT * FROM x509keypair;"
    );
    deployment.database.execute(&sql).await
}

/// What brings them back.
pub fn back() -> String {
    let tables: String = CHANGED
        .iter()
        .map(|table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};"))
        .collect();
    format!("SET FOREIGN_KEY_CHECKS = 0; {tables}")
}
