//! The arguments of a call of a driver's own API, as they come from the wire.

use magnum_common::error::{Exception, Fault};
use magnum_drivers::ApiQuestion;
use magnum_drivers::api_exchange::{LARGEST_BODY, LONGEST_QUERY, METHOD, MOST_ARGUMENTS};
use serde_json::{Map, Value};

/// The arguments, within their bounds.
///
/// # Errors
/// Names the argument that is missing, unknown, of another type, or beyond its bound.
pub(super) fn read(args: Map<String, Value>) -> Result<ApiQuestion, Fault> {
    let question: ApiQuestion = serde_json::from_value(Value::Object(args))
        .map_err(|error| Fault::new(Exception::TypeError, format!("{METHOD}() {error}")))?;
    let wrong = |text: String| Err(Fault::invalid_parameter(format!("{METHOD}(): {text}")));
    let query = &question.query;
    let query_bytes: usize = query.iter().map(|(name, value)| name.len() + value.len()).sum();
    if query.len() > MOST_ARGUMENTS || query_bytes > LONGEST_QUERY {
        return wrong(format!(
            "'query' has at most {MOST_ARGUMENTS} arguments and {LONGEST_QUERY} bytes"
        ));
    }
    if !matches!(question.body, Value::Null | Value::Object(_)) {
        return wrong("'body' must be an object or null".to_owned());
    }
    if question.body.to_string().len() > LARGEST_BODY {
        return wrong(format!("'body' has at most {LARGEST_BODY} bytes"));
    }
    Ok(question)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(change: impl FnOnce(&mut Value)) -> Map<String, Value> {
        let mut args = json!({
            "uuid": "u-1", "path": "disk/usage", "method": "GET", "policy": "cluster:get", "query": [["unit", "MiB"]], "body": null,
            "timeout_ms": 1000,
        });
        change(&mut args);
        args.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn arguments_are_read_and_wrong_ones_are_refused_by_name() {
        let question = read(arguments(|_| {})).unwrap();
        assert_eq!(question.query, [("unit".to_owned(), "MiB".to_owned())]);
        let message = |change: fn(&mut Value)| read(arguments(change)).unwrap_err().message;
        assert!(message(|args| args["method"] = json!("HEAD")).contains("`HEAD`"));
        assert!(message(|args| args["force"] = json!(true)).contains("`force`"));
        assert!(message(|args| args["body"] = json!([])).contains("'body' must be an object"));
        assert!(
            message(|args| args["body"] = json!({"x": "x".repeat(LARGEST_BODY)}))
                .contains("'body' has at most")
        );
        assert!(
            message(|args| args["query"] = json!([["a", "x".repeat(LONGEST_QUERY)]])).contains("'query'")
        );
        assert!(message(|args| args["query"] = json!(vec![["a", "b"]; 33])).contains("'query'"));
    }
}
