//! Why a method gave no result.

use magnum_common::error::{Exception, Fault};
use magnum_db::DbError;
use serde_json::json;

/// What ends a method early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The caller gets this exception. Nothing was written.
    #[error("{0}")]
    Refused(Fault),
    /// The database failed; whatever was written is taken back.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Somebody else was quicker, with this message or this row: look again. What was written is taken back.
    #[error("a row changed while it was decided about")]
    Again,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl Failure {
    /// Whether the same may succeed a moment later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Db(error) => error.is_transient(),
            Self::Again => true,
        }
    }
}

/// What the caller gets after the last attempt.
impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(fault) => fault,
            Failure::Db(error) => of_database(&error),
            Failure::Again => of_database(&DbError::Conflict("somebody else was quicker".to_owned())),
        }
    }
}

/// What the caller is told when the database fails. Logged here, as the caller gets no details.
fn of_database(error: &DbError) -> Fault {
    if error.is_transient() {
        tracing::warn!(%error, "an object's method could not be carried out: the database is not available");
        return Fault::new(
            Exception::MagnumException,
            "The database is not available at the moment. Please try again later.",
        );
    }
    if let Some(column) = error.refused_value() {
        let what = column.map_or_else(
            || "one of the values".to_owned(),
            |name| format!("the value of {name}"),
        );
        return Fault::invalid_parameter(format!(
            "The database cannot store {what}: too long, or with characters that its tables do not have."
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

/// A fault with the keyword arguments with which Magnum makes its exception.
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
    fn a_caller_is_told_what_to_do_and_never_the_statement() {
        let away = of_database(&DbError::Unavailable("connect to 10.0.0.1 as magnum".into()));
        assert!(away.message.contains("try again") && !away.message.contains("10.0.0.1"));
        let gone = of_database(&DbError::Schema("no such table: x".into()));
        assert!(!gone.message.contains("table"), "{gone}");
        let corrupt = of_database(&DbError::Corrupt {
            table: "cluster",
            column: "labels",
            row: "u-1".into(),
            detail: "expected a JSON object".into(),
        });
        assert_eq!(corrupt.exception, Exception::ValueError);
        assert!(corrupt.message.contains("labels") && corrupt.message.contains("u-1"));
    }
}
