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
