//! Arguments of a method as Python binds them: by position, by name, or both, with its complaints about wrong ones.
//!
//! A Python caller sees the same `TypeError`, in the same words, as from a Python conductor.

use magnum_common::error::{Exception, Fault};
use serde_json::{Map, Value};

/// What a method takes, after what the server adds itself (the class or the object, and the context).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The class, for messages.
    pub owner: &'static str,
    /// The method.
    pub name: &'static str,
    /// Parameters without a default.
    pub required: &'static [&'static str],
    /// Parameters whose default is null.
    pub optional: &'static [&'static str],
}

/// Arguments by parameter; those not given are null.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bound {
    values: Vec<(&'static str, Value)>,
}

impl Bound {
    /// The argument of a parameter. Null for one that was not given, or taken before.
    pub fn take(&mut self, parameter: &str) -> Value {
        self.values
            .iter_mut()
            .find(|(name, _)| *name == parameter)
            .map(|(_, value)| value.take())
            .unwrap_or_default()
    }

    /// The argument of a method that takes one.
    pub fn into_only(self) -> Value {
        self.values
            .into_iter()
            .next()
            .map(|(_, value)| value)
            .unwrap_or_default()
    }
}

/// Parameters that the server fills: `cls` and `context`.
const IMPLICIT: usize = 2;

impl Signature {
    /// Gives each parameter its argument.
    ///
    /// # Errors
    /// `TypeError` in Python's words.
    pub fn bind(&self, args: Vec<Value>, kwargs: Map<String, Value>) -> Result<Bound, Fault> {
        let parameters: Vec<&'static str> = self.required.iter().chain(self.optional).copied().collect();
        let given = args.len();
        let mut values: Vec<(&'static str, Value)> = parameters.iter().copied().zip(args).collect();
        for (name, value) in kwargs {
            let Some(parameter) = parameters.iter().find(|parameter| **parameter == name) else {
                let text = match name.as_str() {
                    "context" => "got multiple values for argument 'context'".to_owned(),
                    name => format!("got an unexpected keyword argument '{name}'"),
                };
                return Err(self.type_error(&text));
            };
            if values.iter().any(|(taken, _)| taken == parameter) {
                return Err(self.type_error(&format!("got multiple values for argument '{name}'")));
            }
            values.push((parameter, value));
        }
        if given > parameters.len() {
            return Err(self.too_many(given));
        }
        let missing: Vec<&str> = self
            .required
            .iter()
            .copied()
            .filter(|parameter| !values.iter().any(|(taken, _)| taken == parameter))
            .collect();
        if missing.is_empty() {
            Ok(Bound { values })
        } else {
            Err(self.missing(&missing))
        }
    }

    fn type_error(&self, text: &str) -> Fault {
        Fault::new(
            Exception::TypeError,
            format!("{}.{}() {text}", self.owner, self.name),
        )
    }

    fn too_many(&self, given: usize) -> Fault {
        let least = self.required.len() + IMPLICIT;
        let most = least + self.optional.len();
        let given = given + IMPLICIT;
        let range = if least == most {
            most.to_string()
        } else {
            format!("from {least} to {most}")
        };
        self.type_error(&format!(
            "takes {range} positional arguments but {given} were given"
        ))
    }

    fn missing(&self, missing: &[&str]) -> Fault {
        let quoted: Vec<String> = missing.iter().map(|name| format!("'{name}'")).collect();
        let names = match quoted.as_slice() {
            [all @ .., last] if all.len() > 1 => format!("{}, and {last}", all.join(", ")),
            [first, last] => format!("{first} and {last}"),
            one => one.concat(),
        };
        let plural = if missing.len() == 1 { "" } else { "s" };
        self.type_error(&format!(
            "missing {} required positional argument{plural}: {names}",
            missing.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROUP: Signature = Signature {
        owner: "NodeGroup",
        name: "get",
        required: &["cluster_id", "nodegroup_id"],
        optional: &[],
    };
    const LIST: Signature = Signature {
        owner: "Cluster",
        name: "list",
        required: &[],
        optional: &["limit", "marker"],
    };

    fn bind(signature: &Signature, args: Value, kwargs: Value) -> Result<Bound, String> {
        let (Value::Array(args), Value::Object(kwargs)) = (args, kwargs) else {
            panic!("a list and a map");
        };
        signature.bind(args, kwargs).map_err(|fault| {
            assert_eq!(fault.exception, Exception::TypeError);
            fault.message
        })
    }

    #[test]
    fn position_and_name_give_the_same() {
        let mut by_both = bind(&GROUP, json!(["c"]), json!({"nodegroup_id": "n"})).unwrap();
        assert_eq!(by_both, bind(&GROUP, json!(["c", "n"]), json!({})).unwrap());
        assert_eq!(by_both.take("nodegroup_id"), "n");
        let mut by_name = bind(&GROUP, json!([]), json!({"nodegroup_id": "n", "cluster_id": "c"})).unwrap();
        assert_eq!(by_name.take("cluster_id"), "c");
        assert_eq!(
            bind(&LIST, json!([]), json!({})).unwrap().take("limit"),
            Value::Null
        );
    }

    /// The texts are those of Python 3.11.
    #[test]
    fn wrong_arguments_raise_the_errors_of_python() {
        for (signature, args, kwargs, told) in [
            (
                &GROUP,
                json!([]),
                json!({}),
                "missing 2 required positional arguments: 'cluster_id' and 'nodegroup_id'",
            ),
            (
                &GROUP,
                json!(["c"]),
                json!({}),
                "missing 1 required positional argument: 'nodegroup_id'",
            ),
            (
                &GROUP,
                json!([1, 2, 3]),
                json!({}),
                "takes 4 positional arguments but 5 were given",
            ),
            (
                &GROUP,
                json!(["c", "n"]),
                json!({"cluster_id": 1}),
                "got multiple values for argument 'cluster_id'",
            ),
            (
                &GROUP,
                json!(["c"]),
                json!({"x": 1}),
                "got an unexpected keyword argument 'x'",
            ),
            (
                &LIST,
                json!([1, 2, 3]),
                json!({}),
                "takes from 2 to 4 positional arguments but 5 were given",
            ),
            (
                &LIST,
                json!([]),
                json!({"context": 1}),
                "got multiple values for argument 'context'",
            ),
        ] {
            let whole = format!("{}.{}() {told}", signature.owner, signature.name);
            assert_eq!(bind(signature, args, kwargs).unwrap_err(), whole);
        }
    }
}
