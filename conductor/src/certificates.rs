//! Certificates of clusters: a set of CAs and a client certificate for each, and signing what users ask for.
//!
//! ```text
//! magnum-x509     keys, requests and certificates as bytes      key_pool.rs  keys made ahead of need
//! manager.rs      where they are kept: x509keypair.rs, barbican.rs, local.rs      material.rs  opened for drivers
//! ```
//!
//! What is stored is read with the manager of `[certificates] cert_manager_type`; what is to be removed may have been
//! stored with another one, from before that option was changed, and is removed by it.
//!
//! Guarantees: [`Certificates::generate`] may be repeated for one operation, by any conductor, after any crash, and
//! comes to the same set; what it could not finish it names, so that it can be removed. Work on keys runs on
//! blocking threads, as many at once as there are processors, so that neither the heartbeat nor a lease waits for
//! it. Private keys are in no log and no error. A question ([`Certificates::sign`], [`Certificates::ca`]) is answered
//! within half of `[DEFAULT] rpc_response_timeout`, be it with a failure.
//!
//! Not guaranteed: that a certificate can be withdrawn before it expires. Magnum has no revocation either.

mod error;
pub mod key_pool;
pub mod manager;
mod material;
mod resealing;

use std::sync::Arc;
use std::time::Duration;

use crate::seal::JournalKey;
use magnum_common::clock::utc_now;
use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::Cluster;
use magnum_config::{CertManagerType, Settings};
use magnum_db::Database;
use magnum_x509::authority::{Authority, authority_name};
use magnum_x509::extensions::Rules;
use magnum_x509::key::PrivateKey;
use magnum_x509::{CertificateFormatError, signing};
use tokio::sync::{Notify, Semaphore};

pub use self::error::{Cause, CertificateError};
use self::key_pool::KeyPool;
use self::manager::{CertificateManager, Entry, ManagerError, Managers, Slot, Stored};
use self::material::OpenedMaterial;
pub use self::resealing::reseal;
use crate::metric_definitions as metric;
use crate::workflows::CertificateRefs;

/// What Magnum calls the conductor's client certificate in a store.
const CLIENT_NAME: &str = "Magnum-Conductor";

/// Makes, keeps, finds and signs. Cheap to clone.
#[derive(Clone)]
pub struct Certificates {
    inner: Arc<Inner>,
    #[cfg(feature = "test-support")]
    made_up: bool,
}

struct Inner {
    own: CertManagerType,
    managers: Managers,
    /// Longest wait for an answer to a question.
    patience: Duration,
    pool: KeyPool,
    rules: Rules,
    opened: OpenedMaterial,
    /// Something was forgotten that is to be removed.
    removal: Notify,
    /// As many as there are processors: more keys at once would only all come later.
    workers: Semaphore,
}

impl Certificates {
    /// With the manager that `[certificates] cert_manager_type` names. Touches neither store nor network. What is
    /// missing for Barbican, the default, is an error of the first certificate that needs it: a conductor of clusters
    /// without certificates runs without.
    pub fn new(settings: &Settings, db: Database, key: JournalKey) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            inner: Arc::new(Inner {
                own: settings.certificates.cert_manager_type,
                pool: KeyPool::configured(settings, db.clone(), Arc::new(key.clone())),
                managers: Managers::new(settings, db, key),
                patience: settings.default.rpc_response_timeout / 2,
                rules: Rules::from(&settings.x509),
                opened: OpenedMaterial::default(),
                removal: Notify::new(),
                workers: Semaphore::new(processors),
            }),
            #[cfg(feature = "test-support")]
            made_up: false,
        }
    }

    /// The same, but [`Self::generate`] makes no keys and refers to nothing: for simulations, whose drivers need none.
    #[cfg(feature = "test-support")]
    #[must_use]
    pub fn made_up(self) -> Self {
        Self {
            made_up: true,
            ..self
        }
    }

    /// The complete set of a cluster. An earlier attempt of the same operation has left all of it, some or
    /// nothing: what is there is taken over, what is not is made.
    ///
    /// # Errors
    /// [`CertificateError::NotCreated`], with what is stored by now.
    pub async fn generate(
        &self,
        cluster: &Cluster,
        context: &RequestContext,
        operation: &OperationId,
    ) -> Result<CertificateRefs, CertificateError> {
        #[cfg(feature = "test-support")]
        if self.made_up {
            return Ok(CertificateRefs {
                ca: "ca".to_owned(),
                magnum: "magnum".to_owned(),
                etcd_ca: "etcd".to_owned(),
                front_proxy_ca: "front-proxy".to_owned(),
            });
        }
        let owner = |of_row: &Option<String>, of_context: Option<&str>| {
            of_row.clone().or_else(|| of_context.map(str::to_owned))
        };
        let ca_name = authority_name(cluster.name.as_deref(), cluster.uuid.as_str());
        let entry = |slot, name: &str| Entry {
            operation: operation.clone(),
            slot,
            name: name.to_owned(),
            project_id: owner(&cluster.project_id, context.project_id()),
            user_id: owner(&cluster.user_id, context.user_id()),
        };
        let (ca, etcd_ca, front_proxy_ca) = tokio::join!(
            self.authority(entry(Slot::KubernetesCa, ca_name)),
            self.authority(entry(Slot::EtcdCa, ca_name)),
            self.authority(entry(Slot::FrontProxyCa, ca_name)),
        );
        let magnum = match &ca {
            Ok(ca) => Some(self.client(entry(Slot::Client, CLIENT_NAME), ca).await),
            Err(_) => None,
        };
        let reference = |stored: Stored| stored.reference;
        match (
            ca.map(reference),
            magnum,
            etcd_ca.map(reference),
            front_proxy_ca.map(reference),
        ) {
            (Ok(ca), Some(Ok(magnum)), Ok(etcd_ca), Ok(front_proxy_ca)) => Ok(CertificateRefs {
                ca,
                magnum,
                etcd_ca,
                front_proxy_ca,
            }),
            (ca, magnum, etcd_ca, front_proxy_ca) => {
                let mut stored = Vec::new();
                let mut causes = Vec::new();
                for part in [Some(ca), magnum, Some(etcd_ca), Some(front_proxy_ca)] {
                    match part {
                        Some(Ok(reference)) => stored.push(reference),
                        Some(Err(cause)) => causes.push(cause),
                        None => {}
                    }
                }
                Err(CertificateError::not_created(
                    cluster.uuid.clone(),
                    causes,
                    stored,
                ))
            }
        }
    }

    /// The manager of `[certificates] cert_manager_type`, which keeps what is made now.
    pub fn kind(&self) -> CertManagerType {
        self.inner.own
    }

    /// Keys made ahead of need.
    pub fn key_pool(&self) -> &KeyPool {
        &self.inner.pool
    }

    /// Opens sealed private keys.
    pub(crate) fn sealing(&self) -> manager::Sealing {
        self.inner.managers.sealing().clone()
    }

    fn manager(&self) -> &dyn CertificateManager {
        self.inner.managers.get(self.inner.own)
    }

    /// The manager that has something to remove.
    fn remover(&self, kind: CertManagerType) -> Result<&dyn CertificateManager, Cause> {
        if kind != self.inner.own
            && let Some(reason) = self.inner.managers.missing(kind)
        {
            return Err(ManagerError::NotConfigured { kind, reason }.into());
        }
        Ok(self.inner.managers.get(kind))
    }

    /// Removes what an operation has made with a manager, whatever there is of it. `name` is what the CAs are called.
    ///
    /// # Errors
    /// The store did not do it, or is not configured any more.
    pub async fn remove_made_by(
        &self,
        kind: CertManagerType,
        operation: &OperationId,
        name: &str,
    ) -> Result<(), CertificateError> {
        let manager = self.remover(kind)?;
        for slot in Slot::ALL {
            let entry = Entry {
                operation: operation.clone(),
                slot: *slot,
                name: if *slot == Slot::Client { CLIENT_NAME } else { name }.to_owned(),
                project_id: None,
                user_id: None,
            };
            manager.delete_made(&entry).await.map_err(Cause::from)?;
        }
        Ok(())
    }

    /// Removes what is behind a reference of a manager. `Ok` also when nothing is there any more.
    ///
    /// # Errors
    /// The store did not do it, or is not configured any more.
    pub async fn remove_from(&self, kind: CertManagerType, reference: &str) -> Result<(), CertificateError> {
        Ok(self.remover(kind)?.delete(reference).await.map_err(Cause::from)?)
    }

    /// [`Self::remove_from`] the manager that keeps what is made now.
    ///
    /// # Errors
    /// The store did not do it.
    pub async fn remove(&self, reference: &str) -> Result<(), CertificateError> {
        self.remove_from(self.inner.own, reference).await
    }

    /// Something was just handed to [`crate::store::certificate_removals`]: it need not wait for the next round. Saves time, and nothing depends on it.
    pub fn wake_removal(&self) {
        self.inner.removal.notify_one();
    }

    /// Waits for [`Self::wake_removal`].
    pub async fn removal_wanted(&self) {
        self.inner.removal.notified().await;
    }

    /// A request for a certificate, signed by the CA behind a reference. PEM without a newline at its end.
    ///
    /// # Errors
    /// The CA cannot be read, or not in time; or the request is refused: see [`SigningError`](magnum_x509::SigningError).
    pub async fn sign(&self, reference: &str, csr: &str) -> Result<String, CertificateError> {
        let pair = self.in_time(self.manager().get(reference)).await?;
        let (csr, rules) = (csr.to_owned(), self.inner.rules.clone());
        Ok(self
            .work(move || {
                let ca = Authority::open(&pair)?;
                Ok(signing::sign(&csr, &ca, &rules, utc_now().into())?)
            })
            .await?)
    }

    /// The certificate of the CA behind a reference, as PEM.
    ///
    /// # Errors
    /// It cannot be read, or not in time.
    pub async fn ca(&self, reference: &str) -> Result<String, CertificateError> {
        Ok(self.in_time(self.manager().certificate(reference)).await?)
    }

    /// Limits a read to half of `rpc_response_timeout`, since a caller waits for it.
    async fn in_time<T>(&self, reading: impl Future<Output = Result<T, ManagerError>>) -> Result<T, Cause> {
        let patience = self.inner.patience;
        match tokio::time::timeout(patience, reading).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(Cause::Late(patience)),
        }
    }

    async fn authority(&self, entry: Entry) -> Result<Stored, Cause> {
        if let Some(stored) = self.manager().find(&entry).await? {
            return Ok(stored);
        }
        let (key, days, name) = (self.new_key().await?, self.inner.rules.days, entry.name.clone());
        let pair = self
            .work(move || Ok(Authority::new(&name, key, days, utc_now().into())?.1))
            .await?;
        Ok(self.manager().store(&entry, pair).await?)
    }

    async fn client(&self, entry: Entry, ca: &Stored) -> Result<String, Cause> {
        let (found, ca) = (self.manager().find(&entry).await?, ca.pair.clone());
        let ca = self.work(move || Ok(Authority::open(&ca)?)).await?;
        match found {
            Some(stored) if ca.has_signed(&stored.pair) => return Ok(stored.reference),
            // It belongs to a CA that was removed since.
            Some(stale) => self.manager().delete(&stale.reference).await?,
            None => {}
        }
        let (key, days) = (self.new_key().await?, self.inner.rules.days);
        let pair = self
            .work(move || Ok(ca.client(&key, days, utc_now().into())?))
            .await?;
        Ok(self.manager().store(&entry, pair).await?.reference)
    }

    /// From the pool, or made now where there is none in it.
    async fn new_key(&self) -> Result<PrivateKey, Cause> {
        if let Some(key) = self.inner.pool.take().await {
            return Ok(key);
        }
        metrics::counter!(metric::KEYS_GENERATED).increment(1);
        let kind = self.inner.pool.kind();
        self.work(move || Ok(PrivateKey::generate(kind).map_err(CertificateFormatError::from)?))
            .await
    }

    /// Runs work on keys beside the runtime's threads.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, Cause> {
        // Never closed; without a permit the work is done all the same.
        let _permit = self.inner.workers.acquire().await.ok();
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || span.in_scope(work))
            .await
            .map_err(|error| Cause::Interrupted(error.to_string()))?
    }
}
