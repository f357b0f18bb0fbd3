//! Which driver builds a cluster: one rule, written down here and tested in every combination.
//!
//! **A new template** ([`resolve`]): the first of these that is not empty decides:
//! 1. `driver` in the request,
//! 2. `magnum_driver` of the image,
//! 3. `[drivers] default_driver`,
//! 4. the alphabetically first driver that may be used.
//!
//! A name that is unknown, disabled, or of a beta driver that is not enabled is refused with
//! `ClusterDriverNotSupported`, whatever level it comes from: the chain does not go on to the next level, since
//! a cluster would then be built by something nobody asked for.
//!
//! With `cluster_type_check = strict` the named driver has to provide the cluster type (else
//! `ClusterTypeNotSupported`), and level 4 looks only at drivers that provide it. With `lenient` names are taken
//! as they are and level 4 takes the first of all.
//!
//! **Versions.** Of a name, the highest version counts that may be used (a beta version of a name that is not
//! enabled does not) and, when strict, that provides the type.
//!
//! **The operating system** is the image's property `magnum_distro`, else `os_distro` (deprecated; logged), else
//! the request is refused.
//!
//! **A cluster of a stored template** ([`resolve_stored`]) goes through the same chain, the template's driver in
//! place of the request's. **A cluster that exists** keeps what built it ([`for_existing_cluster`]); disabling a
//! driver does not take existing clusters away from it.
//!
//! Where we differ from Magnum 23: see `docs/differences.md`.

use std::fmt;

use semver::Version;

use magnum_common::error::{Exception, Fault};
use magnum_common::model::ClusterTemplate;
use magnum_config::{ClusterTypeCheck, DriversSection};

use super::info::{ClusterType, DriverInfo};
use super::registry::Registry;

/// What the request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct ResolutionRequest<'a> {
    pub driver: Option<&'a str>,
    pub server_type: &'a str,
    pub coe: &'a str,
}

/// What the image says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageProperties {
    /// The image as the user called it, for errors.
    pub image: String,
    /// The property `magnum_distro`.
    pub magnum_distro: Option<String>,
    /// The property `os_distro`.
    pub os_distro: Option<String>,
    /// The property `magnum_driver`.
    pub magnum_driver: Option<String>,
}

/// What the operator says, in the section `[drivers]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the options")]
pub struct ResolutionRules {
    pub default_driver: Option<String>,
    pub disabled_drivers: Vec<String>,
    pub enabled_beta_drivers: Vec<String>,
    pub cluster_type_check: ClusterTypeCheck,
}

impl From<&DriversSection> for ResolutionRules {
    fn from(section: &DriversSection) -> Self {
        Self {
            default_driver: section.default_driver.clone(),
            disabled_drivers: section.disabled_drivers.clone(),
            enabled_beta_drivers: section.enabled_beta_drivers.clone(),
            cluster_type_check: section.cluster_type_check,
        }
    }
}

impl Default for ResolutionRules {
    /// The options' defaults.
    fn default() -> Self {
        Self::from(&DriversSection::default())
    }
}

impl ResolutionRules {
    /// Whether the operator disabled every version of that name.
    pub fn is_disabled(&self, name: &str) -> bool {
        self.disabled_drivers.iter().any(|disabled| disabled == name)
    }

    /// Whether new templates and clusters may use it.
    pub fn may_use(&self, info: &DriverInfo) -> bool {
        !self.is_disabled(&info.name) && (!info.beta || self.enabled_beta_drivers.contains(&info.name))
    }

    fn is_strict(&self) -> bool {
        self.cluster_type_check == ClusterTypeCheck::Strict
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `driver` of the request, or of the stored template.
    Request,
    /// `magnum_driver` of the image.
    Image,
    /// `[drivers] default_driver`.
    Default,
    /// Nobody: the alphabetically first.
    First,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "driver of the request",
            Self::Image => "image property magnum_driver",
            Self::Default => "option default_driver",
            Self::First => "alphabetically first",
        })
    }
}

/// The outcome: what the template stores, and who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The driver.
    pub driver: DriverInfo,
    /// The type; its `os` is the template's `cluster_distro`.
    pub cluster_type: ClusterType,
    /// The level that decided.
    pub level: Level,
    /// Whether the image told its operating system by the deprecated property.
    pub deprecated_os_distro: bool,
}

fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// The driver for a new template. Logs the use of the deprecated image property.
///
/// # Errors
/// `OSDistroFieldNotFound`, `ClusterDriverNotSupported` or `ClusterTypeNotSupported`, each 400.
pub fn resolve(
    request: &ResolutionRequest<'_>,
    image: &ImageProperties,
    rules: &ResolutionRules,
    registry: &Registry,
) -> Result<Resolved, Fault> {
    let (os, deprecated_os_distro) = distro(image)?;
    if deprecated_os_distro {
        tracing::warn!(
            image = image.image,
            "the image property os_distro is deprecated for choosing a driver: set magnum_distro = {os}"
        );
    }
    let cluster_type = ClusterType::new(request.server_type, os, request.coe);
    let (driver, level) = choose(
        request.driver,
        image.magnum_driver.as_deref(),
        &cluster_type,
        rules,
        registry,
    )?;
    Ok(Resolved {
        driver: driver.clone(),
        cluster_type,
        level,
        deprecated_os_distro,
    })
}

/// The driver for a new cluster of a stored template: the template's own, else (for one that an older release
/// made) the rest of the chain. `image_driver` is the property `magnum_driver` of the template's image, where the
/// caller has looked it up; it plays no part when the template has a driver.
///
/// # Errors
/// As [`resolve`]; a template that does not know its operating system is `ClusterTypeNotSupported`.
pub fn resolve_stored(
    template: &ClusterTemplate,
    image_driver: Option<&str>,
    rules: &ResolutionRules,
    registry: &Registry,
) -> Result<Resolved, Fault> {
    let cluster_type = type_of(template);
    let (driver, level) = choose(
        template.driver.as_deref(),
        image_driver,
        &cluster_type,
        rules,
        registry,
    )?;
    Ok(Resolved {
        driver: driver.clone(),
        cluster_type,
        level,
        deprecated_os_distro: false,
    })
}

/// The cluster type of a stored template; `None` where it has nothing, as Magnum shows it.
pub fn type_of(template: &ClusterTemplate) -> ClusterType {
    let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "None".to_owned());
    ClusterType {
        server_type: text(&template.server_type),
        os: text(&template.cluster_distro),
        coe: text(&template.coe),
    }
}

/// Whether an image tells its operating system, as the images of templates must.
///
/// # Errors
/// `OSDistroFieldNotFound` (400).
pub fn check_distro(image: &ImageProperties) -> Result<(), Fault> {
    distro(image).map(drop)
}

/// The image's operating system, and whether the deprecated property told it.
fn distro(image: &ImageProperties) -> Result<(&str, bool), Fault> {
    if let Some(os) = given(image.magnum_distro.as_deref()) {
        return Ok((os, false));
    }
    if let Some(os) = given(image.os_distro.as_deref()) {
        return Ok((os, true));
    }
    Err(Fault::new(
        Exception::OSDistroFieldNotFound,
        format!(
            "Image {} doesn't contain os_distro field. Set the image property magnum_distro (or os_distro, which \
             is deprecated) to its operating system.",
            image.image
        ),
    ))
}

/// The chain of four levels.
fn choose<'r>(
    request: Option<&str>,
    image: Option<&str>,
    cluster_type: &ClusterType,
    rules: &ResolutionRules,
    registry: &'r Registry,
) -> Result<(&'r DriverInfo, Level), Fault> {
    let levels = [
        (Level::Request, request),
        (Level::Image, image),
        (Level::Default, rules.default_driver.as_deref()),
    ];
    for (level, name) in levels {
        if let Some(name) = given(name) {
            return named(name, cluster_type, rules, registry).map(|driver| (driver, level));
        }
    }
    registry
        .names()
        .find_map(|name| candidate(name, cluster_type, rules, registry))
        .map(|driver| (driver, Level::First))
        .ok_or_else(|| type_not_supported(cluster_type))
}

fn named<'r>(
    name: &str,
    cluster_type: &ClusterType,
    rules: &ResolutionRules,
    registry: &'r Registry,
) -> Result<&'r DriverInfo, Fault> {
    if !registry.versions(name).any(|info| rules.may_use(info)) {
        return Err(Fault::driver_not_supported(name));
    }
    candidate(name, cluster_type, rules, registry).ok_or_else(|| type_not_supported(cluster_type))
}

/// The highest version of a name that may be used for the type.
fn candidate<'r>(
    name: &str,
    cluster_type: &ClusterType,
    rules: &ResolutionRules,
    registry: &'r Registry,
) -> Option<&'r DriverInfo> {
    registry
        .versions(name)
        .find(|info| rules.may_use(info) && (!rules.is_strict() || info.provides(cluster_type)))
}

fn type_not_supported(cluster_type: &ClusterType) -> Fault {
    Fault::cluster_type_not_supported(&cluster_type.server_type, &cluster_type.os, &cluster_type.coe)
}

/// The driver for a cluster that `name` built in `version`: the same version, else the highest compatible one.
/// Compatible is what semver calls so: the same major version (while that is 0, the same minor one) and not
/// older. Neither `disabled_drivers` nor beta plays a part: what built a cluster may operate and delete it.
///
/// # Errors
/// `ClusterDriverNotSupported` that names the version wanted, when no installed one can take over.
pub fn for_existing_cluster<'r>(
    name: &str,
    version: &str,
    registry: &'r Registry,
) -> Result<&'r DriverInfo, Fault> {
    let missing = || Fault::driver_not_supported(&format!("{name} {version}"));
    let built_by = Version::parse(version).map_err(|_| missing())?;
    registry
        .get(name, &built_by)
        .or_else(|| {
            registry
                .versions(name)
                .find(|info| is_compatible(&built_by, &info.version))
        })
        .ok_or_else(missing)
}

/// Whether the driver in version `candidate` can operate clusters that `built_by` has built: they are the same, or the one can take
/// over from the other.
pub fn can_operate(built_by: &str, candidate: &str) -> bool {
    built_by == candidate
        || matches!((Version::parse(built_by), Version::parse(candidate)),
            (Ok(built_by), Ok(candidate)) if is_compatible(&built_by, &candidate))
}

fn is_compatible(built_by: &Version, candidate: &Version) -> bool {
    let series = |version: &Version| match (version.major, version.minor) {
        (0, 0) => (0, 0, version.patch),
        (0, minor) => (0, minor, 0),
        (major, _) => (major, 0, 0),
    };
    series(built_by) == series(candidate) && candidate > built_by
}

/// The driver for a cluster of which no version is recorded (a Python conductor built it): the highest version of
/// the template's driver; for a template without one, what the chain would choose for it now, and if that is
/// nothing (its driver was disabled since), the first that provides the type. Where `registry` has what all conductors have,
/// that is the same whoever asks.
///
/// # Errors
/// As [`resolve_stored`], but a name is refused only when there is no such driver at all.
pub fn for_unrecorded_cluster<'r>(
    template: &ClusterTemplate,
    rules: &ResolutionRules,
    registry: &'r Registry,
) -> Result<&'r DriverInfo, Fault> {
    if let Some(name) = given(template.driver.as_deref()) {
        return registry
            .versions(name)
            .next()
            .ok_or_else(|| Fault::driver_not_supported(name));
    }
    let cluster_type = type_of(template);
    choose(None, None, &cluster_type, rules, registry)
        .map(|(driver, _)| driver)
        .or_else(|fault| {
            registry
                .iter()
                .find(|info| info.provides(&cluster_type))
                .ok_or(fault)
        })
}

#[cfg(test)]
mod tests;
