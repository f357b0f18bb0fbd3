//! What stands between the socket and a handler: identity, version, body.
//!
//! [`enter`] wraps the routes under `/v1`: it checks
//! `Accept`, finds out which version is spoken, and leaves a [`ApiRequest`] for the handler, with the caller that
//! [`crate::auth`] has identified. [`Body`] reads a JSON body.

mod body;
mod json;
pub mod limit;

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::RequestId;
use serde_json::Value;

use crate::edge::arrival::Ids;
use crate::edge::forwarded::Outside;
use crate::faults::{ApiFault, Origin};
use crate::microversion::{self, Version};
use crate::policy::{Rule, RuleSet, Target};
use crate::state::App;
use crate::validation::query::{Argument, Arguments, pairs};

pub use self::body::{Body, refuse as refuse_body};

/// An authenticated request to a versioned route, as handlers see it.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// The caller, and the request's ids.
    pub context: RequestContext,
    /// The microversion of the request.
    pub version: Version,
    /// Base URL of the service as this client sees it: `scheme://host` and a prefix, without a trailing slash.
    pub base: String,
    /// The policy rules, as they were when the request began.
    pub rules: Arc<RuleSet>,
    query: Option<String>,
}

impl ApiRequest {
    /// The query's arguments; one that is not in `known` is a 400.
    ///
    /// # Errors
    /// What the client is told.
    pub fn arguments(&self, known: &[Argument]) -> Result<Arguments, ApiFault> {
        Ok(Arguments::parse(self.query.as_deref(), known, self.version)?)
    }

    /// The query's names and values in their order, for a route whose arguments are not ours to know.
    pub fn free_arguments(&self) -> Vec<(String, String)> {
        pairs(self.query.as_deref()).collect()
    }

    /// 406 below the version that has `what`.
    ///
    /// # Errors
    /// What the client is told.
    pub fn since(&self, first: Version, what: &str) -> Result<(), ApiFault> {
        if self.version < first {
            return Err(ApiFault::later(self.version, what));
        }
        Ok(())
    }

    /// The project that something new belongs to. An administrator whose token has none is refused: nobody could ever
    /// see what it makes.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn project_of_new_resource(&self) -> Result<&str, Fault> {
        let refusal = || Fault::new(Exception::NotAuthorized, "Not authorized.");
        self.context.project_id().ok_or_else(refusal)
    }

    /// 403, naming the rule, unless the caller passes `rule` for `target`.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn authorize(&self, rule: Rule, target: &Target<'_>) -> Result<(), Fault> {
        self.rules.authorize(rule, &self.context, target)
    }

    /// The same by the name of a rule that is not ours. One that nobody has defined is not passed.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn authorize_named(&self, rule: &str, target: &Target<'_>) -> Result<(), Fault> {
        self.rules.authorize_named(rule, &self.context, target)
    }

    /// The same for what is about to belong to the caller.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn authorize_own(&self, rule: Rule) -> Result<(), Fault> {
        self.authorize(rule, &Target::own(&self.context))
    }

    /// Lets an administrator into every project by `rule`, one of the `*_all_projects` rules. As in Magnum, an
    /// administrator who does not pass it is refused; for others it means nothing.
    ///
    /// # Errors
    /// What the caller is told.
    pub fn allow_all_projects(&mut self, rule: Rule) -> Result<(), Fault> {
        if self.context.is_admin() {
            self.authorize_own(rule)?;
            self.context.set_all_tenants(true);
        }
        Ok(())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ApiRequest {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiFault> {
        // Absent only if a route was added outside of `enter`.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(ApiFault::internal)
    }
}

/// A uuid or a name in the path.
#[derive(Debug, Clone)]
pub struct Ident(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Ident {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFault> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(ident)) => Ok(Self(ident)),
            Err(_) => Err(unreadable_path()),
        }
    }
}

/// Two parts of the path: what something belongs to, and what it is called there.
#[derive(Debug, Clone)]
pub struct Idents(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for Idents {
    type Rejection = ApiFault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiFault> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((of, ident))) => Ok(Self(of, ident)),
            Err(_) => Err(unreadable_path()),
        }
    }
}

fn unreadable_path() -> ApiFault {
    ApiFault::framework(
        StatusCode::BAD_REQUEST,
        "The path is not valid percent-encoded UTF-8",
    )
}

/// Middleware around the routes under `/v1`.
pub async fn enter(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    // Before the types: whoever asks which versions there are gets the answer in the headers, whatever it takes.
    let version = match microversion::negotiate(request.headers()) {
        Ok(version) => version,
        Err(rejection) => return ApiFault::version(&rejection).into_response(),
    };
    if let Err(fault) = refuse_other_types(request.headers()) {
        return fault.into_response();
    }
    let ids = request.extensions().get::<Ids>().cloned();
    let id = ids.as_ref().map_or_else(RequestId::random, |ids| ids.own.clone());
    // On a public route there is none: nobody, with no rights.
    let caller = request
        .extensions()
        .get::<Arc<Caller>>()
        .cloned()
        .unwrap_or_default();
    let mut context = RequestContext::for_caller(&caller, &id);
    if let Some(global) = ids.and_then(|ids| ids.global) {
        context.set("global_request_id", Value::String(global));
    }
    let rules = app.policy.rules();
    rules.judge(&mut context);
    let call = ApiRequest {
        context,
        version,
        base: base(&request),
        rules,
        query: request.uri().query().map(str::to_owned),
    };
    request.extensions_mut().insert(call);
    let mut response = next.run(request).await;
    let by_framework = response
        .extensions()
        .get::<ApiFault>()
        .is_some_and(|fault| fault.origin() == Origin::Framework);
    if !by_framework && response.status() != StatusCode::METHOD_NOT_ALLOWED {
        microversion::announce(response.headers_mut(), version);
    }
    response
}

/// 406 when the client takes no JSON.
///
/// # Errors
/// What the client is told.
pub fn refuse_other_types(headers: &HeaderMap) -> Result<(), ApiFault> {
    if accepts_json(headers) {
        return Ok(());
    }
    Err(ApiFault::framework(
        StatusCode::NOT_ACCEPTABLE,
        "Only application/json can be answered; the Accept header excludes it",
    ))
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::ACCEPT) else {
        return true;
    };
    let Ok(accept) = value.to_str() else { return false };
    let ranges = || {
        let ranges = accept
            .split(',')
            .map(|range| range.split(';').next().unwrap_or_default().trim());
        ranges.filter(|range| range.contains('/'))
    };
    // A browser's list starts with HTML and is let through, as pecan does; what names no type excludes none.
    ranges().next().is_none()
        || accept.starts_with("text/html,")
        || ranges().any(|range| {
            ["*/*", "application/*", "application/json"]
                .iter()
                .any(|ours| range.eq_ignore_ascii_case(ours))
        })
}

/// What links begin with, as the client sees us. Set by the layer around everything.
pub fn base(request: &Request) -> String {
    let outside = request.extensions().get::<Outside>();
    outside.map(|outside| outside.base.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn json_must_be_acceptable() {
        assert!(accepts_json(&headers(&[])));
        for accept in [
            "",
            "*/*",
            "application/json",
            "text/xml, application/json;q=0.5",
            "text/html,application/xml",
            "APPLICATION/JSON",
            "x",
        ] {
            assert!(accepts_json(&headers(&[("accept", accept)])), "{accept}");
        }
        for accept in ["text/xml", "text/html", "application/jsonp"] {
            assert!(!accepts_json(&headers(&[("accept", accept)])), "{accept}");
        }
    }
}
