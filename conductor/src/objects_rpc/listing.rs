//! Lists: paging, sorting and filters.
//!
//! A marker is a whole object, the last one of the page before. The order is that of [`Page`]: rows without a value
//! come first going up, on all databases; Magnum leaves that to the database.

use magnum_common::error::{Exception, Fault};
use magnum_db::read::{Page, SortDir, SortKey};
use magnum_db::{AnyConnection, rows};
use magnum_objects::coerce::coerce;
use magnum_objects::{Field, FieldKind, Schema, VersionedObject, is_object};
use serde_json::{Map, Value};

use super::arguments::Bound;
use super::failure::Failure;

/// Reads `limit`, `marker`, `sort_key` and `sort_dir`.
pub(super) fn page(
    args: &mut Bound,
    schema: &Schema,
    column: fn(&str) -> Option<SortKey>,
) -> Result<Page, Fault> {
    Ok(Page {
        limit: limit(&args.take("limit"))?,
        after: marker(&args.take("marker"), schema)?,
        sort_key: sort_key(&args.take("sort_key"), column)?,
        sort_dir: sort_dir(&args.take("sort_dir"))?,
    })
}

/// Refuses an empty page whose marker was deleted since it was read: it is not the end of the list.
///
/// # Errors
/// The marker does not exist, or the database failed.
pub(super) fn checked<T>(conn: &mut AnyConnection, page: &Page, found: Vec<T>) -> Result<Vec<T>, Failure> {
    if found.is_empty() && page.lost_its_start(conn)? {
        return Err(Fault::invalid_parameter(
            "The marker does not exist any more; sort by id, or start the list again.",
        )
        .into());
    }
    Ok(found)
}

fn limit(value: &Value) -> Result<Option<u32>, Fault> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64(),
    };
    number
        .map(|number| Some(u32::try_from(number).unwrap_or(u32::MAX)))
        .ok_or_else(|| Fault::invalid_parameter("limit must be a whole number that is not negative"))
}

fn marker(value: &Value, schema: &Schema) -> Result<Option<i32>, Fault> {
    if value.is_null() {
        return Ok(None);
    }
    if !is_object(value) {
        return Err(Fault::new(
            Exception::AttributeError,
            format!(
                "marker must be a {}, the last one of the page before",
                schema.name
            ),
        ));
    }
    let marker = VersionedObject::decode(value)?;
    let id = marker.get("id").and_then(Value::as_i64);
    match id.and_then(|id| i32::try_from(id).ok()) {
        Some(id) if marker.name() == schema.name => Ok(Some(id)),
        _ => Err(Fault::new(
            Exception::ValueError,
            format!("marker must be a {} with its id", schema.name),
        )),
    }
}

fn sort_key(value: &Value, column: fn(&str) -> Option<SortKey>) -> Result<Option<SortKey>, Fault> {
    let key = match value {
        Value::Null => return Ok(None),
        Value::String(key) if key.is_empty() => return Ok(None),
        Value::String(key) => key.clone(),
        other => other.to_string(),
    };
    column(&key).map(Some).ok_or_else(|| {
        Fault::invalid_parameter(format!(
            "The sort_key value \"{key}\" is an invalid field for sorting"
        ))
    })
}

fn sort_dir(value: &Value) -> Result<SortDir, Fault> {
    match value.as_str() {
        None if value.is_null() => Ok(SortDir::Asc),
        Some("asc" | "asc-nullsfirst") => Ok(SortDir::Asc),
        Some("desc" | "desc-nullslast") => Ok(SortDir::Desc),
        _ => Err(Fault::new(
            Exception::ValueError,
            "Unknown sort direction, must be one of: asc, desc",
        )),
    }
}

/// The filters of a list, by name. Unknown names are ignored, as in Magnum.
pub(super) struct Filters(Map<String, Value>);

impl Filters {
    /// Reads `filters`.
    pub(super) fn take(args: &mut Bound) -> Result<Self, Fault> {
        match args.take("filters") {
            Value::Null => Ok(Self(Map::new())),
            Value::Object(filters) => Ok(Self(filters)),
            _ => Err(Fault::new(Exception::TypeError, "filters must be a map")),
        }
    }

    fn coerced(&self, name: &'static str, kind: FieldKind) -> Result<Option<Value>, Fault> {
        self.0
            .get(name)
            .map(|value| coerce(&Field::nullable(name, kind), value))
            .transpose()
    }

    /// A text that a column has to equal; the inner `None` stands for null.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<Option<String>>, Fault> {
        let value = self.coerced(name, FieldKind::Text)?;
        Ok(value.map(|value| value.as_str().map(str::to_owned)))
    }

    /// A number that a column has to equal.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<Option<i64>>, Fault> {
        let value = self.coerced(name, FieldKind::Integer)?;
        Ok(value.map(|value| value.as_i64()))
    }

    /// A truth value that a column has to equal.
    pub(super) fn flag(&self, name: &'static str) -> Result<Option<Option<bool>>, Fault> {
        let value = self.coerced(name, FieldKind::Boolean)?;
        Ok(value.map(|value| value.as_bool()))
    }

    /// A list or map, as the text that a column has to equal.
    pub(super) fn json(&self, name: &str) -> Option<Option<String>> {
        self.0.get(name).map(|value| Some(rows::json::to_text(value)))
    }

    /// Some statuses.
    pub(super) fn statuses(&self) -> Result<Option<Vec<String>>, Fault> {
        match self.0.get("status") {
            None => Ok(None),
            Some(Value::Array(texts)) => texts
                .iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .map(Some)
                .ok_or_else(Self::no_statuses),
            Some(_) => Err(Self::no_statuses()),
        }
    }

    fn no_statuses() -> Fault {
        Fault::new(Exception::ValueError, "status must be a list of statuses")
    }

    /// Refuses a filter that Magnum has and cannot apply, since its column was removed.
    pub(super) fn refuse(&self, name: &str) -> Result<(), Fault> {
        match self.0.get(name) {
            None => Ok(()),
            Some(_) => Err(Fault::invalid_parameter(format!(
                "{name} cannot be filtered by: the table has no such column"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use magnum_objects::tables;
    use serde_json::json;

    use super::super::arguments::Signature;
    use super::*;

    const LIST: Signature = Signature {
        owner: "Cluster",
        name: "list",
        required: &[],
        optional: &["limit", "marker", "sort_key", "sort_dir", "filters"],
    };

    fn read(kwargs: Value) -> Result<Page, Fault> {
        let Value::Object(kwargs) = kwargs else {
            panic!("a map");
        };
        page(
            &mut LIST.bind(Vec::new(), kwargs)?,
            &tables::CLUSTER,
            SortKey::of_cluster,
        )
    }

    fn object(class: &str, version: &str, data: Value) -> Value {
        let mut object = json!({"magnum_object.name": class, "magnum_object.namespace": "magnum",
                                "magnum_object.version": version});
        object["magnum_object.data"] = data;
        object
    }

    #[test]
    fn page_without_arguments_is_the_whole_list() {
        assert_eq!(read(json!({})).unwrap(), Page::default());
        assert_eq!(
            read(json!({"sort_key": "", "limit": null})).unwrap(),
            Page::default()
        );
    }

    #[test]
    fn a_page_starts_after_the_marker_object() {
        let page = read(
            json!({"limit": 2, "marker": object("Cluster", "1.23", json!({"id": 7})),
                               "sort_key": "name", "sort_dir": "desc"}),
        )
        .unwrap();
        assert_eq!(
            (page.limit, page.after, page.sort_dir),
            (Some(2), Some(7), SortDir::Desc)
        );
        assert_eq!(page.sort_key, SortKey::of_cluster("name"));
    }

    #[test]
    fn invalid_page_arguments_are_refused() {
        for (wrong, exception) in [
            (json!({"limit": -1}), Exception::InvalidParameterValue),
            (json!({"limit": "x"}), Exception::InvalidParameterValue),
            (json!({"sort_key": "coe"}), Exception::InvalidParameterValue),
            (json!({"sort_dir": "up"}), Exception::ValueError),
            (json!({"marker": 7}), Exception::AttributeError),
            (
                json!({"marker": object("Cluster", "1.24", json!({}))}),
                Exception::ValueError,
            ),
            (
                json!({"marker": object("Quota", "1.0", json!({"id": 7}))}),
                Exception::ValueError,
            ),
            (
                json!({"marker": object("Cluster", "1.25", json!({"id": 7}))}),
                Exception::IncompatibleObjectVersion,
            ),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err().exception, exception, "{wrong}");
        }
    }

    #[test]
    fn a_filter_can_want_null_and_statuses_are_a_list() {
        let Value::Object(filters) = json!({"name": null, "status": [], "node_count": "3"}) else {
            panic!("a map");
        };
        let filters = Filters(filters);
        assert_eq!(filters.text("name"), Ok(Some(None)));
        assert_eq!(filters.text("stack_id"), Ok(None));
        assert_eq!(filters.number("node_count"), Ok(Some(Some(3))));
        assert_eq!(filters.statuses(), Ok(Some(Vec::new())));
    }
}
