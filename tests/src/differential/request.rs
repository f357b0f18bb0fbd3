//! A request that both APIs get.

use std::fmt;

use serde_json::Value;

/// Begins and ends a text that stands for a number which JSON has and `serde_json` has not: `@raw 1e999@`.
const RAW: (&str, &str) = ("\"@raw ", "@\"");

/// What to send; texts in paths, arguments and bodies may have the placeholders of [`super::saved::Saved`].
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub user: &'static str,
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    /// Microversion, without the service's name; none: the header is not sent.
    pub version: Option<String>,
    pub accept: Option<&'static str>,
    pub content_type: Option<&'static str>,
    pub body: Option<Body>,
    /// The route of the description that this is a request of, such as `/v1/clusters/{ident}`.
    pub route: String,
    /// How many things about it are, or may be, mistakes.
    pub mistakes: u32,
}

/// A body as a value, which can be made smaller, or as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Json(Value),
    Text(String),
}

impl Body {
    /// As it is sent.
    pub fn text(&self) -> String {
        match self {
            Self::Json(value) => unquoted(&value.to_string()),
            Self::Text(text) => text.clone(),
        }
    }
}

/// The text that becomes this number when it is sent.
pub fn raw(number: &str) -> Value {
    Value::String(format!("@raw {number}@"))
}

fn unquoted(text: &str) -> String {
    let (mut rest, mut sent) = (text, String::new());
    while let Some((before, after)) = rest.split_once(RAW.0) {
        let Some((number, after)) = after.split_once(RAW.1) else {
            break;
        };
        sent.push_str(before);
        sent.push_str(number);
        rest = after;
    }
    sent.push_str(rest);
    sent
}

impl Request {
    /// One without anything special about it.
    pub fn new(user: &'static str, method: &str, path: &str) -> Self {
        Self {
            user,
            method: method.to_owned(),
            path: path.to_owned(),
            query: Vec::new(),
            version: Some("1.14".to_owned()),
            accept: Some("application/json"),
            content_type: None,
            body: None,
            route: path.to_owned(),
            mistakes: 0,
        }
    }

    /// Path and arguments.
    pub fn target(&self) -> String {
        let encoded = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let query: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        if query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, query.join("&"))
        }
    }

    /// `PATCH /v1/clusters/{ident}`, for the rules.
    pub fn kind(&self) -> String {
        format!("{} {}", self.method, self.route)
    }

    /// The minor number of its microversion; what is none counts as 1, which the header's absence means.
    pub fn minor(&self) -> u32 {
        let version = self.version.as_deref().unwrap_or("1.1");
        if version.eq_ignore_ascii_case("latest") {
            return u32::MAX;
        }
        let minor = version.strip_prefix("1.").and_then(|minor| minor.parse().ok());
        minor.unwrap_or(1)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.user, self.method, self.target())?;
        if let Some(version) = &self.version {
            write!(f, " version {version}")?;
        }
        if let Some(accept) = self.accept {
            write!(f, " accept {accept}")?;
        }
        if let Some(kind) = self.content_type {
            write!(f, " type {kind}")?;
        }
        if let Some(body) = &self.body {
            write!(f, " body {}", body.text())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_that_the_value_cannot_hold_are_sent_as_they_are() {
        let body = Body::Json(json!({"a": raw("1e999"), "b": [raw("-0"), "@raw"]}));
        assert_eq!(body.text(), r#"{"a":1e999,"b":[-0,"@raw"]}"#);
    }
}
