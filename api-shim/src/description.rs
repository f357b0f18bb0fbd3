//! The API's own description: OpenAPI 3.1, one document per microversion.
//!
//! Made from what serves: the routes from [`crate::routes`], the shapes that they name from [`crate::openapi`], who may
//! ask from the policy rules. The document of a version has the routes and attributes of that version and no others.
//!
//! Served at `/v1/openapi.json`, with a token like everything below `/v1`: only `/` and `/v1` are public in Magnum, and
//! that list is not ours to widen. [`reference()`] prints the same as a page for people.

mod document;
mod reference;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use utoipa::openapi::OpenApi;

use crate::microversion::Version;

pub use self::document::document;
pub use self::reference::reference;

/// The documents of all versions, as text. Made at the first request for one.
static TEXTS: LazyLock<BTreeMap<Version, String>> = LazyLock::new(|| {
    Version::all()
        .filter_map(|version| Some((version, text(&document(version))?)))
        .collect()
});

fn text(document: &OpenApi) -> Option<String> {
    document.to_json().ok()
}

/// The document of a version as text, as it is served; `None` for a version without one.
pub fn served(version: Version) -> Option<&'static str> {
    TEXTS.get(&version).map(String::as_str)
}

#[cfg(test)]
mod tests;
