//! Barbican: a container of type `certificate` whose slots name text secrets, as Magnum keeps them. Any Magnum reads
//! ours, and ours any Magnum's.
//!
//! Names are the one difference (`naming.rs`): Magnum's name of a container or secret is followed by a mark with the
//! operation. By it the next attempt of the operation finds a complete container, which is taken over, or secrets without
//! a container, which are removed: their conductor was killed, or the response to their creation was lost.
//!
//! Guarantees: once [`CertificateManager::find`] or `store` has returned a container, nothing else of that entry is in
//! Barbican; once `delete` or `delete_made` has returned, nothing at all. What a request adds that had timed out before
//! is removed together with the rest by the next of these calls. Not guaranteed: anything about containers that two
//! conductors make for one entry at once; leases prevent that.

mod client;
mod naming;

use async_trait::async_trait;
use magnum_common::secret::Secret;
use magnum_openstack::{Credentials, ServiceError};

use self::client::{Client, Container, SERVICE};
use self::naming::mark_of;
use super::{CertificateManager, Entry, ManagerError, Stored};
use magnum_x509::authority::KeyPair;

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
    client: Client,
}

impl Barbican {
    pub(in crate::certificates) fn new(
        credentials: Result<Credentials, ServiceError>,
        endpoint_type: &str,
        region: Option<String>,
    ) -> Self {
        Self {
            client: Client::new(credentials, endpoint_type, region),
        }
    }

    /// What is wrong with the options, if anything.
    pub(in crate::certificates) fn missing(&self) -> Option<&str> {
        self.client.missing()
    }

    /// Checks that Barbican accepts the service user; stores nothing.
    ///
    /// # Errors
    /// The options are incomplete, Keystone or Barbican does not respond or refuses the user, or the catalog has no
    /// Barbican.
    pub(in crate::certificates) async fn probe(&self) -> Result<(), ServiceError> {
        self.client.probe().await
    }
}

/// Reading what a container holds.
impl Barbican {
    async fn container(&self, reference: &str) -> Result<Container, ManagerError> {
        let container = self.client.container(reference).await?;
        container.ok_or_else(|| ManagerError::Missing(reference.to_owned()))
    }

    async fn pair(&self, container: &Container) -> Result<KeyPair, ManagerError> {
        Ok(KeyPair {
            certificate: self.required(container, CERTIFICATE).await?,
            private_key: Secret::new(self.required(container, PRIVATE_KEY).await?),
            passphrase: self.optional(container, PASSPHRASE).await?.map(Secret::new),
            intermediates: self.optional(container, INTERMEDIATES).await?,
        })
    }

    async fn required(&self, container: &Container, slot: &str) -> Result<String, ManagerError> {
        self.optional(container, slot)
            .await?
            .ok_or_else(|| unusable(container, format!("its container has no {slot}")))
    }

    async fn optional(&self, container: &Container, slot: &str) -> Result<Option<String>, ManagerError> {
        let Some(secret) = container.secret(slot) else {
            return Ok(None);
        };
        match self.client.payload(secret).await? {
            Some(text) => Ok(Some(text)),
            None => Err(unusable(container, format!("its {slot} is gone"))),
        }
    }
}

fn unusable(container: &Container, reason: String) -> ManagerError {
    ManagerError::Unusable {
        reference: container.reference.clone(),
        reason,
    }
}

/// Making a container.
impl Barbican {
    /// Its secrets first, since a container names them.
    async fn create(&self, entry: &Entry, pair: &KeyPair) -> Result<(), ServiceError> {
        let mut secrets = Vec::new();
        let mut created = self.create_secrets(entry, pair, &mut secrets).await;
        if created.is_ok() {
            created = self
                .client
                .create_container(&entry.marked(&entry.name), &secrets)
                .await;
            // The container may exist: its secrets stay, and the next attempt finds it, or removes them.
            if created.as_ref().is_err_and(ServiceError::is_open) {
                return created;
            }
        }
        if created.is_err() {
            for (_, secret) in &secrets {
                if let Err(error) = self.client.delete_secret(secret).await {
                    tracing::warn!(%error, secret, "a secret of an unfinished certificate stays in Barbican for now");
                }
            }
        }
        created
    }

    /// Adds slot and reference of each secret to `made`, also when one of them fails.
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
            if let Some(text) = text {
                let reference = self.client.create_secret(&entry.marked(name), text).await?;
                made.push((slot, reference));
            }
        }
        Ok(())
    }

    /// The oldest container of the entry that can be used, whoever made it; all else of the entry is removed.
    async fn deduplicate(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        let mut kept: Option<(Container, KeyPair)> = None;
        for container in self.client.containers(&entry.marked(&entry.name)).await? {
            if let Some((oldest, _)) = &kept {
                // Made by a request whose response was lost, or by another attempt: all keep the same one.
                self.delete_one(&container, Some(oldest)).await?;
                continue;
            }
            match self.pair(&container).await {
                Ok(pair) => kept = Some((container, pair)),
                // Its deletion was interrupted.
                Err(ManagerError::Unusable { .. }) => self.delete_one(&container, None).await?,
                Err(error) => return Err(error),
            }
        }
        let Some((container, pair)) = kept else {
            return Ok(None);
        };
        self.delete_stray_secrets(&entry.mark(), Some(&container)).await?;
        let reference = container.reference;
        Ok(Some(Stored { reference, pair }))
    }
}

/// Deleting.
impl Barbican {
    /// A container with its secrets, but for those that `kept` has as well.
    async fn delete_one(&self, container: &Container, kept: Option<&Container>) -> Result<(), ServiceError> {
        for secret in container.secrets() {
            if !kept.is_some_and(|kept| kept.has(secret)) {
                self.client.delete_secret(secret).await?;
            }
        }
        self.client.delete_container(container).await
    }

    /// Removes the secrets with this mark that are not in `kept`: of attempts that ended before they had a container, or
    /// did not get the response to the creation of a secret.
    async fn delete_stray_secrets(&self, mark: &str, kept: Option<&Container>) -> Result<(), ServiceError> {
        for (_, name) in SLOTS {
            for secret in self.client.secrets(&format!("{name} {mark}")).await? {
                if !kept.is_some_and(|kept| kept.has(&secret)) {
                    self.client.delete_secret(&secret).await?;
                }
            }
        }
        Ok(())
    }

    /// These containers and all secrets of this mark. Containers go last: by them an interrupted deletion is found again.
    async fn delete_all(&self, containers: &[Container], mark: Option<&str>) -> Result<(), ServiceError> {
        for secret in containers.iter().flat_map(Container::secrets) {
            self.client.delete_secret(secret).await?;
        }
        if let Some(mark) = mark {
            self.delete_stray_secrets(mark, None).await?;
        }
        for container in containers {
            self.client.delete_container(container).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl CertificateManager for Barbican {
    async fn find(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        self.deduplicate(entry).await
    }

    async fn store(&self, entry: &Entry, pair: KeyPair) -> Result<Stored, ManagerError> {
        self.create(entry, &pair).await?;
        let stored = self.deduplicate(entry).await?;
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
        self.required(&container, CERTIFICATE).await
    }

    async fn delete(&self, reference: &str) -> Result<(), ManagerError> {
        let Some(container) = self.client.container(reference).await? else {
            return Ok(());
        };
        let Some(mark) = mark_of(&container.name).map(str::to_owned) else {
            return Ok(self.delete_all(&[container], None).await?);
        };
        let containers = self.client.containers(&container.name).await?;
        Ok(self.delete_all(&containers, Some(&mark)).await?)
    }

    async fn delete_made(&self, entry: &Entry) -> Result<(), ManagerError> {
        let containers = self.client.containers(&entry.marked(&entry.name)).await?;
        Ok(self.delete_all(&containers, Some(&entry.mark())).await?)
    }
}
