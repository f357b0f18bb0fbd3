//! The credential that a cluster has for the cloud: an application credential of the user who asked for the cluster.
//!
//! Keystone tells a credential's secret once. So a cluster's credential is the one whose id its secret in the management cluster has;
//! one that is in no secret is of no use. An attempt that was killed leaves such a one: the next attempt removes it, by the prefix of
//! its name.

use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_driver_api::{Cloud, DriverError};
use magnum_openstack::{Endpoint, Method, Service, ServiceError, ServiceRequest, Session};
use serde_json::{Value, json};

use crate::cloud::Questions;

/// A new credential.
#[derive(Debug)]
pub struct Credential {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
}

/// What the names of a cluster's credentials begin with.
fn prefix(cluster: &Cluster) -> String {
    format!("magnum-{}", cluster.uuid)
}

fn path(user: &str) -> String {
    format!("/users/{user}/application_credentials")
}

/// Makes one as the user who asked, with all roles that the user has in the project. `random` are eight digits of base 16.
///
/// # Errors
/// Keystone refuses it, or is away.
pub async fn create(
    questions: &Questions<'_>,
    user: &str,
    cluster: &Cluster,
    random: &str,
) -> Result<Credential, DriverError> {
    let name = cluster.name.as_deref().unwrap_or(cluster.uuid.as_str());
    let body = json!({"application_credential": {
        "name": format!("{}-{random}", prefix(cluster)),
        "description": format!("Magnum cluster ({name})"),
    }});
    let path = path(user);
    let reply = questions.post(Service::Keystone, &path, &body).await?;
    let made = reply.json()?["application_credential"].take();
    match (made["id"].as_str(), made["secret"].as_str()) {
        (Some(id), Some(secret)) => Ok(Credential {
            id: id.to_owned(),
            secret: Secret::new(secret),
        }),
        _ => Err(reply.unusable("it has no id or no secret").into()),
    }
}

/// Why a credential stays that should have gone.
#[derive(Debug, thiserror::Error)]
pub enum Stays {
    /// It is not there: so it does not.
    #[error("{0} does not exist.")]
    Missing(String),
    /// Its name says that it is no cluster's of ours.
    #[error("{0} is not managed by Magnum.")]
    Foreign(String),
    /// Keystone did not remove it.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Removes one as the service user.
///
/// # Errors
/// See [`Stays`].
pub async fn remove(cloud: &Cloud, user: &str, cluster: &Cluster, id: &str) -> Result<(), Stays> {
    let session = cloud.service()?;
    let keystone = cloud.endpoints().of(Service::Keystone);
    let path = format!("{}/{id}", path(user));
    let found = match session.request(&ServiceRequest::get(keystone, &path, &[])).await {
        Ok(reply) => reply.json()?,
        Err(ServiceError::NotFound { .. }) => return Err(Stays::Missing(id.to_owned())),
        Err(other) => return Err(other.into()),
    };
    let name: &Value = &found["application_credential"]["name"];
    if !name
        .as_str()
        .is_some_and(|name| name.starts_with(&prefix(cluster)))
    {
        return Err(Stays::Foreign(id.to_owned()));
    }
    Ok(delete(session, keystone, &path).await?)
}

async fn delete(session: &Session, keystone: &Endpoint, path: &str) -> Result<(), ServiceError> {
    let request = ServiceRequest {
        method: Method::DELETE,
        ..ServiceRequest::get(keystone, path, &[])
    };
    match session.request(&request).await {
        Ok(_) | Err(ServiceError::NotFound { .. }) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Removes, as the service user, all credentials of a cluster that `user` has, but for the one with the id `current`.
///
/// # Errors
/// Keystone refuses it, or is away.
pub async fn remove_others(
    cloud: &Cloud,
    user: &str,
    cluster: &Cluster,
    current: &str,
) -> Result<(), ServiceError> {
    let session = cloud.service()?;
    let keystone = cloud.endpoints().of(Service::Keystone);
    let all = path(user);
    let reply = session.request(&ServiceRequest::get(keystone, &all, &[])).await?;
    let found = reply.json()?["application_credentials"].take();
    let Value::Array(found) = found else {
        return Err(reply.unusable("it has no list"));
    };
    for (id, name) in found
        .iter()
        .filter_map(|one| one["id"].as_str().zip(one["name"].as_str()))
    {
        if id != current && name.starts_with(&prefix(cluster)) {
            delete(session, keystone, &format!("{all}/{id}")).await?;
        }
    }
    Ok(())
}
