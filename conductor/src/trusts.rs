//! Users and trusts of clusters in Keystone, for drivers whose clusters act in the cloud by a trust (plugin-host.md,
//! section 7; heat-drivers.md, section 7).
//!
//! Guarantees: what is made in Keystone has a row first ([`crate::store::cluster_trusts`]), so it is found and removed
//! whatever crashes; an attempt that is repeated uses what the one before has made; passwords are sealed at rest.
//!
//! Not guaranteed: that a trust still works. Keystone ends it when its trustor is deleted or loses a role.
//!
//! Where Magnum (up to 22) differs: it keeps the password in the cluster's row in clear, creates a second user after a
//! crash and fails, and forgets both where their removal fails.

mod keep;
mod keystone;
mod password;

pub use keep::keep;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_db::{Database, DbError};
use magnum_driver_api::{ClusterTrust, ClusterTrusts, DriverError, Reason};
use magnum_openstack::ServiceError;
use magnum_telemetry::field;
use serde_json::Value;

use self::keystone::{TrusteeDomain, Trustor};
use crate::seal::{JournalKey, Place, SealError};
use crate::store::cluster_trusts::{self, TrustRow};

/// Makes, reads and removes them. Cheap to clone.
#[derive(Clone)]
pub struct Trusts {
    db: Database,
    key: Arc<JournalKey>,
    /// Or why there is none: it is told to whoever needs it.
    domain: Result<Arc<TrusteeDomain>, ServiceError>,
    roles: Arc<Vec<String>>,
}

impl Trusts {
    /// By `[trust]`. Connects to nothing yet.
    pub fn new(settings: &Settings, db: Database, key: Arc<JournalKey>) -> Self {
        Self {
            db,
            key,
            domain: TrusteeDomain::new(settings).map(Arc::new),
            roles: Arc::new(settings.trust.roles.clone()),
        }
    }

    /// Removes a cluster's trust and user from Keystone.
    ///
    /// # Errors
    /// Keystone is away or refuses, or an option of `[trust]` is missing.
    pub async fn remove(&self, row: &TrustRow) -> Result<(), ServiceError> {
        let domain = self.domain.as_ref().map_err(ServiceError::clone)?;
        if let (Some(trust), Some(user)) = (&row.trust_id, &row.trustee_user_id) {
            let password = match open(&self.key, row) {
                Ok(password) => password,
                // Only the trustee may remove a trust whose maker is gone. Nobody else logs in as this user, and the cluster is
                // gone: it gets another password.
                Err(error) => {
                    tracing::warn!(%error, "the password of the cluster's user is lost; the user gets another one");
                    let password = Secret::new(password::generate());
                    domain.set_password(user, &password).await?;
                    password
                }
            };
            domain.remove_trust(trust, user, password).await?;
        }
        domain
            .remove_user(row.trustee_user_id.as_deref(), &row.trustee_username)
            .await
    }

    async fn find(&self, cluster: &ClusterUuid) -> Result<Option<TrustRow>, DriverError> {
        let cluster = cluster.clone();
        let found = self
            .db
            .run(move |conn| cluster_trusts::find_many(conn, &[cluster.as_str()]));
        Ok(found.await.map_err(|error| database(&error))?.pop())
    }

    /// Writes down what is about to be made. Of two that do so at once, one is first, and both use what it wrote.
    async fn begin(&self, cluster: &Cluster) -> Result<TrustRow, DriverError> {
        let password = Secret::new(password::generate());
        let row = TrustRow {
            cluster_uuid: cluster.uuid.clone(),
            trustee_username: format!(
                "{}_{}",
                cluster.uuid,
                cluster.project_id.as_deref().unwrap_or_default()
            ),
            trustee_user_id: None,
            trust_id: None,
            sealed_password: seal(&self.key, &cluster.uuid, &password)
                .map_err(|error| not_sealed(cluster, &error))?,
            failures: 0,
            created_ms: 0,
        };
        let added = row.clone();
        let inserted = self
            .db
            .transaction(move |conn| cluster_trusts::insert(conn, &added));
        if inserted.await.map_err(|error| database(&error))? {
            return Ok(row);
        }
        self.find(&cluster.uuid).await?.ok_or(DriverError::Cancelled)
    }
}

#[async_trait]
impl ClusterTrusts for Trusts {
    async fn ensure(&self, cluster: &Cluster, context: &RequestContext) -> Result<ClusterTrust, DriverError> {
        let (row, is_repeated) = match self.find(&cluster.uuid).await? {
            Some(row) => (row, true),
            None => (self.begin(cluster).await?, false),
        };
        let trustee_password = open(&self.key, &row).map_err(|error| not_sealed(cluster, &error))?;
        // What is there already needs no Keystone.
        let domain = || self.domain.as_ref().map_err(|error| failed(cluster, error));
        let trustee_user_id = match row.trustee_user_id {
            Some(id) => id,
            None => {
                let made = domain()?
                    .make_user(&row.trustee_username, &trustee_password)
                    .await;
                let id = made.map_err(|error| failed(cluster, &error))?;
                let (uuid, user) = (cluster.uuid.clone(), id.clone());
                let written = self
                    .db
                    .run(move |conn| cluster_trusts::set_trustee(conn, &uuid, &user));
                written.await.map_err(|error| database(&error))?;
                id
            }
        };
        let trust_id = match row.trust_id {
            Some(id) => id,
            None => {
                let trustor = trustor(context, &self.roles)
                    .map_err(|missing| DriverError::Permanent(of_cluster(cluster, &missing.into())))?;
                let made = domain()?
                    .make_trust(&trustor, &trustee_user_id, is_repeated)
                    .await;
                let id = made.map_err(|error| failed(cluster, &error))?;
                let (uuid, trust) = (cluster.uuid.clone(), id.clone());
                let written = self
                    .db
                    .run(move |conn| cluster_trusts::set_trust(conn, &uuid, &trust));
                written.await.map_err(|error| database(&error))?;
                id
            }
        };
        Ok(ClusterTrust {
            trust_id,
            trustee_user_id,
            trustee_username: row.trustee_username,
            trustee_password,
        })
    }

    async fn of(&self, clusters: &[ClusterUuid]) -> Result<HashMap<ClusterUuid, ClusterTrust>, DriverError> {
        let wanted = clusters.to_vec();
        let found = self.db.run(move |conn| {
            let wanted: Vec<&str> = wanted.iter().map(ClusterUuid::as_str).collect();
            cluster_trusts::find_many(conn, &wanted)
        });
        let mut trusts = HashMap::new();
        for row in found.await.map_err(|error| database(&error))? {
            let (Some(trust_id), Some(trustee_user_id)) = (row.trust_id.clone(), row.trustee_user_id.clone())
            else {
                continue;
            };
            let password = match open(&self.key, &row) {
                Ok(password) => password,
                // One that cannot be opened must not keep others from being looked at, nor its cluster from being deleted.
                Err(error) => {
                    tracing::warn!({ field::CLUSTER } = %row.cluster_uuid, %error, "the cluster's trust cannot be used");
                    continue;
                }
            };
            let trust = ClusterTrust {
                trust_id,
                trustee_user_id,
                trustee_username: row.trustee_username,
                trustee_password: password,
            };
            trusts.insert(row.cluster_uuid, trust);
        }
        Ok(trusts)
    }
}

/// Who asks, with the roles of `[trust]`, else with all of the request's.
fn trustor(context: &RequestContext, roles: &[String]) -> Result<Trustor, &'static str> {
    let text = |name: &str| Some(context.get(name)?.as_str()?.to_owned());
    let token = text("auth_token").ok_or("the request has no token")?;
    let own = context.get("roles");
    let own = own.as_deref().and_then(Value::as_array).into_iter().flatten();
    let own = own.filter_map(Value::as_str);
    Ok(Trustor {
        token: Secret::new(token),
        user: text("user_id").ok_or("the request has no user")?,
        project: text("project_id").ok_or("the request has no project")?,
        roles: if roles.is_empty() {
            own.map(str::to_owned).collect()
        } else {
            roles.to_vec()
        },
    })
}

/// A cluster's password for the table.
///
/// # Errors
/// The system has no random numbers.
pub fn seal(key: &JournalKey, cluster: &ClusterUuid, password: &Secret) -> Result<Vec<u8>, SealError> {
    key.seal(
        Place::TrustPassword(cluster.as_str()),
        password.expose().as_bytes(),
    )
}

fn open(key: &JournalKey, row: &TrustRow) -> Result<Secret, SealError> {
    let place = Place::TrustPassword(row.cluster_uuid.as_str());
    let opened = key.open(place, row.created_ms, &row.sealed_password)?;
    Ok(Secret::new(
        String::from_utf8(opened).map_err(|_| SealError::UnknownLayout)?,
    ))
}

fn failed(cluster: &Cluster, error: &ServiceError) -> DriverError {
    DriverError::of(error.class(), of_cluster(cluster, &Reason::from(error)))
}

fn not_sealed(cluster: &Cluster, error: &SealError) -> DriverError {
    let reason = Reason::internal("its password cannot be sealed or opened", error.to_string());
    DriverError::Permanent(of_cluster(cluster, &reason))
}

/// Begins as Magnum's.
fn of_cluster(cluster: &Cluster, reason: &Reason) -> Reason {
    let with = |text: &str| {
        format!(
            "Failed to create trustee or trust for Cluster: {}: {text}",
            cluster.uuid
        )
    };
    Reason::internal(with(reason.told()), with(reason.whole()))
}

fn database(error: &DbError) -> DriverError {
    DriverError::Transient(Reason::internal(
        "The conductor's database is not available",
        error.to_string(),
    ))
}
