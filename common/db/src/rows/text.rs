//! Column types whose text differs between databases: times and free text.

#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::io::Write as _;

use chrono::NaiveDateTime;
#[cfg(feature = "mysql")]
use chrono::Timelike as _;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Text, Timestamp};

use crate::connection::MultiBackend;

/// A row's time: naive UTC. Written in whole seconds on MySQL (the column holds no more, and servers differ in
/// how they round), and on SQLite with six digits, as SQLAlchemy does, so that texts sort.
#[derive(Debug, Clone, Copy, PartialEq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Timestamp)]
pub struct RowTime(pub NaiveDateTime);

impl RowTime {
    /// Now, as rows hold it.
    pub fn now() -> Self {
        Self(magnum_common::clock::row_now())
    }
}

impl From<NaiveDateTime> for RowTime {
    fn from(time: NaiveDateTime) -> Self {
        Self(time)
    }
}

impl From<RowTime> for NaiveDateTime {
    fn from(time: RowTime) -> Self {
        time.0
    }
}

impl FromSql<Timestamp, MultiBackend> for RowTime {
    fn from_sql(
        bytes: <MultiBackend as diesel::backend::Backend>::RawValue<'_>,
    ) -> deserialize::Result<Self> {
        bytes.from_sql::<NaiveDateTime, Timestamp>().map(Self)
    }
}

impl ToSql<Timestamp, MultiBackend> for RowTime {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, MultiBackend>) -> serialize::Result {
        out.set_value((Timestamp, self));
        Ok(IsNull::No)
    }
}

#[cfg(feature = "postgres")]
impl ToSql<Timestamp, diesel::pg::Pg> for RowTime {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::pg::Pg>) -> serialize::Result {
        ToSql::<Timestamp, diesel::pg::Pg>::to_sql(&self.0, &mut out.reborrow())
    }
}

#[cfg(feature = "mysql")]
impl ToSql<Timestamp, diesel::mysql::Mysql> for RowTime {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::mysql::Mysql>) -> serialize::Result {
        let whole = self.0.with_nanosecond(0).unwrap_or(self.0);
        ToSql::<Timestamp, diesel::mysql::Mysql>::to_sql(&whole, &mut out.reborrow())
    }
}

#[cfg(feature = "sqlite")]
impl ToSql<Timestamp, diesel::sqlite::Sqlite> for RowTime {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::sqlite::Sqlite>) -> serialize::Result {
        out.set_value(self.0.format("%F %T%.6f").to_string());
        Ok(IsNull::No)
    }
}

/// Text that people or drivers wrote, such as `status_reason`: always storable.
///
/// A driver's message must not make the very write fail that records the failure. So what a column cannot hold
/// is replaced: on MySQL, characters beyond the basic plane (Magnum's tables are `utf8mb3` unless the operator
/// chose otherwise) and everything after 64 KiB; on PostgreSQL, the NUL character.
#[derive(Debug, Clone, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Text)]
pub struct FreeText(pub String);

/// MySQL's `text` holds this many bytes.
#[cfg(feature = "mysql")]
const MYSQL_TEXT_BYTES: usize = 65_535;

#[cfg(any(feature = "mysql", test))]
impl FreeText {
    fn cut(text: &str, most: usize) -> &str {
        &text[..text.floor_char_boundary(most)]
    }
}

impl From<String> for FreeText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for FreeText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromSql<Text, MultiBackend> for FreeText {
    fn from_sql(
        bytes: <MultiBackend as diesel::backend::Backend>::RawValue<'_>,
    ) -> deserialize::Result<Self> {
        bytes.from_sql::<String, Text>().map(Self)
    }
}

impl ToSql<Text, MultiBackend> for FreeText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, MultiBackend>) -> serialize::Result {
        out.set_value((Text, self));
        Ok(IsNull::No)
    }
}

#[cfg(feature = "postgres")]
impl ToSql<Text, diesel::pg::Pg> for FreeText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::pg::Pg>) -> serialize::Result {
        out.write_all(self.0.replace('\0', "\u{fffd}").as_bytes())?;
        Ok(IsNull::No)
    }
}

#[cfg(feature = "mysql")]
impl ToSql<Text, diesel::mysql::Mysql> for FreeText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::mysql::Mysql>) -> serialize::Result {
        let basic: String = self
            .0
            .chars()
            .map(|c| if c > '\u{ffff}' { '\u{fffd}' } else { c })
            .collect();
        out.write_all(Self::cut(&basic, MYSQL_TEXT_BYTES).as_bytes())?;
        Ok(IsNull::No)
    }
}

#[cfg(feature = "sqlite")]
impl ToSql<Text, diesel::sqlite::Sqlite> for FreeText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, diesel::sqlite::Sqlite>) -> serialize::Result {
        out.set_value(self.0.as_str());
        Ok(IsNull::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(FreeText::cut("aż", 2), "a");
        assert_eq!(FreeText::cut("aż", 3), "aż");
        assert_eq!(FreeText::cut("aż", 99), "aż");
    }
}
