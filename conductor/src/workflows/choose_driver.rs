//! Which driver works on a cluster.
//!
//! A cluster keeps the driver that built it: the first choice is stored beside the cluster and every later
//! operation gets it as `pinned`. What implements [`DriverSource`] knows the loaded drivers and the resolution
//! rules; the operations only know names and versions.

use std::sync::Arc;

use magnum_common::error::Fault;
use magnum_common::model::ClusterTemplate;
use magnum_driver_api::Driver;
use magnum_drivers::{
    DriverInfo, ResolutionRules, for_existing_cluster, for_unrecorded_cluster, resolve_stored,
};

use super::OperationKind;
use crate::drivers::Registry;

/// A driver by name and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DriverRef {
    /// As templates and options use it.
    pub name: String,
    /// semver.
    pub version: String,
}

/// What a driver is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A cluster that is to be built: `disabled_drivers` and beta drivers that are not enabled are out.
    New,
    /// One that exists, built by somebody who recorded no driver (a Python conductor): whatever may have built it
    /// operates and deletes it, disabled or not.
    Existing,
}

impl Wanted {
    /// For an operation of this kind.
    pub const fn by(kind: OperationKind) -> Self {
        match kind {
            OperationKind::ClusterCreate => Self::New,
            _ => Self::Existing,
        }
    }
}

/// Where a driver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Loaded by this conductor.
    Here,
    /// On another conductor that is alive, and not on this one.
    Elsewhere,
    /// On none.
    Nowhere,
}

/// The drivers this conductor can use.
pub trait DriverSource: Send + Sync {
    /// Names of the loaded drivers: a conductor claims only operations of these.
    fn loaded(&self) -> Vec<String>;

    /// Names of those that tell the health of their clusters, or what they use.
    fn reporting(&self) -> Vec<String>;

    /// The driver for a cluster of `template` of which no driver is recorded: one that a conductor has, not always this.
    fn choose(&self, template: &ClusterTemplate, wanted: Wanted) -> Result<DriverRef, Fault>;

    /// What conductors that are alive have announced by now.
    fn set_announced(&self, announced: Vec<DriverInfo>);

    /// The driver for a cluster that `wanted` built: this version or the highest compatible one.
    fn get(&self, wanted: &DriverRef) -> Option<Arc<dyn Driver>>;

    /// Where a driver is that can operate what `wanted` has built.
    fn whereabouts(&self, wanted: &DriverRef) -> Whereabouts;
}

/// The driver of a cluster: the pinned one, else by the template. `named` is the driver that was found when the
/// request was accepted, perhaps by a conductor with other drivers: it counts as if the template named it.
///
/// # Errors
/// What the caller is told.
pub fn choose(
    drivers: &dyn DriverSource,
    template: &ClusterTemplate,
    wanted: Wanted,
    pinned: Option<&DriverRef>,
    named: Option<&DriverRef>,
) -> Result<DriverRef, Fault> {
    match (pinned, named) {
        (Some(pinned), _) => Ok(pinned.clone()),
        (None, None) => drivers.choose(template, wanted),
        (None, Some(named)) => {
            let template = ClusterTemplate {
                driver: Some(named.name.clone()),
                ..template.clone()
            };
            drivers.choose(&template, wanted)
        }
    }
}

/// The driver to wait for, when a request is accepted: so that a conductor that has it loaded does the work. An
/// empty version leaves the version to that conductor. `None` leaves everything to whoever claims the operation,
/// which then fails with a status that users can see.
pub fn foresee(
    drivers: &dyn DriverSource,
    template: Option<&ClusterTemplate>,
    wanted: Wanted,
    pinned: Option<&DriverRef>,
) -> Option<DriverRef> {
    if let Some(pinned) = pinned {
        return Some(pinned.clone());
    }
    let template = template?;
    if let Ok(chosen) = drivers.choose(template, wanted) {
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

/// The loaded drivers, and those that others have announced, under the operator's rules.
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

    fn reporting(&self) -> Vec<String> {
        let current = self.registry.current();
        let reporting = current.infos().iter().filter(|info| {
            let can = info.capabilities;
            can.health || can.monitor
        });
        reporting.map(|info| info.name.clone()).collect()
    }

    fn choose(&self, template: &ClusterTemplate, wanted: Wanted) -> Result<DriverRef, Fault> {
        let known = self.registry.known();
        let info = match wanted {
            Wanted::New => resolve_stored(template, None, &self.rules, &known)?.driver,
            Wanted::Existing => for_unrecorded_cluster(template, &self.rules, &known)?.clone(),
        };
        Ok(DriverRef {
            name: info.name,
            version: info.version.to_string(),
        })
    }

    fn set_announced(&self, announced: Vec<DriverInfo>) {
        self.registry.set_announced(announced);
    }

    fn get(&self, wanted: &DriverRef) -> Option<Arc<dyn Driver>> {
        let current = self.registry.current();
        let info = for_existing_cluster(&wanted.name, &wanted.version, current.infos()).ok()?;
        current.get(&info.name, &info.version.to_string())
    }

    fn whereabouts(&self, wanted: &DriverRef) -> Whereabouts {
        if self.get(wanted).is_some() {
            return Whereabouts::Here;
        }
        match for_existing_cluster(&wanted.name, &wanted.version, &self.registry.known()) {
            Ok(_) => Whereabouts::Elsewhere,
            Err(_) => Whereabouts::Nowhere,
        }
    }
}
