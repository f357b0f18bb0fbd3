//! Looking at a database from outside the product's own types: what tables it has, what text is in them.

use crate::databases::TestDatabase;
use anyhow::Result;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use magnum_db::{AnyConnection, Backend, Database, DatabaseUrl, DbError, PoolOptions};

/// Magnum's tables.
pub const MAGNUM_TABLES: [&str; 8] = [
    "alembic_version",
    "cluster",
    "cluster_template",
    "federation",
    "magnum_service",
    "nodegroup",
    "quotas",
    "x509keypair",
];

/// A pool on a test's database.
pub async fn open(database: &TestDatabase) -> Result<Database> {
    Ok(Database::open(DatabaseUrl::parse(&database.url())?, PoolOptions::default()).await?)
}

/// A pool on a test's database, migrated.
pub async fn migrated(database: &TestDatabase) -> Result<Database> {
    let db = open(database).await?;
    db.run(|conn| magnum_db::migrate::upgrade_on(conn).map(drop))
        .await?;
    Ok(db)
}

/// Runs a script.
pub async fn execute(db: &Database, script: impl Into<String>) -> Result<(), DbError> {
    let script = script.into();
    db.run(move |conn| Ok(conn.batch_execute(&script)?)).await
}

/// A recorded file of `tests/fixtures/db`.
#[expect(
    clippy::panic,
    reason = "a missing recording is a mistake in the checkout, which a test tells by its path"
)]
pub fn fixture(backend: crate::Backend, what: &str) -> String {
    let path = format!(
        "{}/fixtures/db/{what}.{}.sql",
        env!("CARGO_MANIFEST_DIR"),
        backend.name()
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// The lines of a query whose only column is called `line`.
pub fn lines(conn: &mut AnyConnection, query: &str) -> Result<Vec<String>, DbError> {
    let rows: Vec<Line> = diesel::sql_query(query).load(conn)?;
    Ok(rows.into_iter().map(|row| row.line).collect())
}

/// Column names of a table, sorted.
pub fn columns(conn: &mut AnyConnection, table: &str) -> Result<Vec<String>, DbError> {
    let query = match conn.backend() {
        Backend::Sqlite => format!("SELECT name AS line FROM pragma_table_info('{table}') ORDER BY 1"),
        Backend::Mysql => format!(
            "SELECT column_name AS line FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{table}' ORDER BY 1"
        ),
        Backend::Postgres => format!(
            "SELECT CAST(column_name AS TEXT) AS line FROM information_schema.columns \
             WHERE table_schema = 'public' AND table_name = '{table}' ORDER BY 1"
        ),
    };
    let mut names = lines(conn, &query)?;
    names.sort();
    Ok(names)
}

/// Everything that defines some tables, in the database's own words, without the table's character set (it is
/// the database's) and without counters.
pub fn definition(conn: &mut AnyConnection, tables: &[&str]) -> Result<Vec<String>, DbError> {
    let mut definition = Vec::new();
    for table in tables {
        match conn.backend() {
            Backend::Sqlite => definition.extend(
                lines(
                    conn,
                    &format!(
                        "SELECT COALESCE(sql, name) AS line FROM sqlite_master WHERE tbl_name = '{table}' ORDER BY name"
                    ),
                )?
                .iter()
                .map(|sql| sql.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(" )", ")")),
            ),
            Backend::Mysql => definition.push(show_create(conn, table)?),
            Backend::Postgres => definition.extend(postgres_definition(conn, table)?),
        }
    }
    if conn.backend() == Backend::Postgres {
        definition.extend(lines(
            conn,
            "SELECT CONCAT(t.typname, ' ', e.enumlabel) AS line FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid \
             ORDER BY t.typname, e.enumsortorder",
        )?);
    }
    Ok(definition)
}

fn show_create(conn: &mut AnyConnection, table: &str) -> Result<String, DbError> {
    #[derive(QueryableByName)]
    struct Shown {
        #[diesel(sql_type = Text, column_name = "Create Table")]
        sql: String,
    }
    let shown: Shown = diesel::sql_query(format!("SHOW CREATE TABLE `{table}`")).get_result(conn)?;
    let (columns, options) = shown.sql.rsplit_once(')').unwrap_or((&shown.sql, ""));
    let engine = options
        .split_whitespace()
        .find(|word| word.starts_with("ENGINE="))
        .unwrap_or_default();
    Ok(format!("{columns}) {engine}"))
}

fn postgres_definition(conn: &mut AnyConnection, table: &str) -> Result<Vec<String>, DbError> {
    let mut all = lines(
        conn,
        &format!(
            "SELECT CONCAT('{table} ', ordinal_position, ' ', column_name, ' ', data_type, ' ', \
             character_maximum_length, ' ', is_nullable, ' ', column_default) AS line \
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}' \
             ORDER BY ordinal_position"
        ),
    )?;
    all.extend(lines(
        conn,
        &format!(
            "SELECT CONCAT('{table} ', conname, ' ', pg_get_constraintdef(oid)) AS line FROM pg_constraint \
             WHERE conrelid = 'public.{table}'::regclass ORDER BY conname"
        ),
    )?);
    all.extend(lines(
        conn,
        &format!(
            "SELECT CONCAT('{table} ', indexname, ' ', indexdef) AS line FROM pg_indexes \
             WHERE schemaname = 'public' AND tablename = '{table}' ORDER BY indexname"
        ),
    )?);
    all.extend(lines(
        conn,
        &format!(
            "SELECT CONCAT('{table} owns ', s.relname) AS line FROM pg_depend d JOIN pg_class s ON s.oid = d.objid \
             WHERE d.refobjid = 'public.{table}'::regclass AND s.relkind = 'S' ORDER BY 1"
        ),
    )?);
    Ok(all)
}

/// Every row of a table as raw text, columns by name, the number left out.
pub fn raw_rows(conn: &mut AnyConnection, table: &str) -> Result<Vec<String>, DbError> {
    let parts: Vec<String> = columns(conn, table)?
        .into_iter()
        .filter(|column| column != "id")
        .map(|column| match conn.backend() {
            Backend::Sqlite => format!("'{column}=' || quote(\"{column}\")"),
            Backend::Mysql => format!("'{column}=', COALESCE(CAST(`{column}` AS CHAR), 'NULL')"),
            Backend::Postgres => format!("'{column}=' || COALESCE(CAST(\"{column}\" AS TEXT), 'NULL')"),
        })
        .collect();
    let whole = match conn.backend() {
        Backend::Sqlite | Backend::Postgres => parts.join(" || ' ' || "),
        Backend::Mysql => format!("CONCAT({})", parts.join(", ' ', ")),
    };
    let order = if table == "alembic_version" { "1" } else { "id" };
    lines(
        conn,
        &format!("SELECT {whole} AS line FROM {table} ORDER BY {order}"),
    )
}
