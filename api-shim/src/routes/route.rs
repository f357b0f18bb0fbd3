//! What a row of the table of routes says, and how it is written.

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::microversion::Version;
use crate::openapi::Model;
use crate::policy::Rule;
use crate::state::App;
use crate::validation::body::Field;
use crate::validation::patch::Rules;
use crate::validation::query::Argument;

/// A row of the table of routes.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    /// Unique: what generated clients call it.
    pub name: &'static str,
    /// What it does, as a sentence for the API document.
    pub about: &'static str,
    pub since: Version,
    pub query: &'static [Argument],
    pub body: Body,
    pub answer: ResponseKind,
    /// Errors besides those that all routes of its kind can have.
    pub faults: &'static [u16],
    serve: fn() -> MethodRouter<Arc<App>>,
}

/// What a request carries.
#[derive(Clone, Copy)]
pub enum Body {
    /// Nothing: something is a 400, but of a GET, whose body proxies may drop and nobody looks at.
    None,
    /// A JSON object with these attributes.
    Object(Model, &'static [Field]),
    /// A JSON patch of a resource with these attributes.
    Patch(&'static Rules),
    /// A JSON object, or nothing, that is not ours to know.
    Free,
}

/// What a success answers.
#[derive(Clone, Copy)]
pub enum ResponseKind {
    /// A status without a body.
    Empty(u16),
    /// What is done, by its uuid.
    Uuid(u16),
    /// One resource.
    One(u16, Model),
    /// A page of resources under a key.
    Page(&'static str, Model),
    /// All of them under a key.
    All(&'static str, Model),
    /// Some document.
    Document(&'static str),
    /// None: it cannot be done.
    Never,
}

impl ResponseKind {
    /// Its status; `None` where there is no success.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Empty(status) | Self::Uuid(status) | Self::One(status, _) => Some(status),
            Self::Page(..) | Self::All(..) | Self::Document(_) => Some(200),
            Self::Never => None,
        }
    }
}

impl Route {
    /// Whether the route is there in this version.
    pub fn is_in(&self, version: Version) -> bool {
        version >= self.since
    }

    /// Whether a body that is sent has any effect, if only to be refused.
    pub fn looks_at_a_body(&self) -> bool {
        self.method != "GET"
    }

    /// The rules that decide who may.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        let operation = (self.method, self.path);
        Rule::ALL
            .iter()
            .copied()
            .filter(move |rule| rule.operations().contains(&operation))
    }

    /// The path in the form of documents: a parameter that takes the rest of the path is written like any other.
    pub fn documented_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Its handler.
    pub fn handler(&self) -> MethodRouter<Arc<App>> {
        (self.serve)()
    }

    /// The parameters in its path, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
            .map(|name| name.trim_start_matches('*'))
    }

    pub(super) const fn since(self, since: Version) -> Self {
        Self { since, ..self }
    }

    pub(super) const fn query(self, query: &'static [Argument]) -> Self {
        Self { query, ..self }
    }

    pub(super) const fn body(self, model: Model, fields: &'static [Field]) -> Self {
        Self {
            body: Body::Object(model, fields),
            ..self
        }
    }

    pub(super) const fn free_body(self) -> Self {
        Self {
            body: Body::Free,
            ..self
        }
    }

    pub(super) const fn patch(self, rules: &'static Rules) -> Self {
        Self {
            body: Body::Patch(rules),
            ..self
        }
    }

    pub(super) const fn faults(self, faults: &'static [u16]) -> Self {
        Self { faults, ..self }
    }
}

/// The shortest row; what else it has is added with the methods of [`Route`].
pub(super) const fn route(
    method: &'static str,
    path: &'static str,
    name: &'static str,
    about: &'static str,
    answer: ResponseKind,
    serve: fn() -> MethodRouter<Arc<App>>,
) -> Route {
    Route {
        method,
        path,
        name,
        about,
        since: Version::MIN,
        query: &[],
        body: Body::None,
        answer,
        faults: &[],
        serve,
    }
}
