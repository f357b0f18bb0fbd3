//! Failures on the wire: a string of JSON with six keys, from which a Python caller rebuilds the exception.
//!
//! Only classes of `magnum.common.exception` and builtins are rebuilt there; everything else arrives as
//! `RemoteError`. We send an empty traceback: ours would mean nothing to a Python reader, and theirs, which
//! discloses paths, is dropped on receipt.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use magnum_common::error::{self, Exception, Fault};

/// An exception raised by the peer.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteFailure {
    /// Python class.
    pub class: String,
    /// Python module.
    pub module: String,
    /// The formatted message.
    pub message: String,
    /// Keyword arguments of the exception, `code` included.
    pub kwargs: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    class: String,
    #[serde(default)]
    module: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    tb: Value,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    kwargs: Map<String, Value>,
}

impl RemoteFailure {
    /// Reads the text of a reply's `failure`.
    ///
    /// # Errors
    /// The text is no JSON object, or one of its members has another type.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let wire: Wire = serde_json::from_str(text)?;
        // `message` is `str(e)`; for Magnum's exceptions the first argument is the same text.
        let message = if wire.message.is_empty() {
            wire.args
                .get(0)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        } else {
            wire.message
        };
        Ok(Self {
            class: wire.class,
            module: wire.module,
            message,
            kwargs: wire.kwargs,
        })
    }

    /// The text for a reply's `failure`.
    pub fn to_json(&self) -> String {
        let wire = Wire {
            class: self.class.clone(),
            module: self.module.clone(),
            message: self.message.clone(),
            tb: Value::Array(Vec::new()),
            args: Value::Array(vec![Value::String(self.message.clone())]),
            kwargs: self.kwargs.clone(),
        };
        // Strings, arrays and string-keyed maps always serialise.
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// The fault of our own catalogue, when the class is one of it.
    pub fn to_fault(&self) -> Option<Fault> {
        let exception = Exception::ALL.iter().copied().find(|exception| {
            exception.name() == self.class && same_module(exception.module(), &self.module)
        })?;
        let mut fault = Fault::new(exception, self.message.clone());
        fault.kwargs = self
            .kwargs
            .iter()
            .filter(|(name, _)| *name != "code")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Some(fault)
    }
}

/// `exceptions` was the builtins' name in Python 2, and peers still accept it.
fn same_module(ours: &str, theirs: &str) -> bool {
    ours == theirs || (ours == error::BUILTINS && theirs == "exceptions")
}

impl From<&Fault> for RemoteFailure {
    fn from(fault: &Fault) -> Self {
        let module = fault.exception.module();
        let mut kwargs: Map<String, Value> = fault
            .kwargs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // Both libraries put the code among the exception's own arguments; builtins have none.
        if module == error::MAGNUM || module == error::VERSIONED_OBJECTS {
            kwargs.entry("code").or_insert_with(|| fault.code().into());
        }
        Self {
            class: fault.exception.name().to_owned(),
            module: module.to_owned(),
            message: fault.message.clone(),
            kwargs,
        }
    }
}

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for RemoteFailure {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_magnum_fault_has_six_keys_and_its_code() {
        let mut fault = Fault::cluster_not_found("c1");
        fault.kwargs.insert("cluster".into(), "c1".into());
        let text = RemoteFailure::from(&fault).to_json();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "class": "ClusterNotFound",
                "module": "magnum.common.exception",
                "message": "Cluster c1 could not be found.",
                "tb": [],
                "args": ["Cluster c1 could not be found."],
                "kwargs": {"cluster": "c1", "code": 404},
            })
        );
        assert_eq!(RemoteFailure::from_json(&text).unwrap().to_fault(), Some(fault));
    }

    #[test]
    fn every_class_of_the_catalogue_survives_the_round() {
        for exception in Exception::ALL {
            let fault = Fault::new(*exception, "50 % of \"it\"");
            let remote = RemoteFailure::from_json(&RemoteFailure::from(&fault).to_json()).unwrap();
            assert_eq!(remote.to_fault(), Some(fault), "{}", exception.name());
        }
    }

    #[test]
    fn a_builtin_has_no_code() {
        let failure = RemoteFailure::from(&Fault::new(Exception::ValueError, "bad"));
        assert!(failure.kwargs.is_empty());
        assert_eq!(failure.module, "builtins");
    }

    #[test]
    fn a_foreign_class_stays_remote() {
        let remote =
            RemoteFailure::from_json(r#"{"class": "KeyError", "module": "x", "args": ["k"]}"#).unwrap();
        assert_eq!(remote.to_fault(), None);
        assert_eq!(remote.to_string(), "KeyError: k");
    }
}
