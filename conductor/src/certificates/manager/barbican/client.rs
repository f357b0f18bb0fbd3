//! Barbican's REST API, as far as certificates need it: containers of type `certificate`, and secrets that are text.
//!
//! One request each, nothing repeated. Deleting what is not there succeeds. Knows nothing of operations.

use std::sync::OnceLock;

use magnum_openstack::{Credentials, Endpoint, Method, Reply, ServiceError, ServiceRequest, Session};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) const SERVICE: &str = "Barbican";

/// Barbican, as the service user sees it.
pub(super) struct Client {
    credentials: Result<Credentials, String>,
    /// Made when it is needed, or what is wrong with the options.
    session: OnceLock<Result<Session, String>>,
    endpoint: Endpoint,
}

/// A container as Barbican describes it.
pub(super) struct Container {
    pub(super) reference: String,
    pub(super) name: String,
    created: String,
    /// Slot and secret's reference.
    secrets: Vec<(String, String)>,
}

impl Container {
    fn read(value: &Value) -> Option<Self> {
        let secrets = value["secret_refs"].as_array()?;
        Some(Self {
            reference: value["container_ref"].as_str()?.to_owned(),
            name: value["name"].as_str().unwrap_or_default().to_owned(),
            created: value["created"].as_str().unwrap_or_default().to_owned(),
            secrets: secrets
                .iter()
                .filter_map(|secret| {
                    let (slot, reference) = (secret["name"].as_str()?, secret["secret_ref"].as_str()?);
                    Some((slot.to_owned(), reference.to_owned()))
                })
                .collect(),
        })
    }

    /// References of its secrets.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(|(_, reference)| reference.as_str())
    }

    /// The reference of the secret in a slot.
    pub(super) fn secret(&self, slot: &str) -> Option<&str> {
        let found = self.secrets.iter().find(|(name, _)| name == slot);
        found.map(|(_, reference)| reference.as_str())
    }

    /// Whether a secret, by its reference, is in it.
    pub(super) fn has(&self, secret: &str) -> bool {
        let wanted = id(secret);
        wanted.is_some() && self.secrets().any(|reference| id(reference) == wanted)
    }
}

/// The id at the end of a reference. Rows come from many releases; only an id may become part of a path.
fn id(reference: &str) -> Option<Uuid> {
    Uuid::try_parse(reference.trim_end_matches('/').rsplit('/').next()?).ok()
}

/// `None` instead of a 404.
fn none_if_missing<T>(outcome: Result<T, ServiceError>) -> Result<Option<T>, ServiceError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(ServiceError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Client {
    pub(super) fn new(
        credentials: Result<Credentials, ServiceError>,
        endpoint_type: &str,
        region: Option<String>,
    ) -> Self {
        Self {
            credentials: credentials.map_err(|error| error.to_string()),
            session: OnceLock::new(),
            endpoint: Endpoint::new(
                SERVICE,
                &["key-manager"],
                "barbican_client",
                endpoint_type,
                region,
            ),
        }
    }

    fn session(&self) -> Result<&Session, &String> {
        let made = self.session.get_or_init(|| {
            let credentials = self.credentials.clone()?;
            Session::new(credentials).map_err(|error| error.to_string())
        });
        made.as_ref()
    }

    /// What is wrong with the options, if anything.
    pub(super) fn missing(&self) -> Option<&str> {
        self.session().err().map(String::as_str)
    }

    /// Checks that Barbican accepts the service user.
    pub(super) async fn probe(&self) -> Result<(), ServiceError> {
        let reply = self
            .request(Method::GET, "containers", &[("limit", "1")], None)
            .await?;
        if reply.json()?["containers"].is_array() {
            Ok(())
        } else {
            Err(reply.unusable("it is no list"))
        }
    }

    /// The container behind a reference; `None`: there is none.
    pub(super) async fn container(&self, reference: &str) -> Result<Option<Container>, ServiceError> {
        let Some(id) = id(reference) else { return Ok(None) };
        let path = format!("containers/{id}");
        let Some(reply) = none_if_missing(self.request(Method::GET, &path, &[], None).await)? else {
            return Ok(None);
        };
        let container = Container::read(&reply.json()?);
        container
            .map(Some)
            .ok_or_else(|| reply.unusable("it is no container"))
    }

    /// The containers of this name, the oldest first.
    pub(super) async fn containers(&self, name: &str) -> Result<Vec<Container>, ServiceError> {
        let found = self.list("containers", name).await?;
        let mut found: Vec<Container> = found.iter().filter_map(Container::read).collect();
        found.sort_by(|a, b| (&a.created, &a.reference).cmp(&(&b.created, &b.reference)));
        Ok(found)
    }

    /// References of the secrets of this name.
    pub(super) async fn secrets(&self, name: &str) -> Result<Vec<String>, ServiceError> {
        let found = self.list("secrets", name).await?;
        Ok(found
            .iter()
            .filter_map(|secret| secret["secret_ref"].as_str().map(str::to_owned))
            .collect())
    }

    /// The text of a secret; `None`: there is none behind this reference.
    pub(super) async fn payload(&self, secret: &str) -> Result<Option<String>, ServiceError> {
        let Some(id) = id(secret) else { return Ok(None) };
        let path = format!("secrets/{id}/payload");
        match none_if_missing(self.request(Method::GET, &path, &[], None).await)? {
            Some(reply) => Ok(Some(reply.text()?)),
            None => Ok(None),
        }
    }

    /// A new secret. Returns its reference.
    pub(super) async fn create_secret(&self, name: &str, text: &str) -> Result<String, ServiceError> {
        let body = json!({ "name": name, "payload": text, "payload_content_type": "text/plain" });
        let reply = self.request(Method::POST, "secrets", &[], Some(&body)).await?;
        let reference = reply.json()?["secret_ref"].as_str().map(str::to_owned);
        reference.ok_or_else(|| reply.unusable("it has no secret_ref"))
    }

    /// A new container with these secrets: slot and reference.
    pub(super) async fn create_container(
        &self,
        name: &str,
        secrets: &[(&str, String)],
    ) -> Result<(), ServiceError> {
        let refs: Vec<Value> = secrets
            .iter()
            .map(|(slot, reference)| json!({ "name": slot, "secret_ref": reference }))
            .collect();
        let body = json!({ "name": name, "type": "certificate", "secret_refs": refs });
        let created = self.request(Method::POST, "containers", &[], Some(&body)).await;
        created.map(drop)
    }

    pub(super) async fn delete_secret(&self, reference: &str) -> Result<(), ServiceError> {
        self.delete("secrets", reference).await
    }

    pub(super) async fn delete_container(&self, container: &Container) -> Result<(), ServiceError> {
        self.delete("containers", &container.reference).await
    }

    async fn delete(&self, kind: &str, reference: &str) -> Result<(), ServiceError> {
        let Some(id) = id(reference) else { return Ok(()) };
        let path = format!("{kind}/{id}");
        none_if_missing(self.request(Method::DELETE, &path, &[], None).await).map(drop)
    }

    /// All of one kind that have this name.
    async fn list(&self, kind: &str, name: &str) -> Result<Vec<Value>, ServiceError> {
        let reply = self
            .request(Method::GET, kind, &[("name", name), ("limit", "100")], None)
            .await?;
        let mut document = reply.json()?;
        match document[kind].take() {
            // Asked for by name, but a release that ignores that would hand out everything.
            Value::Array(found) => Ok(found.into_iter().filter(|one| one["name"] == name).collect()),
            _ => Err(reply.unusable("it is no list")),
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply, ServiceError> {
        let path = format!("/v1/{path}");
        let has_secret = path == "/v1/secrets" && body.is_some();
        // Barbican returns the text of a secret as `text/plain` only.
        let accept = if path.ends_with("/payload") {
            "text/plain"
        } else {
            "application/json"
        };
        self.session()
            .map_err(|reason| ServiceError::Options(reason.clone()))?
            .request(&ServiceRequest {
                endpoint: &self.endpoint,
                method,
                path: &path,
                query,
                accept,
                body,
                headers: &[],
                has_secret,
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_at_the_end_of_a_reference_becomes_a_path() {
        let uuid = "6a1f7e0c-0000-4000-8000-000000000001";
        for good in [
            format!("http://b/v1/containers/{uuid}"),
            format!("{uuid}/"),
            uuid.to_owned(),
        ] {
            assert_eq!(id(&good).map(|id| id.to_string()).as_deref(), Some(uuid));
        }
        for bad in ["", "http://b/v1/containers/", "../secrets", "x?y"] {
            assert_eq!(id(bad), None);
        }
    }
}
