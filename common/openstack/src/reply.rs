//! What a service answers.

use bytes::Bytes;
use hyper::{Response, StatusCode};
use serde_json::Value;

use super::ServiceError;

/// More of an error's text is not shown.
const SHOWN: usize = 300;

/// A service's answer.
#[derive(Debug)]
pub struct Reply {
    what: String,
    service: &'static str,
    body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn json(&self) -> Result<Value, ServiceError> {
        serde_json::from_slice(&self.body).map_err(|_| self.unusable("it is not JSON"))
    }

    /// The body as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(self) -> Result<String, ServiceError> {
        String::from_utf8(self.body).map_err(|_| ServiceError::Answer {
            service: self.service,
            what: self.what.clone(),
            reason: "it is not text".to_owned(),
        })
    }

    /// An error about this answer.
    pub fn unusable(&self, reason: &str) -> ServiceError {
        ServiceError::Answer {
            service: self.service,
            what: self.what.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// An answer that is one, or what is wrong.
pub(super) fn take(
    service: &'static str,
    what: String,
    response: Response<Bytes>,
    has_secret: bool,
) -> Result<Reply, ServiceError> {
    let (status, body) = (response.status(), response.into_body().to_vec());
    if status.is_success() {
        return Ok(Reply { what, service, body });
    }
    let words = if has_secret { String::new() } else { words(&body) };
    let reason = format!("HTTP {}{words}", status.as_u16());
    let is_passing = status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        );
    Err(if is_passing {
        ServiceError::Unavailable { service, reason }
    } else if status == StatusCode::NOT_FOUND {
        ServiceError::NotFound { service, what }
    } else {
        ServiceError::Refused {
            service,
            what,
            reason,
        }
    })
}

/// What an error's body says, in the shapes of Keystone and Barbican.
fn words(body: &[u8]) -> String {
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return String::new();
    };
    let found = [
        &document["error"]["message"],
        &document["description"],
        &document["title"],
    ]
    .into_iter()
    .find_map(Value::as_str);
    found.map_or_else(String::new, |text| {
        format!(": {}", text.chars().take(SHOWN).collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_services_words_are_found_in_every_shape_and_cut() {
        assert_eq!(words(br#"{"error": {"message": "no"}}"#), ": no");
        assert_eq!(words(br#"{"title": "t", "description": "d"}"#), ": d");
        assert_eq!(words(b"<html>"), "");
        let long = json!({"title": "x".repeat(1000)}).to_string();
        assert_eq!(words(long.as_bytes()).len(), SHOWN + 2);
    }
}
