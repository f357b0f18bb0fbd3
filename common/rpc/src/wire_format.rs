//! The two formats of a body, and the properties of a message that name them.

use serde::{Deserialize, Serialize};

/// How the body is written. Kept with a reply address, so that a reply mirrors its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WireFormat {
    /// JSON, oslo.messaging's own format.
    #[default]
    Json,
    /// Between our own programs, or with a Python peer that was told to accept it.
    MessagePack,
}

impl WireFormat {
    /// The content type we send.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MessagePack => "application/x-msgpack",
        }
    }

    /// The content encoding we send.
    pub fn content_encoding(self) -> &'static str {
        match self {
            Self::Json => "utf-8",
            Self::MessagePack => "binary",
        }
    }

    /// The format a content type stands for. An absent one is JSON; parameters are ignored.
    pub fn of_content_type(content_type: Option<&str>) -> Option<Self> {
        let Some(content_type) = content_type else {
            return Some(Self::Json);
        };
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "application/json" => Some(Self::Json),
            "application/x-msgpack" | "application/msgpack" => Some(Self::MessagePack),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_matched_without_parameters_or_case() {
        for (text, expected) in [
            (None, Some(WireFormat::Json)),
            (Some("application/json"), Some(WireFormat::Json)),
            (Some("Application/JSON; charset=utf-8"), Some(WireFormat::Json)),
            (Some("application/x-msgpack"), Some(WireFormat::MessagePack)),
            (Some("application/msgpack"), Some(WireFormat::MessagePack)),
            (Some("text/plain"), None),
            (Some("application/data"), None),
            (Some(""), None),
        ] {
            assert_eq!(WireFormat::of_content_type(text), expected, "{text:?}");
        }
    }
}
