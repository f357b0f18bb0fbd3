//! Response shapes. Each is made from domain types and never from rows, and shows what its microversion has.
//!
//! Most are tables ([`attribute`]), which the API's document is made from too. Keys stand in Magnum's order. A key is present with null when the attribute is unset, and absent when the
//! version or the kind of view does not have it.

pub mod attribute;
pub mod certificate;
pub mod cluster;
pub mod cluster_template;
pub mod collection;
pub mod federation;
pub mod links;
pub mod mservice;
pub mod node_group;
pub mod operation;
pub mod quota;
pub mod root;

use magnum_common::model::Timestamp;
use serde_json::Value;

/// ISO 8601 with the zone; microseconds only when there are some.
fn time(at: Option<Timestamp>) -> Value {
    let Some(at) = at else { return Value::Null };
    let format = if at.and_utc().timestamp_subsec_micros() == 0 {
        "%Y-%m-%dT%H:%M:%S+00:00"
    } else {
        "%Y-%m-%dT%H:%M:%S%.6f+00:00"
    };
    Value::String(at.format(format).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_a_zone_and_a_fraction_only_when_the_row_has_one() {
        let at = |text: &str| {
            time(Some(
                Timestamp::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").unwrap(),
            ))
        };
        assert_eq!(at("2026-01-02 03:04:05"), json!("2026-01-02T03:04:05+00:00"));
        assert_eq!(
            at("2026-01-02 03:04:05.5"),
            json!("2026-01-02T03:04:05.500000+00:00")
        );
        assert_eq!(time(None), Value::Null);
    }
}
