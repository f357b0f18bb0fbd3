//! Errors of methods, and the faults that callers get for them.

use magnum_common::error::{Exception, Fault};
use magnum_db::DbError;
use serde_json::json;

/// The error of a method.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The caller gets this exception. Nothing was written.
    #[error("{0}")]
    Refused(Fault),
    /// The database failed; the transaction is rolled back.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Another transaction has changed this row or accepted this message meanwhile: retry. The transaction is rolled back.
    #[error("a row changed while it was decided about")]
    Retry,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl Failure {
    /// Whether a retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Db(error) => error.is_transient(),
            Self::Retry => true,
        }
    }
}

/// The fault after the last attempt.
impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(fault) => fault,
            Failure::Db(error) => database_fault(&error),
            Failure::Retry => database_fault(&DbError::Conflict("somebody else was quicker".to_owned())),
        }
    }
}

/// The fault for an error of the database. The error is logged here, since the fault has no details of it.
fn database_fault(error: &DbError) -> Fault {
    if error.is_transient() {
        tracing::warn!(%error, "an object's method could not be carried out: the database is not available");
        return Fault::new(
            Exception::MagnumException,
            "The database is not available at the moment. Please try again later.",
        );
    }
    if let Some(column) = error.refused_value() {
        let value = column.map_or_else(
            || "one of the values".to_owned(),
            |name| format!("the value of {name}"),
        );
        return Fault::invalid_parameter(format!(
            "The database cannot store {value}: too long, or with characters that its tables do not have."
        ));
    }
    if let DbError::Corrupt { .. } = error {
        tracing::error!(%error, "an object's row cannot be read");
        return Fault::new(Exception::ValueError, error.to_string());
    }
    tracing::error!(%error, "an object's method could not be carried out");
    Fault::new(
        Exception::MagnumException,
        "The database could not carry out the request. The conductor's log says why.",
    )
}

/// A fault with the keyword arguments of Magnum's exception.
pub(super) fn fault(exception: Exception, message: String, kwargs: &[(&str, &str)]) -> Fault {
    let mut fault = Fault::new(exception, message);
    for (name, value) in kwargs {
        fault.kwargs.insert((*name).to_owned(), json!(value));
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_of_the_database_has_advice_and_never_the_statement() {
        let away = database_fault(&DbError::Unavailable("connect to 10.0.0.1 as magnum".into()));
        assert!(away.message.contains("try again") && !away.message.contains("10.0.0.1"));
        let gone = database_fault(&DbError::Schema("no such table: x".into()));
        assert!(!gone.message.contains("table"), "{gone}");
        let corrupt = database_fault(&DbError::Corrupt {
            table: "cluster",
            column: "labels",
            row: "u-1".into(),
            detail: "expected a JSON object".into(),
        });
        assert_eq!(corrupt.exception, Exception::ValueError);
        assert!(corrupt.message.contains("labels") && corrupt.message.contains("u-1"));
    }
}
