//! `[api] auth_strategy = noauth`: the caller is taken from the request's headers, the same headers that Keystone's
//! middleware sets behind a token:
//!
//! | header | meaning | when absent |
//! |---|---|---|
//! | `X-User-Id`, `X-User-Name` | the user | see below |
//! | `X-Project-Id`, `X-Project-Name` | the project | see below |
//! | `X-User-Domain-Id`, `X-User-Domain-Name` | the user's domain | none |
//! | `X-Roles` | comma-separated role names | `member,reader` |
//! | `X-Auth-Token` | passed on to drivers as it is | none |
//!
//! A request that has none of `X-User-Id`, `X-Project-Id` and `X-Roles` is the user `noauth` of the project
//! `noauth` with the roles `admin,member,reader`: what a developer at a local `magnum-dev` wants. `noauth` checks
//! nothing: a client that reaches the port can be anybody. It is for one machine, never for a network.

use axum::http::HeaderMap;
use magnum_common::context::Caller;
use magnum_common::secret::Secret;

use super::is_admin;

/// The caller of requests without identity headers.
const NOBODY: &str = "noauth";

/// Who the headers say it is.
pub(super) fn caller(headers: &HeaderMap, auth_url: Option<String>) -> Caller {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let names_somebody = ["x-user-id", "x-project-id", "x-roles"]
        .iter()
        .any(|name| headers.contains_key(*name));
    let roles = match text("x-roles") {
        Some(list) => list.split(',').map(|role| role.trim().to_owned()).collect(),
        None if headers.contains_key("x-roles") => Vec::new(),
        None if names_somebody => ["member", "reader"].map(str::to_owned).to_vec(),
        None => ["admin", "member", "reader"].map(str::to_owned).to_vec(),
    };
    let or_nobody = |value: Option<String>| value.or_else(|| (!names_somebody).then(|| NOBODY.to_owned()));
    Caller {
        user_id: or_nobody(text("x-user-id")),
        user_name: or_nobody(text("x-user-name")),
        project_id: or_nobody(text("x-project-id")),
        project_name: or_nobody(text("x-project-name")),
        user_domain_id: text("x-user-domain-id"),
        user_domain_name: text("x-user-domain-name"),
        is_admin: is_admin(&roles),
        roles,
        auth_token: text("x-auth-token").map(Secret::new),
        auth_token_info: None,
        auth_url,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn caller_of(headers: &[(&'static str, &'static str)]) -> Caller {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        caller(&headers, None)
    }

    #[test]
    fn without_identity_headers_the_caller_is_the_local_administrator() {
        let caller = caller_of(&[("x-auth-token", "t")]);
        assert_eq!(caller.user_id.as_deref(), Some("noauth"));
        assert_eq!(caller.project_id.as_deref(), Some("noauth"));
        assert!(caller.is_admin);
    }

    #[test]
    fn with_identity_headers_nothing_is_added_but_the_ordinary_roles() {
        let caller = caller_of(&[("x-user-id", "u"), ("x-project-id", "p")]);
        assert_eq!(caller.roles, ["member", "reader"]);
        assert!(!caller.is_admin);
        assert_eq!(caller.user_name, None);
        let caller = caller_of(&[("x-roles", " Admin , member")]);
        assert!(caller.is_admin);
        assert_eq!(caller.user_id, None);
        assert!(caller_of(&[("x-roles", "")]).roles.is_empty());
    }
}
