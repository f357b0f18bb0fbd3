//! What Keystone says about a token, as far as decisions need it, with the document itself for drivers.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use magnum_common::context::Caller;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::access_rules::AccessRule;
use super::is_admin;

/// The caller that a token stands for.
#[derive(Clone)]
pub struct Identity {
    /// Who it is, without the token itself. A token without a project has no project here, and one without roles none:
    /// unscoped, domain and system tokens are nobody in particular to the policy.
    pub caller: Caller,
    /// When the token ends.
    pub expires_at: DateTime<Utc>,
    /// What it may be used for, when that is limited.
    pub access_rules: Option<Vec<AccessRule>>,
    /// Ways of logging in that the token is bound to.
    pub bound_to: Vec<String>,
    service_types: Vec<String>,
    size: usize,
}

#[derive(Deserialize)]
struct Document {
    token: Token,
}

#[derive(Deserialize)]
struct Token {
    expires_at: DateTime<Utc>,
    user: User,
    project: Option<Named>,
    #[serde(default)]
    roles: Vec<Role>,
    application_credential: Option<ApplicationCredential>,
    bind: Option<Map<String, Value>>,
    #[serde(default)]
    catalog: Vec<Service>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    name: Option<String>,
    domain: Option<Named>,
}

#[derive(Deserialize)]
struct Role {
    name: String,
}

#[derive(Deserialize)]
struct ApplicationCredential {
    access_rules: Option<Vec<AccessRule>>,
}

#[derive(Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
}

impl Identity {
    /// From Keystone's answer, `{"token": …}`.
    ///
    /// # Errors
    /// It is not such a document. The text says where, and quotes no value of it.
    pub fn parse(document: &str) -> Result<Self, String> {
        let unusable =
            |error: &serde_json::Error| format!("at line {} column {}", error.line(), error.column());
        let text: Box<RawValue> = serde_json::from_str(document).map_err(|error| unusable(&error))?;
        let Document { token } = serde_json::from_str(text.get()).map_err(|error| unusable(&error))?;
        let roles: Vec<String> = token.roles.into_iter().map(|role| role.name).collect();
        let (project_id, project_name) = token.project.map_or((None, None), |it| (Some(it.id), it.name));
        let (domain_id, domain_name) = token
            .user
            .domain
            .map_or((None, None), |it| (Some(it.id), it.name));
        Ok(Self {
            size: text.get().len(),
            caller: Caller {
                user_id: Some(token.user.id),
                user_name: token.user.name,
                project_id,
                project_name,
                user_domain_id: domain_id,
                user_domain_name: domain_name,
                is_admin: is_admin(&roles),
                roles,
                auth_token: None,
                auth_token_info: Some(Arc::from(text)),
                auth_url: None,
            },
            expires_at: token.expires_at,
            access_rules: token.application_credential.and_then(|it| it.access_rules),
            bound_to: token
                .bind
                .map_or_else(Vec::new, |bind| bind.into_iter().map(|(kind, _)| kind).collect()),
            service_types: token.catalog.into_iter().map(|service| service.kind).collect(),
        })
    }

    /// Whether it has one of these roles.
    pub fn has_any_role(&self, roles: &[String]) -> bool {
        self.caller.roles.iter().any(|role| roles.contains(role))
    }

    /// Whether the catalog has a service of this type.
    pub fn knows_service(&self, kind: &str) -> bool {
        self.service_types.iter().any(|found| found == kind)
    }

    /// Bytes of the document.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The document.
    pub fn document(&self) -> &str {
        self.caller.auth_token_info.as_ref().map_or("", |text| text.get())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(token: &Value) -> Identity {
        Identity::parse(&json!({ "token": token }).to_string()).unwrap()
    }

    #[test]
    fn project_token_has_user_project_and_roles() {
        let identity = of(&json!({
            "methods": ["password"], "expires_at": "2099-01-01T00:00:00.000000Z", "is_domain": false,
            "user": {"id": "u", "name": "anna", "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "p", "name": "north", "domain": {"id": "d2", "name": "D2"}},
            "roles": [{"id": "1", "name": "Admin"}, {"id": "2", "name": "member"}],
            "catalog": [{"type": "identity", "endpoints": []}],
        }));
        let caller = &identity.caller;
        assert_eq!(caller.user_id.as_deref(), Some("u"));
        assert_eq!(caller.user_name.as_deref(), Some("anna"));
        assert_eq!(caller.project_id.as_deref(), Some("p"));
        assert_eq!(caller.project_name.as_deref(), Some("north"));
        assert_eq!(caller.user_domain_id.as_deref(), Some("default"));
        assert_eq!(caller.user_domain_name.as_deref(), Some("Default"));
        assert_eq!(caller.roles, ["Admin", "member"]);
        assert!(caller.is_admin);
        assert!(identity.has_any_role(&["x".to_owned(), "member".to_owned()]));
        assert!(!identity.has_any_role(&["service".to_owned()]));
        assert!(identity.knows_service("identity") && !identity.knows_service("compute"));
        assert_eq!((identity.access_rules, identity.bound_to.len()), (None, 0));
        assert_eq!(identity.expires_at.to_rfc3339(), "2099-01-01T00:00:00+00:00");
    }

    #[test]
    fn a_token_without_a_project_belongs_to_nobodys_project() {
        for scope in [
            json!({}),
            json!({"domain": {"id": "default", "name": "Default"}, "roles": [{"id": "1", "name": "admin"}]}),
            json!({"system": {"all": true}, "roles": [{"id": "1", "name": "admin"}]}),
        ] {
            let mut token = json!({"expires_at": "2099-01-01T00:00:00.000000Z", "user": {"id": "u"}});
            for (key, value) in scope.as_object().unwrap() {
                token[key] = value.clone();
            }
            let identity = of(&token);
            assert_eq!(
                (identity.caller.project_id, identity.caller.user_id.as_deref()),
                (None, Some("u"))
            );
        }
    }

    #[test]
    fn limits_of_a_token_are_seen() {
        let identity = of(&json!({
            "expires_at": "2099-01-01T00:00:00.000000Z", "user": {"id": "u"}, "bind": {"kerberos": "anna@X"},
            "application_credential": {"id": "a", "access_rules": [
                {"service": "container-infra", "method": "GET", "path": "/v1/clusters"}]},
        }));
        assert_eq!(
            (identity.access_rules.unwrap().len(), identity.bound_to),
            (1, vec!["kerberos".to_owned()])
        );
    }

    #[test]
    fn malformed_token_document_is_refused_without_quoting_it() {
        for document in [
            "",
            "<html>",
            "{}",
            r#"{"token": {}}"#,
            r#"{"token": {"expires_at": "secret", "user": {"id": "u"}}}"#,
        ] {
            let told = Identity::parse(document).map(|_| ()).unwrap_err();
            assert!(told.starts_with("at line") && !told.contains("secret"), "{told}");
        }
    }
}
