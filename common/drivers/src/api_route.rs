//! The routes of a driver's own API: what its manifest offers below `/v1/clusters/{id}/driver/`.
//!
//! A path is fixed: it has no parameters, so that what a caller may ask for can be read in the manifest. Conductors
//! announce the routes with the driver, and check them again when a call arrives.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A method that a route can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are HTTP's")]
pub enum ApiMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl ApiMethod {
    /// Every method.
    pub const ALL: &[Self] = &[Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// As HTTP, manifests and messages have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request carries a body.
    pub const fn takes_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl FromStr for ApiMethod {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .iter()
            .copied()
            .find(|method| method.as_str() == text)
            .ok_or(())
    }
}

impl fmt::Display for ApiMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One path with methods of the same kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiRoute {
    /// Segments of a-z, 0-9, `_` and `-`, with slashes between them.
    pub path: String,
    /// What it can be asked with.
    pub methods: Vec<ApiMethod>,
    /// The policy rule that decides who may; the cluster is its target.
    pub policy: String,
    /// Whether a call leaves everything as it is. If so, it runs beside the cluster's operations.
    pub read_only: bool,
}

impl ApiRoute {
    /// Most characters of a path.
    pub const LONGEST_PATH: usize = 128;
    /// Most segments of a path.
    pub const MOST_SEGMENTS: usize = 8;

    /// Whether a route can have that path.
    pub fn is_path(text: &str) -> bool {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
        text.len() <= Self::LONGEST_PATH
            && text.split('/').count() <= Self::MOST_SEGMENTS
            && text
                .split('/')
                .all(|segment| !segment.is_empty() && segment.bytes().all(allowed))
    }
}

/// All routes of a driver; no two have a path and a method in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiRoutes(Vec<ApiRoute>);

/// What a driver offers at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundRoute<'a> {
    /// This route.
    Route(&'a ApiRoute),
    /// The path, with these methods only, in their usual order.
    OtherMethods(Vec<ApiMethod>),
    /// Nothing.
    None,
}

impl ApiRoutes {
    /// Most routes of a driver.
    pub const MOST: usize = 32;

    /// These routes; of two for the same path and method the first is found.
    pub fn new(routes: Vec<ApiRoute>) -> Self {
        Self(routes)
    }

    /// Whether the driver has no API of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The routes, in the manifest's order.
    pub fn iter(&self) -> impl Iterator<Item = &ApiRoute> {
        self.0.iter()
    }

    /// What there is at `path` for `method`.
    pub fn find(&self, path: &str, method: ApiMethod) -> FoundRoute<'_> {
        let at_path = || self.0.iter().filter(|route| route.path == path);
        if let Some(route) = at_path().find(|route| route.methods.contains(&method)) {
            return FoundRoute::Route(route);
        }
        let mut methods: Vec<ApiMethod> = at_path()
            .flat_map(|route| route.methods.iter().copied())
            .collect();
        if methods.is_empty() {
            return FoundRoute::None;
        }
        methods.sort_unstable();
        FoundRoute::OtherMethods(methods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str, methods: &[ApiMethod], read_only: bool) -> ApiRoute {
        ApiRoute {
            path: path.into(),
            methods: methods.to_vec(),
            policy: "cluster:get".into(),
            read_only,
        }
    }

    #[test]
    fn a_path_has_plain_segments_and_an_end() {
        for path in ["usage", "disk/usage", "a-b/c_d/0", "1/2/3/4/5/6/7/8"] {
            assert!(ApiRoute::is_path(path), "{path}");
        }
        let long = "a".repeat(ApiRoute::LONGEST_PATH + 1);
        for path in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "A",
            "a.b",
            "..",
            "a/../b",
            "{id}",
            "a%2fb",
            "ü",
            "1/2/3/4/5/6/7/8/9",
            &long,
        ] {
            assert!(!ApiRoute::is_path(path), "{path}");
        }
    }

    #[test]
    fn a_path_is_found_by_method_or_names_the_methods_it_has() {
        let routes = ApiRoutes::new(vec![
            route("notes", &[ApiMethod::Put, ApiMethod::Delete], false),
            route("notes", &[ApiMethod::Get], true),
        ]);
        let FoundRoute::Route(found) = routes.find("notes", ApiMethod::Get) else {
            panic!("found");
        };
        assert!(found.read_only);
        assert_eq!(
            routes.find("notes", ApiMethod::Patch),
            FoundRoute::OtherMethods(vec![ApiMethod::Get, ApiMethod::Put, ApiMethod::Delete])
        );
        assert_eq!(routes.find("note", ApiMethod::Get), FoundRoute::None);
        assert_eq!(routes.find("notes/", ApiMethod::Get), FoundRoute::None);
    }

    #[test]
    fn every_method_reads_back() {
        for method in ApiMethod::ALL {
            assert_eq!(method.as_str().parse(), Ok(*method));
        }
        assert_eq!("get".parse::<ApiMethod>(), Err(()));
    }
}
