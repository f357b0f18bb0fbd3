//! The drivers that the API chooses from: what conductors announce, and what its own `driver_path` holds.
//!
//! An API host needs no driver files: the conductors announce theirs in the database, and the rows are read at
//! each choice (templates and clusters are made rarely). Folders in `[drivers] driver_path` are read at start, and
//! again on SIGHUP, and count besides; of the same name and version the announced one counts, because that is what will run.
//!
//! Which driver is chosen is `magnum_drivers`' business.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_common::error::Exception;
use magnum_common::model::{Cluster, ClusterTemplate};
use magnum_config::Settings;
use magnum_db::Database;
use magnum_drivers::{
    Announcement, DriverInfo, ImageProperties, Registry, ResolutionRequest, ResolutionRules, Resolved,
    discover, for_existing_cluster, for_unrecorded_cluster, resolve, resolve_stored,
};

use crate::store::{self, StoreError};

/// The driver of a cluster that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltBy {
    /// Its name; empty where not even that is known.
    pub name: String,
    /// What is known of the version that can work on the cluster; none while no conductor has announced one.
    pub info: Option<DriverInfo>,
}

/// Chooses drivers.
#[derive(Clone)]
pub struct DriverCatalog {
    database: Database,
    own: Arc<RwLock<Arc<Vec<DriverInfo>>>>,
    rules: ResolutionRules,
    /// Announcements older than this are of conductors that have gone.
    max_age: Duration,
}

impl DriverCatalog {
    /// A catalog by `[drivers]`. Folders that do not load are logged and left out.
    pub fn new(database: Database, settings: &Settings) -> Self {
        Self {
            database,
            own: Arc::new(RwLock::new(Arc::new(own_folders(settings)))),
            rules: ResolutionRules::from(&settings.drivers),
            max_age: settings.default.service_down_time,
        }
    }

    /// Reads the folders in `[drivers] driver_path` again. The rest of `[drivers]` stays as it was at start.
    pub async fn reload(&self, settings: &Settings) {
        let settings = settings.clone();
        match tokio::task::spawn_blocking(move || own_folders(&settings)).await {
            Ok(own) => *self.own.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(own),
            Err(error) => tracing::error!(%error, "the driver folders could not be read; the old ones count"),
        }
    }

    /// The driver of a new template.
    ///
    /// # Errors
    /// The database failed, or what it holds refuses the request: see [`StoreError`].
    pub async fn resolve(
        &self,
        request: &ResolutionRequest<'_>,
        image: &ImageProperties,
    ) -> Result<Resolved, StoreError> {
        Ok(resolve(request, image, &self.rules, &self.registry().await?)?)
    }

    /// The driver of a new cluster of a stored template. `image_driver` counts only for a template without one.
    ///
    /// # Errors
    /// The database failed, or what it holds refuses the request: see [`StoreError`].
    pub async fn resolve_stored(
        &self,
        template: &ClusterTemplate,
        image_driver: Option<&str>,
    ) -> Result<Resolved, StoreError> {
        let registry = self.registry().await?;
        Ok(resolve_stored(template, image_driver, &self.rules, &registry)?)
    }

    /// The driver that operates the clusters of a stored template. What has built a cluster may operate it, disabled
    /// since or not. Of several versions it is the highest; a conductor knows which one built a cluster.
    ///
    /// # Errors
    /// The database failed, or what it holds refuses the request: see [`StoreError`].
    pub async fn of_cluster(&self, template: &ClusterTemplate) -> Result<DriverInfo, StoreError> {
        let registry = self.registry().await?;
        Ok(for_unrecorded_cluster(template, &self.rules, &registry)?.clone())
    }

    /// The driver that works on a cluster: the version that built it, or one that can take over; of a cluster of which
    /// none is recorded, that of its template.
    ///
    /// # Errors
    /// The database failed, or what it holds refuses the request: see [`StoreError`].
    pub async fn that_built(
        &self,
        cluster: &Cluster,
        template: &ClusterTemplate,
    ) -> Result<BuiltBy, StoreError> {
        let recorded = store::built_by(&self.database, &cluster.uuid).await?;
        let registry = self.registry().await?;
        Ok(match recorded {
            Some(recorded) => BuiltBy {
                info: for_existing_cluster(&recorded.driver, &recorded.version, &registry)
                    .ok()
                    .cloned(),
                name: recorded.driver,
            },
            None => match for_unrecorded_cluster(template, &self.rules, &registry) {
                Ok(info) => BuiltBy {
                    name: info.name.clone(),
                    info: Some(info.clone()),
                },
                Err(_) => BuiltBy {
                    name: template.driver.clone().unwrap_or_default(),
                    info: None,
                },
            },
        })
    }

    /// Name and version of each driver, with the cluster types that it builds.
    ///
    /// # Errors
    /// The database failed: see [`StoreError`].
    pub async fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.registry().await?.iter().map(DriverInfo::shown).collect())
    }

    /// The same refusal, for an administrator with the drivers that there are: who is asked for help by a tenant looks
    /// here first. Tenants are not told what runs.
    pub async fn explained(&self, error: StoreError, context: &RequestContext) -> StoreError {
        let StoreError::Refused(mut fault) = error else {
            return error;
        };
        let about_drivers = [
            Exception::ClusterTypeNotSupported,
            Exception::ClusterDriverNotSupported,
        ];
        if context.is_admin() && about_drivers.contains(&fault.exception) {
            match self.names().await {
                Ok(drivers) if drivers.is_empty() => fault.message.push_str(
                    " No conductor has announced a driver; `magnum-status upgrade check` on its host says why.",
                ),
                Ok(drivers) => fault.message.push_str(&format!(" Drivers: {}.", drivers.join("; "))),
                // The refusal is told all the same.
                Err(error) => tracing::debug!(%error, "the drivers cannot be named"),
            }
        }
        StoreError::Refused(fault)
    }

    async fn registry(&self) -> Result<Registry, StoreError> {
        let announced = store::announced_drivers(&self.database, self.max_age).await?;
        let own = Arc::clone(&self.own.read().unwrap_or_else(PoisonError::into_inner));
        Ok(joined(&announced, &own))
    }
}

fn own_folders(settings: &Settings) -> Vec<DriverInfo> {
    let mut own = Vec::new();
    for outcome in discover(&settings.drivers.driver_path) {
        match outcome {
            Ok(folder) => own.push(folder.manifest.info),
            Err(error) => tracing::warn!(error = %error, "a driver folder does not load"),
        }
    }
    own
}

fn joined(announced: &[Announcement], own: &[DriverInfo]) -> Registry {
    let mut registry = Registry::default();
    for announcement in announced {
        match DriverInfo::try_from(announcement) {
            Ok(info) => {
                registry.insert(info);
            }
            Err(error) => tracing::warn!(error = %error, "an announced driver is left out"),
        }
    }
    for info in own {
        registry.insert(info.clone());
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(name: &str, version: &str) -> Announcement {
        Announcement {
            name: name.into(),
            version: version.into(),
            beta: false,
            cluster_types: r#"[{"server_type":"vm","os":"ubuntu","coe":"kubernetes"}]"#.into(),
            capabilities: "{}".into(),
            master_size_rule: "odd".into(),
            api_routes: None,
        }
    }

    #[test]
    fn announced_drivers_go_before_own_ones_and_unreadable_rows_are_left_out() {
        let mut own = DriverInfo::try_from(&announcement("disk", "1.0.0")).unwrap();
        own.beta = true;
        let registry = joined(
            &[announcement("disk", "1.0.0"), announcement("other", "one")],
            &[
                own,
                DriverInfo::try_from(&announcement("third", "2.0.0")).unwrap(),
            ],
        );
        assert_eq!(registry.names().collect::<Vec<_>>(), ["disk", "third"]);
        assert!(!registry.versions("disk").next().unwrap().beta);
    }
}
