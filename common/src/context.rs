//! The request context: who asked, as it travels in every message.
//!
//! Magnum's context has 25 keys (`to_dict` in `magnum/common/context.py`). A context that arrived is kept as it is,
//! unknown keys included, and the parts that decisions need are read from it. The token and its document are
//! secrets: `Debug` leaves them out.
//!
//! The token's document holds the whole service catalogue: it is most of a message, and nothing here reads it. It
//! is kept as the text it came as. Clones share everything.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::ids::RequestId;

/// Who asked for something and with which rights. Keys have no `_context_` prefix here.
#[derive(Clone, Default, PartialEq)]
pub struct RequestContext {
    values: Arc<IndexMap<String, Kept>>,
}

/// The key of the token's document.
const TOKEN_INFO: &str = "auth_token_info";

/// One value: read, or as it came.
#[derive(Clone)]
enum Kept {
    Read(Value),
    Text(Arc<RawValue>),
}

impl Kept {
    fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Read(value) => Cow::Borrowed(value),
            // Valid JSON that is nested too deeply to be read counts as absent.
            Self::Text(text) => Cow::Owned(serde_json::from_str(text.get()).unwrap_or_default()),
        }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Only JSON knows what a piece of JSON text is.
            Self::Text(text) if serializer.is_human_readable() => (**text).serialize(serializer),
            _ => self.value().serialize(serializer),
        }
    }
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
    pub auth_token_info: Option<Arc<RawValue>>,
    pub auth_url: Option<String>,
    pub is_admin: bool,
}

impl RequestContext {
    /// A context from the keys of a message, prefix already removed. Never fails: absent keys read as null.
    pub fn from_map(values: Map<String, Value>) -> Self {
        let mut context = Self::default();
        for (name, value) in values {
            context.set(&name, value);
        }
        context
    }

    /// Takes the value of the key `name` out of a message that is being read.
    ///
    /// # Errors
    /// The message is no JSON there.
    pub fn take_value<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let value = if name == TOKEN_INFO {
            Kept::Text(map.next_value::<Box<RawValue>>()?.into())
        } else {
            Kept::Read(map.next_value()?)
        };
        Arc::make_mut(&mut self.values).insert(name.to_owned(), value);
        Ok(())
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
            "auth_token_info": null,
            "all_tenants": false,
        }) else {
            return Self::default();
        };
        let mut context = Self::from_map(values);
        if let Some(text) = &caller.auth_token_info {
            Arc::make_mut(&mut context.values).insert(TOKEN_INFO.to_owned(), Kept::Text(Arc::clone(text)));
        }
        context
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
    pub fn entries(&self) -> impl Iterator<Item = (&str, &impl Serialize)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Cow<'_, Value>> {
        self.values.get(key).map(Kept::value)
    }

    /// Sets the value of a key.
    pub fn set(&mut self, key: &str, value: Value) {
        let kept = match key {
            TOKEN_INFO => to_raw_value(&value).map_or(Kept::Read(value), |text| Kept::Text(text.into())),
            _ => Kept::Read(value),
        };
        Arc::make_mut(&mut self.values).insert(key.to_owned(), kept);
    }

    fn read(&self, key: &str) -> Option<&Value> {
        match self.values.get(key)? {
            Kept::Read(value) => Some(value),
            Kept::Text(_) => None,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.read(key).and_then(Value::as_str)
    }

    fn flag(&self, key: &str) -> bool {
        self.read(key).and_then(Value::as_bool).unwrap_or(false)
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
        self.set("all_tenants", Value::Bool(on));
    }

    /// The caller's roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.read("roles")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }
}

impl Serialize for RequestContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.entries())
    }
}

impl<'de> Deserialize<'de> for RequestContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = RequestContext;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the keys of a context")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RequestContext, A::Error> {
                let mut context = RequestContext::default();
                while let Some(key) = map.next_key::<String>()? {
                    context.take_value(&key, &mut map)?;
                }
                Ok(context)
            }
        }

        deserializer.deserialize_map(Keys)
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
        assert_eq!(context.entries().count(), 25);
        assert_eq!(*context.get("auth_token").unwrap(), "tok-1");
        assert_eq!(*context.get("user_identity").unwrap(), "u p - - -");
        assert!(!format!("{context:?}").contains("tok-1"));
    }

    #[test]
    fn the_tokens_document_is_passed_on_as_it_came() {
        let text = r#"{"token":  {"catalog": []}}"#;
        let caller = Caller {
            auth_token_info: Some(RawValue::from_string(text.to_owned()).unwrap().into()),
            ..Caller::default()
        };
        let context = RequestContext::for_caller(&caller, &RequestId::new("req-1"));
        assert_eq!(context.entries().count(), 25);
        assert!(serde_json::to_string(&context).unwrap().contains(text));
    }

    #[test]
    fn a_context_is_written_as_it_was_read() {
        let text = r#"{"user_id":"u","auth_token_info":{"token": {"catalog":[1.50,"ü"]}},"later_key":[{}]}"#;
        let context: RequestContext = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&context).unwrap(), text);
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(*context.get("auth_token_info").unwrap(), value["auth_token_info"]);
        assert_eq!(serde_json::to_value(&context).unwrap(), value);
        assert_eq!(
            serde_json::from_value::<RequestContext>(value.clone()).unwrap(),
            context
        );
        let packed = rmp_serde::to_vec_named(&context).unwrap();
        assert_eq!(rmp_serde::from_slice::<Value>(&packed).unwrap(), value);
    }

    #[test]
    fn a_document_nested_too_deeply_to_be_read_travels_on_and_reads_as_null() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let text = format!(r#"{{"auth_token_info":{deep}}}"#);
        let context: RequestContext = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&context).unwrap(), text);
        assert!(context.get("auth_token_info").unwrap().is_null());
    }

    #[test]
    fn an_empty_context_is_nobody() {
        let context = RequestContext::default();
        assert_eq!(context.user_id(), None);
        assert!(!context.is_admin());
        assert_eq!(context.roles().count(), 0);
    }
}
