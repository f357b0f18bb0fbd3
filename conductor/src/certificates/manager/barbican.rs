//! Barbican: a container of type `certificate` whose slots name text secrets, as Magnum keeps them. Any Magnum reads
//! ours, and ours any Magnum's.
//!
//! Names are the one difference: behind Magnum's name of a container or secret stands what it was made for. By it
//! the next attempt of an operation finds the container, or the secrets that a conductor left which was killed, or was
//! never told that they are there, before it had the container; the first are taken over, the second removed.
//!
//! Guarantees: once [`CertificateManager::find`] or `store` has returned something, nothing else of that entry is in
//! Barbican; once `delete` or `delete_made` has returned, nothing at all. What a request still brings there that was
//! given up before is removed with the rest, whenever that is. Not guaranteed: anything about containers that two
//! conductors make for one entry at once; leases see to it that they do not.

use std::sync::OnceLock;

use async_trait::async_trait;
use magnum_common::secret::Secret;
use magnum_openstack::{Ask, Credentials, Endpoint, Method, Reply, ServiceError, Session};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CertificateManager, Entry, ManagerError, Slot, Stored};
use crate::certificates::authority::KeyPair;

const SERVICE: &str = "Barbican";
const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private_key";
const INTERMEDIATES: &str = "intermediates";
const PASSPHRASE: &str = "private_key_passphrase";

/// Slots of a container, with what Magnum calls the secret in each.
const SLOTS: [(&str, &str); 4] = [
    (CERTIFICATE, "Certificate"),
    (PRIVATE_KEY, "Private Key"),
    (INTERMEDIATES, "Intermediates"),
    (PASSPHRASE, "Private Key Passphrase"),
];

/// The store in Barbican.
pub(in crate::certificates) struct Barbican {
    credentials: Result<Credentials, String>,
    /// Made when it is needed, or what is wrong with the options.
    session: OnceLock<Result<Session, String>>,
    endpoint: Endpoint,
}

/// A container as Barbican describes it.
struct Container {
    reference: String,
    name: String,
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

    fn has(&self, secret: &str) -> bool {
        let wanted = id(secret);
        wanted.is_some() && self.secrets.iter().any(|(_, reference)| id(reference) == wanted)
    }

    fn secret(&self, slot: &str) -> Option<&str> {
        let found = self.secrets.iter().find(|(name, _)| name == slot);
        found.map(|(_, reference)| reference.as_str())
    }
}

/// The id at the end of a reference. Rows come from many releases; only an id may become part of a path.
fn id(reference: &str) -> Option<Uuid> {
    Uuid::try_parse(reference.trim_end_matches('/').rsplit('/').next()?).ok()
}

fn gone<T>(outcome: Result<T, ServiceError>) -> Result<Option<T>, ServiceError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(ServiceError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Entry {
    /// What stands behind the names of everything that belongs to the entry.
    fn mark(&self) -> String {
        format!("({} of operation {})", self.slot.as_str(), self.operation)
    }

    fn named(&self, name: &str) -> String {
        format!("{name} {}", self.mark())
    }
}

/// The mark at the end of a name; none in a name of Magnum's.
fn mark_of(name: &str) -> Option<&str> {
    let mark = &name[name.rfind(" (")? + 1..];
    let (slot, operation) = mark
        .strip_prefix('(')?
        .strip_suffix(')')?
        .split_once(" of operation ")?;
    let is_ours = Slot::ALL.iter().any(|one| one.as_str() == slot) && Uuid::try_parse(operation).is_ok();
    is_ours.then_some(mark)
}

impl Barbican {
    pub(in crate::certificates) fn new(
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
    pub(in crate::certificates) fn missing(&self) -> Option<&str> {
        self.session().err().map(String::as_str)
    }

    /// Whether it answers the service user; stores nothing.
    pub(in crate::certificates) async fn look(&self) -> Result<(), ServiceError> {
        let listed = self.ask(Method::GET, "containers", &[("limit", "1")], None);
        let reply = listed.await?;
        if reply.json()?["containers"].is_array() {
            Ok(())
        } else {
            Err(reply.unusable("it is no list"))
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Reply, ServiceError> {
        let path = format!("/v1/{path}");
        let has_secret = path == "/v1/secrets" && body.is_some();
        // It gives a secret's text only to who wants no JSON.
        let accept = if path.ends_with("/payload") {
            "text/plain"
        } else {
            "application/json"
        };
        self.session()
            .map_err(|reason| ServiceError::Options(reason.clone()))?
            .request(&Ask {
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

    /// All of one kind that have this name.
    async fn list(&self, kind: &str, name: &str) -> Result<Vec<Value>, ServiceError> {
        let reply = self
            .ask(Method::GET, kind, &[("name", name), ("limit", "100")], None)
            .await?;
        let mut document = reply.json()?;
        match document[kind].take() {
            // Asked for by name, but a release that ignores that would hand out everything.
            Value::Array(found) => Ok(found.into_iter().filter(|one| one["name"] == name).collect()),
            _ => Err(reply.unusable("it is no list")),
        }
    }

    async fn container(&self, reference: &str) -> Result<Container, ManagerError> {
        let missing = || ManagerError::Missing(reference.to_owned());
        let id = id(reference).ok_or_else(missing)?;
        let reply = gone(
            self.ask(Method::GET, &format!("containers/{id}"), &[], None)
                .await,
        )?;
        let reply = reply.ok_or_else(missing)?;
        Container::read(&reply.json()?).ok_or_else(|| reply.unusable("it is no container").into())
    }

    async fn payload(&self, container: &Container, slot: &str) -> Result<Option<String>, ManagerError> {
        let Some(secret) = container.secret(slot) else {
            return Ok(None);
        };
        let unusable = |reason: String| ManagerError::Unusable {
            reference: container.reference.clone(),
            reason,
        };
        let id = id(secret).ok_or_else(|| unusable(format!("its {slot} is no reference")))?;
        let reply = gone(
            self.ask(Method::GET, &format!("secrets/{id}/payload"), &[], None)
                .await,
        )?;
        let reply = reply.ok_or_else(|| unusable(format!("its {slot} is gone")))?;
        Ok(Some(reply.text()?))
    }

    async fn wanted(&self, container: &Container, slot: &str) -> Result<String, ManagerError> {
        self.payload(container, slot)
            .await?
            .ok_or_else(|| ManagerError::Unusable {
                reference: container.reference.clone(),
                reason: format!("its container has no {slot}"),
            })
    }

    async fn pair(&self, container: &Container) -> Result<KeyPair, ManagerError> {
        Ok(KeyPair {
            certificate: self.wanted(container, CERTIFICATE).await?,
            private_key: Secret::new(self.wanted(container, PRIVATE_KEY).await?),
            passphrase: self.payload(container, PASSPHRASE).await?.map(Secret::new),
            intermediates: self.payload(container, INTERMEDIATES).await?,
        })
    }

    /// The containers of this name, the oldest first: that one counts, whoever made others.
    async fn containers(&self, name: &str) -> Result<Vec<Container>, ServiceError> {
        let found = self.list("containers", name).await?;
        let mut found: Vec<Container> = found.iter().filter_map(Container::read).collect();
        found.sort_by(|a, b| (&a.created, &a.reference).cmp(&(&b.created, &b.reference)));
        Ok(found)
    }

    async fn delete_secret(&self, reference: &str) -> Result<(), ServiceError> {
        let Some(id) = id(reference) else {
            return Ok(());
        };
        gone(
            self.ask(Method::DELETE, &format!("secrets/{id}"), &[], None)
                .await,
        )
        .map(drop)
    }

    async fn delete_container(&self, container: &Container) -> Result<(), ServiceError> {
        // The reference is Barbican's own.
        let Some(id) = id(&container.reference) else {
            return Ok(());
        };
        gone(
            self.ask(Method::DELETE, &format!("containers/{id}"), &[], None)
                .await,
        )
        .map(drop)
    }

    /// With its secrets, but for those that `kept` has as well.
    async fn delete_whole(
        &self,
        container: &Container,
        kept: Option<&Container>,
    ) -> Result<(), ServiceError> {
        for (_, secret) in &container.secrets {
            if !kept.is_some_and(|kept| kept.has(secret)) {
                self.delete_secret(secret).await?;
            }
        }
        self.delete_container(container).await
    }

    /// Secrets that bear this mark and are in no container: of attempts that ended before they had one, or were not
    /// told that a secret is there.
    async fn delete_leftovers(&self, mark: &str, kept: Option<&Container>) -> Result<(), ServiceError> {
        for (_, name) in SLOTS {
            for secret in self.list("secrets", &format!("{name} {mark}")).await? {
                match secret["secret_ref"].as_str() {
                    Some(reference) if !kept.is_some_and(|kept| kept.has(reference)) => {
                        self.delete_secret(reference).await?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Everything of this name and mark. Containers go last: what is interrupted is found by them again.
    async fn delete_all(&self, containers: &[Container], mark: Option<&str>) -> Result<(), ServiceError> {
        for (_, secret) in containers.iter().flat_map(|container| &container.secrets) {
            self.delete_secret(secret).await?;
        }
        if let Some(mark) = mark {
            self.delete_leftovers(mark, None).await?;
        }
        for container in containers {
            self.delete_container(container).await?;
        }
        Ok(())
    }

    /// The oldest container of the entry that can be used; all else of the entry is removed.
    async fn settled(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        let mut kept: Option<(Container, KeyPair)> = None;
        for container in self.containers(&entry.named(&entry.name)).await? {
            if let Some((oldest, _)) = &kept {
                // Made by a request that was taken for lost, or by another attempt: all come to the same one.
                self.delete_whole(&container, Some(oldest)).await?;
                continue;
            }
            match self.pair(&container).await {
                Ok(pair) => kept = Some((container, pair)),
                // A deletion that did not come to its end.
                Err(ManagerError::Unusable { .. }) => self.delete_whole(&container, None).await?,
                Err(error) => return Err(error),
            }
        }
        let Some((container, pair)) = kept else {
            return Ok(None);
        };
        self.delete_leftovers(&entry.mark(), Some(&container)).await?;
        let reference = container.reference;
        Ok(Some(Stored { reference, pair }))
    }

    async fn create_secrets(
        &self,
        entry: &Entry,
        pair: &KeyPair,
        made: &mut Vec<(&'static str, String)>,
    ) -> Result<(), ServiceError> {
        for (slot, name) in SLOTS {
            let text = match slot {
                CERTIFICATE => Some(pair.certificate.as_str()),
                PRIVATE_KEY => Some(pair.private_key.expose()),
                INTERMEDIATES => pair.intermediates.as_deref(),
                _ => pair.passphrase.as_ref().map(Secret::expose),
            };
            let Some(text) = text else { continue };
            let body = json!({
                "name": entry.named(name), "payload": text, "payload_content_type": "text/plain",
            });
            let reply = self.ask(Method::POST, "secrets", &[], Some(&body)).await?;
            let reference = reply.json()?["secret_ref"].as_str().map(str::to_owned);
            made.push((
                slot,
                reference.ok_or_else(|| reply.unusable("it has no secret_ref"))?,
            ));
        }
        Ok(())
    }

    async fn create(&self, entry: &Entry, pair: &KeyPair) -> Result<(), ServiceError> {
        let mut made = Vec::new();
        let created = match self.create_secrets(entry, pair, &mut made).await {
            Ok(()) => {
                let refs: Vec<Value> = made
                    .iter()
                    .map(|(slot, reference)| json!({ "name": slot, "secret_ref": reference }))
                    .collect();
                let body = json!({
                    "name": entry.named(&entry.name), "type": "certificate", "secret_refs": refs,
                });
                match self.ask(Method::POST, "containers", &[], Some(&body)).await {
                    // It may be there: its secrets stay, and the next attempt finds it, or removes them.
                    Err(error) if error.is_open() => return Err(error),
                    outcome => outcome.map(drop),
                }
            }
            Err(error) => Err(error),
        };
        if created.is_err() {
            for (_, secret) in &made {
                if let Err(error) = self.delete_secret(secret).await {
                    tracing::warn!(%error, secret, "a secret of an unfinished certificate stays in Barbican for now");
                }
            }
        }
        created
    }
}

#[async_trait]
impl CertificateManager for Barbican {
    async fn find(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        self.settled(entry).await
    }

    async fn store(&self, entry: &Entry, pair: KeyPair) -> Result<Stored, ManagerError> {
        self.create(entry, &pair).await?;
        let stored = self.settled(entry).await?;
        stored.ok_or_else(|| {
            ManagerError::from(ServiceError::Unavailable {
                service: SERVICE,
                reason: "a container is not there right after it was made".to_owned(),
            })
        })
    }

    async fn get(&self, reference: &str) -> Result<KeyPair, ManagerError> {
        let container = self.container(reference).await?;
        self.pair(&container).await
    }

    async fn certificate(&self, reference: &str) -> Result<String, ManagerError> {
        let container = self.container(reference).await?;
        self.wanted(&container, CERTIFICATE).await
    }

    async fn delete(&self, reference: &str) -> Result<(), ManagerError> {
        let container = match self.container(reference).await {
            Ok(container) => container,
            Err(ManagerError::Missing(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(mark) = mark_of(&container.name).map(str::to_owned) else {
            return Ok(self.delete_all(&[container], None).await?);
        };
        let containers = self.containers(&container.name).await?;
        Ok(self.delete_all(&containers, Some(&mark)).await?)
    }

    async fn delete_made(&self, entry: &Entry) -> Result<(), ManagerError> {
        let containers = self.containers(&entry.named(&entry.name)).await?;
        Ok(self.delete_all(&containers, Some(&entry.mark())).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_have_a_mark() {
        let entry = Entry {
            operation: "6a1f7e0c-0000-4000-8000-000000000001".into(),
            slot: Slot::EtcdCa,
            name: "k8s".into(),
            project_id: None,
            user_id: None,
        };
        assert_eq!(mark_of(&entry.named("k8s")), Some(&*entry.mark()));
        assert_eq!(mark_of(&entry.named("a (b)")), Some(&*entry.mark()));
        for theirs in [
            "k8s",
            "Magnum-Conductor",
            "a (etcd-ca of operation x)",
            "a (b of operation c)",
            " (",
            "",
            "ü (ü)",
        ] {
            assert_eq!(mark_of(theirs), None, "{theirs}");
        }
    }

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
