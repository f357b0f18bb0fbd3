//! What a client gets when the database fails.

use axum::http::StatusCode;
use magnum_db::DbError;

use super::ApiFault;
use crate::store::StoreError;

impl From<StoreError> for ApiFault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Database(error) => error.into(),
            StoreError::Refused(fault) => fault.into(),
        }
    }
}

impl From<DbError> for ApiFault {
    fn from(error: DbError) -> Self {
        let fault = if error.is_transient() {
            Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The database is not available at the moment. Please try again later.",
            )
        } else if let Some(column) = error.refused_value() {
            let value = column.map_or_else(
                || "one of the values".to_owned(),
                |name| format!("the value of {name}"),
            );
            Self::new(
                StatusCode::BAD_REQUEST,
                format!(
                    "The database cannot store {value}: too long, or with characters that its tables do not have."
                ),
            )
        } else {
            Self::internal()
        };
        fault.caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Fault;

    use super::*;

    #[test]
    fn outage_is_a_503_that_keeps_its_error_for_the_log_only() {
        let error = StoreError::from(DbError::Unavailable("connection to db-7 refused".into()));
        let fault = ApiFault::from(error);
        assert_eq!(fault.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(!fault.detail().contains("db-7"), "{}", fault.detail());
        let source = fault.source.expect("the error behind the fault");
        assert!(source.to_string().contains("db-7"), "{source}");
    }

    #[test]
    fn refusal_has_nothing_to_log() {
        let fault = ApiFault::from(StoreError::from(Fault::cluster_not_found("x")));
        assert_eq!(fault.status(), StatusCode::NOT_FOUND);
        assert!(fault.source.is_none());
    }
}
