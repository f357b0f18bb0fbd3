//! Which driver works on a cluster.
//!
//! A cluster keeps the driver that built it: the first choice is stored beside the cluster and every later
//! operation gets it as `pinned`. What implements [`DriverSource`] knows the loaded drivers and the resolution
//! rules; the operations only know names and versions.

use std::sync::Arc;

use magnum_common::drivers::{ResolutionRules, for_existing_cluster, resolve_stored};
use magnum_common::error::Fault;
use magnum_common::model::ClusterTemplate;

use crate::drivers::{Driver, Registry};

/// A driver by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriverRef {
    /// As templates and options use it.
    pub name: String,
    /// semver.
    pub version: String,
}

/// The drivers this conductor can use.
pub trait DriverSource: Send + Sync {
    /// Names of the loaded drivers: a conductor claims only operations of these.
    fn loaded(&self) -> Vec<String>;

    /// The driver for a new cluster of `template`.
    fn choose(&self, template: &ClusterTemplate) -> Result<DriverRef, Fault>;

    /// The driver for a cluster that `wanted` built: this version or the highest compatible one.
    fn get(&self, wanted: &DriverRef) -> Option<Arc<dyn Driver>>;
}

/// The driver of a cluster: the pinned one, else by the template. `named` is the driver that was found when the
/// request was accepted, perhaps by a conductor with other drivers: it counts as if the template named it.
pub fn choose(
    drivers: &dyn DriverSource,
    template: &ClusterTemplate,
    pinned: Option<&DriverRef>,
    named: Option<&DriverRef>,
) -> Result<DriverRef, Fault> {
    match (pinned, named) {
        (Some(pinned), _) => Ok(pinned.clone()),
        (None, None) => drivers.choose(template),
        (None, Some(named)) => drivers.choose(&ClusterTemplate {
            driver: Some(named.name.clone()),
            ..template.clone()
        }),
    }
}

/// The driver to wait for, when a request is accepted: so that a conductor that has it loaded does the work. An
/// empty version leaves the version to that conductor. `None` leaves everything to whoever claims the operation,
/// which then fails with a status that users can see.
pub fn foresee(
    drivers: &dyn DriverSource,
    template: Option<&ClusterTemplate>,
    pinned: Option<&DriverRef>,
) -> Option<DriverRef> {
    if let Some(pinned) = pinned {
        return Some(pinned.clone());
    }
    let template = template?;
    if let Ok(chosen) = drivers.choose(template) {
        return Some(chosen);
    }
    let elsewhere = template
        .driver
        .as_ref()
        .filter(|name| !drivers.loaded().contains(name))?;
    Some(DriverRef {
        name: elsewhere.clone(),
        version: String::new(),
    })
}

/// The loaded drivers under the operator's rules.
#[derive(Debug, Clone)]
pub struct LoadedDrivers {
    registry: Registry,
    rules: ResolutionRules,
}

impl LoadedDrivers {
    /// The drivers of `registry`, as it is at each moment.
    pub const fn new(registry: Registry, rules: ResolutionRules) -> Self {
        Self { registry, rules }
    }
}

impl DriverSource for LoadedDrivers {
    fn loaded(&self) -> Vec<String> {
        self.registry
            .current()
            .infos()
            .names()
            .map(str::to_owned)
            .collect()
    }

    fn choose(&self, template: &ClusterTemplate) -> Result<DriverRef, Fault> {
        let current = self.registry.current();
        let resolved = resolve_stored(template, None, &self.rules, current.infos())?;
        Ok(DriverRef {
            name: resolved.driver.name,
            version: resolved.driver.version.to_string(),
        })
    }

    fn get(&self, wanted: &DriverRef) -> Option<Arc<dyn Driver>> {
        let current = self.registry.current();
        let info = for_existing_cluster(&wanted.name, &wanted.version, current.infos()).ok()?;
        current.get(&info.name, &info.version.to_string())
    }
}
