//! The credential of a cluster through its life: made when the cluster is, replaced when its user asks for it, gone with it.

use std::collections::BTreeSet;

use magnum_common::model::{Cluster, ClusterStatus};
use magnum_driver_api::{ClusterRef, DriverCall, DriverError, DriverReport, HealthReport, Reason};

use crate::believed::believed;
use crate::cloud::Questions;
use crate::credentials::{self, Stays};
use crate::driver::CapiHelmDriver;
use crate::health;
use crate::management::Management;
use crate::names::Named;
use crate::observed::{self, Seen};
use crate::secrets::CloudAccess;

fn no_release() -> DriverError {
    DriverError::Permanent("the cluster has no release: it was never made".into())
}

fn no_user() -> DriverError {
    DriverError::Permanent("the request does not say whose credential it is to be".into())
}

impl CapiHelmDriver {
    /// Makes a credential and writes it, unless an earlier attempt has. One that an earlier attempt has made and not written is
    /// removed.
    pub(crate) async fn ensure_credential(
        &self,
        call: &DriverCall<'_>,
        questions: &Questions<'_>,
        cluster: &Cluster,
        management: &Management,
    ) -> Result<(), DriverError> {
        let named = Named::of(cluster).ok_or_else(no_release)?;
        let user = cluster.user_id.clone().unwrap_or_default();
        let current = match management.credential_id(named).await? {
            Some(written) => written,
            None => self.new_credential(questions, &user, named, management).await?,
        };
        let cloud = &self.services.cloud;
        if call.attempt > 1
            && let Err(error) = credentials::remove_others(cloud, &user, cluster, &current).await
        {
            // Nothing that the cluster needs.
            tracing::warn!(%error, "credentials that earlier attempts have made may stay in Keystone");
        }
        Ok(())
    }

    /// The id of a new credential, which is in the cluster's secret. It is made when all is known that is written down with it.
    async fn new_credential(
        &self,
        questions: &Questions<'_>,
        user: &str,
        named: Named<'_>,
        management: &Management,
    ) -> Result<String, DriverError> {
        let drivers = self.services.options.drivers();
        let place = questions.place().await?;
        let ca = believed(drivers.openstack_ca_file.clone()).await?;
        let random = self.services.random.digits(8);
        let made = credentials::create(questions, user, named.cluster, &random).await?;
        let access = CloudAccess {
            id: &made.id,
            secret: &made.secret,
            auth_url: &place.keystone,
            region: &place.region,
            interface: &self.options.app_cred_interface_type,
            verify: drivers.verify_ca,
            ca: &ca,
        };
        management.apply_credential(named, &access).await?;
        Ok(made.id)
    }

    pub(crate) async fn apply_certificates(
        &self,
        cluster: &Cluster,
        management: &Management,
    ) -> Result<(), DriverError> {
        let named = Named::of(cluster).ok_or_else(no_release)?;
        let authorities = self.services.certificates.authorities(cluster).await?;
        management.apply_certificates(named, &authorities).await
    }

    /// The cluster belongs to whoever asked, from now on.
    pub(crate) async fn rotate_credential(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let user = call.context.get("user_id");
        let user = user.as_ref().and_then(|user| user.as_str());
        let user = user.filter(|user| !user.is_empty()).ok_or_else(no_user)?;
        let mut cluster = call.cluster.clone();
        let before = cluster.user_id.replace(user.to_owned());
        let named = Named::of(&cluster).ok_or_else(no_release)?;
        let management = self.management(&cluster).await?;
        let old = management.credential_id(named).await?;
        let current = self
            .new_credential(&self.questions(call).await?, user, named, &management)
            .await?;
        if before.as_deref() != Some(user) {
            self.apply_certificates(&cluster, &management).await?;
        }
        let mut report = DriverReport::status(ClusterStatus::UpdateComplete);
        report.cluster.user_id = Some(user.to_owned());
        report.cluster.stack_id = cluster.stack_id.clone();
        let owner = before.unwrap_or_default();
        let removed = if call.attempt > 1 {
            self.remove_all_but(&current, &cluster, [&owner, user]).await
        } else {
            match old {
                Some(old) => credentials::remove(&self.services.cloud, &owner, &cluster, &old).await,
                None => Ok(()),
            }
        };
        if let Err(stays) = removed {
            report.cluster.status_reason = Some(format!(
                "A new application credential was applied successfully but the previous application credential could not be \
                 deleted: {}",
                told(&stays)
            ));
        }
        Ok(report)
    }

    /// What earlier attempts have made, and what was before them: no secret names it any more.
    async fn remove_all_but(&self, current: &str, cluster: &Cluster, users: [&str; 2]) -> Result<(), Stays> {
        for user in BTreeSet::from(users) {
            credentials::remove_others(&self.services.cloud, user, cluster, current).await?;
        }
        Ok(())
    }

    pub(crate) async fn observe_one(&self, one: &ClusterRef) -> Result<DriverReport, DriverError> {
        let conditions = &self.options.k8s_control_plane_resource_conditions;
        let look =
            |objects: &observed::Objects| observed::look(&one.cluster, &one.node_groups, objects, conditions);
        let named = Named::of(&one.cluster);
        if let Some(named) = named
            && let Some(objects) = self.watched(named, &one.node_groups).await
            && look(&objects) == Seen::Changes(Box::default())
        {
            return Ok(DriverReport::default());
        }
        // What changes is told by what is there now, and nothing ends by what a watch has told.
        let management = self.management(&one.cluster).await?;
        let objects = match named {
            Some(named) => management.objects(named, &one.node_groups).await?,
            None => observed::Objects::default(),
        };
        match look(&objects) {
            Seen::Changes(report) => Ok(*report),
            Seen::Gone => self.clear_away(&one.cluster, &management).await,
        }
    }

    /// The cluster is gone: its credential and its secrets are next, in this order: the secret says which credential it is. While
    /// Keystone is away both stay, and the next look tries again.
    async fn clear_away(
        &self,
        cluster: &Cluster,
        management: &Management,
    ) -> Result<DriverReport, DriverError> {
        let mut report = DriverReport::status(ClusterStatus::DeleteComplete);
        let credential = match Named::of(cluster) {
            Some(named) => management.credential_id(named).await?,
            None => None,
        };
        let owner = cluster.user_id.as_deref().unwrap_or_default();
        if let Some(id) = credential
            && let Err(stays) = credentials::remove(&self.services.cloud, owner, cluster, &id).await
        {
            report.cluster.status_reason = Some(format!(
                "Failed to delete application credential for cluster {}: {}",
                cluster.uuid,
                told(&stays)
            ));
            if let Stays::Service(error) = stays
                && let away @ DriverError::Transient(_) = DriverError::from(error)
            {
                return Err(away);
            }
        }
        management.remove_secrets(cluster.uuid.as_str()).await?;
        Ok(report)
    }

    pub(crate) async fn health_of(&self, one: &ClusterRef) -> Result<HealthReport, DriverError> {
        let named = Named::of(&one.cluster).ok_or_else(no_release)?;
        let objects = match self.watched(named, &one.node_groups).await {
            Some(objects) => objects,
            None => {
                let management = self.management(&one.cluster).await?;
                management.objects(named, &one.node_groups).await?
            }
        };
        Ok(health::look(named, &one.node_groups, &objects))
    }
}

/// For the users of a cluster.
fn told(stays: &Stays) -> String {
    match stays {
        Stays::Service(error) => Reason::from(error).told().to_owned(),
        other => other.to_string(),
    }
}
