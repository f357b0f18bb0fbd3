//! The request context: who asked, as it travels in every message.
//!
//! Magnum's context has 25 keys (`to_dict` in `magnum/common/context.py`). A context that arrived is kept as it is, unknown
//! keys included, and the parts that decisions need are read from it. The token and its document are secrets:
//! `Debug` leaves them out.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::ids::RequestId;

/// Who asked for something and with which rights. Keys have no `_context_` prefix here.
#[derive(Clone, Default, PartialEq)]
pub struct RequestContext {
    values: Map<String, Value>,
}

/// What a front end knows about the caller when it makes a context.
#[derive(Clone, Default)]
#[expect(missing_docs, reason = "the names are Keystone's")]
pub struct Caller {
    pub user_id: Option<String>,
    pub user_name: Option<String>,
    pub project_id: Option<String>,
    pub project_name: Option<String>,
    pub user_domain_id: Option<String>,
    pub user_domain_name: Option<String>,
    pub roles: Vec<String>,
    pub auth_token: Option<crate::secret::Secret>,
    pub auth_token_info: Option<Value>,
    pub auth_url: Option<String>,
    pub is_admin: bool,
}

impl RequestContext {
    /// A context from the keys of a message, prefix already removed. Never fails: absent keys read as null.
    pub fn from_map(values: Map<String, Value>) -> Self {
        Self { values }
    }

    /// A context for a caller of the REST API, with all 25 keys in Magnum's order.
    pub fn for_caller(caller: &Caller, request_id: &RequestId) -> Self {
        let identity = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
        let user_identity = format!(
            "{} {} - {} -",
            identity(&caller.user_id),
            identity(&caller.project_id),
            identity(&caller.user_domain_id)
        );
        let token = caller.auth_token.as_ref().map(crate::secret::Secret::expose);
        let Value::Object(values) = json!({
            "user": caller.user_id,
            "project_id": caller.project_id,
            "system_scope": null,
            "project": caller.project_id,
            "domain": null,
            "user_domain": caller.user_domain_id,
            "project_domain": null,
            "is_admin": caller.is_admin,
            "read_only": false,
            "show_deleted": false,
            "auth_token": token,
            "request_id": request_id.as_str(),
            "global_request_id": null,
            "resource_uuid": null,
            "roles": caller.roles,
            "user_identity": user_identity,
            "is_admin_project": true,
            "auth_url": caller.auth_url,
            "user_domain_id": caller.user_domain_id,
            "user_domain_name": caller.user_domain_name,
            "user_name": caller.user_name,
            "user_id": caller.user_id,
            "project_name": caller.project_name,
            "auth_token_info": caller.auth_token_info,
            "all_tenants": false,
        }) else {
            return Self::default();
        };
        Self { values }
    }

    /// The context of periodic work: admin, all tenants, no token.
    pub fn admin() -> Self {
        let mut context = Self::for_caller(
            &Caller {
                is_admin: true,
                ..Caller::default()
            },
            &RequestId::random(),
        );
        context.set_all_tenants(true);
        context
    }

    /// All keys, for sending (the sender adds the prefix).
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.values
    }

    /// All keys, owned.
    pub fn into_map(self) -> Map<String, Value> {
        self.values
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(Value::as_str)
    }

    fn flag(&self, key: &str) -> bool {
        self.values.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The caller's user.
    pub fn user_id(&self) -> Option<&str> {
        self.text("user_id").or_else(|| self.text("user"))
    }

    /// The caller's project.
    pub fn project_id(&self) -> Option<&str> {
        self.text("project_id").or_else(|| self.text("project"))
    }

    /// `req-…`, when the sender gave one.
    pub fn request_id(&self) -> Option<&str> {
        self.text("request_id")
    }

    /// Whether policy counts the caller as an administrator.
    pub fn is_admin(&self) -> bool {
        self.flag("is_admin")
    }

    /// Whether tenant filters are off. Only meaningful together with [`Self::is_admin`].
    pub fn all_tenants(&self) -> bool {
        self.flag("all_tenants")
    }

    /// Switches the tenant filter off or on.
    pub fn set_all_tenants(&mut self, on: bool) {
        self.values.insert("all_tenants".to_owned(), Value::Bool(on));
    }

    /// The caller's roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.values
            .get("roles")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("request_id", &self.request_id())
            .field("user_id", &self.user_id())
            .field("project_id", &self.project_id())
            .field("is_admin", &self.is_admin())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_made_context_has_all_keys_and_its_debug_form_hides_the_token() {
        let caller = Caller {
            user_id: Some("u".into()),
            project_id: Some("p".into()),
            auth_token: Some(Secret::new("tok-1")),
            ..Caller::default()
        };
        let context = RequestContext::for_caller(&caller, &RequestId::new("req-1"));
        assert_eq!(context.as_map().len(), 25);
        assert_eq!(context.as_map()["auth_token"], "tok-1");
        assert_eq!(context.as_map()["user_identity"], "u p - - -");
        assert!(!format!("{context:?}").contains("tok-1"));
    }

    #[test]
    fn an_empty_context_is_nobody() {
        let context = RequestContext::default();
        assert_eq!(context.user_id(), None);
        assert!(!context.is_admin());
        assert_eq!(context.roles().count(), 0);
    }
}
