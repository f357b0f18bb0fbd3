//! Arguments of an RPC method: taken by name, each once, with Python's errors for wrong ones.
//!
//! oslo passes arguments as keywords, so an unexpected or missing one is a `TypeError` in a Python conductor.
//! Callers get the same class, and a message that names the argument.

use magnum_common::error::{Exception, Fault};
use serde_json::{Map, Value};

/// The arguments not taken yet.
#[derive(Debug)]
pub struct Arguments<'a> {
    method: &'a str,
    left: Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// The arguments of a message for `method`.
    pub fn new(method: &'a str, all: Map<String, Value>) -> Self {
        Self { method, left: all }
    }

    fn type_error(&self, text: &str) -> Fault {
        Fault::new(Exception::TypeError, format!("{}() {text}", self.method))
    }

    fn wrong(&self, name: &str, expected: &str, got: &Value) -> Fault {
        let shown = match got {
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            plain => plain.to_string().chars().take(60).collect(),
        };
        self.type_error(&format!("argument '{name}' must be {expected}, not {shown}"))
    }

    /// A required argument, null included.
    ///
    /// # Errors
    /// `TypeError`: it is missing.
    pub fn value(&mut self, name: &str) -> Result<Value, Fault> {
        self.left
            .shift_remove(name)
            .ok_or_else(|| self.type_error(&format!("missing 1 required positional argument: '{name}'")))
    }

    /// An optional argument.
    pub fn optional(&mut self, name: &str) -> Option<Value> {
        self.left.shift_remove(name)
    }

    /// A required integer that may be null. Whole floats and numeric texts count, as Python's objects take them.
    ///
    /// # Errors
    /// `TypeError`: it is missing, or not an integer of 32 bits.
    pub fn integer_or_null(&mut self, name: &str) -> Result<Option<i32>, Fault> {
        let value = self.value(name)?;
        let number = match &value {
            Value::Null => return Ok(None),
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number
            .and_then(|number| i32::try_from(number).ok())
            .map(Some)
            .ok_or_else(|| self.wrong(name, "an integer of 32 bits", &value))
    }

    /// A required integer.
    ///
    /// # Errors
    /// `TypeError`: it is missing, null, or not an integer of 32 bits.
    pub fn integer(&mut self, name: &str) -> Result<i32, Fault> {
        self.integer_or_null(name)?
            .ok_or_else(|| self.wrong(name, "an integer", &Value::Null))
    }

    /// A required text that may be null.
    ///
    /// # Errors
    /// `TypeError`: it is missing, or not a string.
    pub fn text_or_null(&mut self, name: &str) -> Result<Option<String>, Fault> {
        match self.value(name)? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            other => Err(self.wrong(name, "a string", &other)),
        }
    }

    /// A required text.
    ///
    /// # Errors
    /// `TypeError`: it is missing, null, or not a string.
    pub fn text(&mut self, name: &str) -> Result<String, Fault> {
        self.text_or_null(name)?
            .ok_or_else(|| self.wrong(name, "a string", &Value::Null))
    }

    /// A required map of strings that may be null. Scalars become their Python text.
    ///
    /// # Errors
    /// `TypeError`: it is missing, not a map, or has a nested value, which the fault names.
    pub fn strings_or_null(&mut self, name: &str) -> Result<Option<Vec<(String, String)>>, Fault> {
        let map = match self.value(name)? {
            Value::Null => return Ok(None),
            Value::Object(map) => map,
            other => return Err(self.wrong(name, "an object of strings", &other)),
        };
        map.into_iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key, text)),
                Value::Bool(true) => Ok((key, "True".to_owned())),
                Value::Bool(false) => Ok((key, "False".to_owned())),
                Value::Number(number) => Ok((key, number.to_string())),
                other => Err(self.wrong(&format!("{name}.{key}"), "a string", &other)),
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A required list of texts that may be null.
    ///
    /// # Errors
    /// `TypeError`: it is missing, not a list, or has another value than a string, whose index the fault names.
    pub fn texts_or_null(&mut self, name: &str) -> Result<Option<Vec<String>>, Fault> {
        let list = match self.value(name)? {
            Value::Null => return Ok(None),
            Value::Array(list) => list,
            other => return Err(self.wrong(name, "a list of strings", &other)),
        };
        list.into_iter()
            .enumerate()
            .map(|(at, value)| match value {
                Value::String(text) => Ok(text),
                other => Err(self.wrong(&format!("{name}[{at}]"), "a string", &other)),
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A flag with a default.
    ///
    /// # Errors
    /// `TypeError`: it is not a boolean.
    pub fn flag(&mut self, name: &str, default: bool) -> Result<bool, Fault> {
        match self.optional(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong(name, "a boolean", &other)),
        }
    }

    /// Refuses arguments that were not taken.
    ///
    /// # Errors
    /// `TypeError`, with the first unexpected argument.
    pub fn finish(self) -> Result<(), Fault> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.type_error(&format!("got an unexpected keyword argument '{name}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Arguments<'static> {
        let Value::Object(map) = value else {
            panic!("arguments are an object");
        };
        Arguments::new("cluster_create", map)
    }

    #[test]
    fn a_missing_argument_is_named_as_python_does() {
        let fault = arguments(json!({})).integer("node_count").unwrap_err();
        assert_eq!(fault.exception, Exception::TypeError);
        assert_eq!(
            fault.message,
            "cluster_create() missing 1 required positional argument: 'node_count'"
        );
    }

    #[test]
    fn an_unexpected_argument_is_named() {
        let mut given = arguments(json!({"node_count": 1, "colour": "red"}));
        given.integer("node_count").unwrap();
        assert_eq!(
            given.finish().unwrap_err().message,
            "cluster_create() got an unexpected keyword argument 'colour'"
        );
    }

    #[test]
    fn numbers_arrive_as_numbers_or_texts_and_nothing_else() {
        assert_eq!(arguments(json!({"n": 3})).integer("n"), Ok(3));
        assert_eq!(arguments(json!({"n": " 3 "})).integer("n"), Ok(3));
        assert_eq!(arguments(json!({"n": null})).integer_or_null("n"), Ok(None));
        for wrong in [
            json!(1.5),
            json!("x"),
            json!(true),
            json!([1]),
            json!(1_i64 << 40),
        ] {
            let fault = arguments(json!({"n": wrong})).integer("n").unwrap_err();
            assert!(fault.message.contains("'n'"), "{fault}");
        }
    }

    #[test]
    fn a_wrong_value_inside_a_map_is_named_by_its_key() {
        let fault = arguments(json!({"reason": {"api": null}}))
            .strings_or_null("reason")
            .unwrap_err();
        assert!(fault.message.contains("'reason.api'"), "{fault}");
    }
}
