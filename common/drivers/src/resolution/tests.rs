//! The rule, three times: by examples, by Magnum's recorded cases, and in every combination against an oracle
//! that is written another way.

use super::*;
use crate::{Capabilities, MasterSizeRule};

fn driver(name: &str, version: &str, beta: bool, types: &[(&str, &str)]) -> DriverInfo {
    DriverInfo {
        name: name.into(),
        version: version.parse().unwrap(),
        cluster_types: types
            .iter()
            .map(|(server_type, os)| ClusterType::new(server_type, os, "kubernetes"))
            .collect(),
        beta,
        capabilities: Capabilities::default(),
        master_size: MasterSizeRule::Odd,
        api: Default::default(),
    }
}

const UBUNTU: &[(&str, &str)] = &[("vm", "ubuntu")];
const FLATCAR: &[(&str, &str)] = &[("vm", "flatcar")];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn image(os: Option<&str>, magnum_driver: Option<&str>) -> ImageProperties {
    ImageProperties {
        image: "img".into(),
        magnum_distro: os.map(str::to_owned),
        os_distro: None,
        magnum_driver: magnum_driver.map(str::to_owned),
    }
}

fn ask<'a>(driver: Option<&'a str>) -> ResolutionRequest<'a> {
    ResolutionRequest {
        driver,
        server_type: "vm",
        coe: "kubernetes",
    }
}

/// The outcome in a form that tables can hold: `name version`, or the class of the refusal.
fn told(outcome: Result<Resolved, Fault>) -> String {
    match outcome {
        Ok(resolved) => format!("{} by {:?}", resolved.driver, resolved.level),
        Err(fault) => {
            assert_eq!(fault.code(), 400);
            fault.message
        }
    }
}

// ---- the operating system -------------------------------------------------------------------------------

#[test]
fn magnum_distro_wins_over_os_distro_and_both_may_be_empty() {
    let registry: Registry = [driver("a", "1.0.0", false, &[("vm", "new"), ("vm", "old")])]
        .into_iter()
        .collect();
    let rules = ResolutionRules::default();
    for (magnum_distro, os_distro, outcome) in [
        (Some("new"), Some("old"), Ok(("new", false))),
        (Some("new"), None, Ok(("new", false))),
        (None, Some("old"), Ok(("old", true))),
        (Some(""), Some("old"), Ok(("old", true))),
        (None, None, Err(())),
        (Some(""), Some(""), Err(())),
    ] {
        let image = ImageProperties {
            image: "img".into(),
            magnum_distro: magnum_distro.map(str::to_owned),
            os_distro: os_distro.map(str::to_owned),
            magnum_driver: None,
        };
        // Also with a driver named: it does not replace the operating system.
        for name in [None, Some("a")] {
            match (resolve(&ask(name), &image, &rules, &registry), outcome) {
                (Ok(resolved), Ok((os, deprecated))) => {
                    assert_eq!(
                        (resolved.cluster_type.os.as_str(), resolved.deprecated_os_distro),
                        (os, deprecated)
                    );
                }
                (Err(fault), Err(())) => {
                    assert_eq!(fault.exception, Exception::OSDistroFieldNotFound);
                    assert!(
                        fault
                            .message
                            .starts_with("Image img doesn't contain os_distro field.")
                    );
                    assert!(fault.message.contains("magnum_distro"));
                }
                (got, wanted) => panic!("{magnum_distro:?} {os_distro:?}: {got:?}, not {wanted:?}"),
            }
        }
    }
}

// ---- Magnum's recorded cases ------------------------------------------------------------------------------

/// The drivers of the recordings: three on one type, one beta on its own, one beta on the shared type.
fn recorded_drivers() -> Registry {
    [
        driver("fake_alpha", "0.1.0", false, UBUNTU),
        driver("fake_mid", "0.1.0", false, UBUNTU),
        driver("fake_zeta", "0.1.0", false, UBUNTU),
        driver("fake_preview", "0.1.0", true, FLATCAR),
        driver("zz_fake_beta", "0.1.0", true, UBUNTU),
    ]
    .into_iter()
    .collect()
}

fn profile(name: &str) -> ResolutionRules {
    let mut rules = ResolutionRules {
        disabled_drivers: names(&["fake_mid", "zz_fake_beta"]),
        ..ResolutionRules::default()
    };
    match name {
        "base" => {}
        "default_zeta" => rules.default_driver = Some("fake_zeta".into()),
        "default_unknown" => rules.default_driver = Some("no_such_driver".into()),
        "default_disabled" => rules.default_driver = Some("fake_mid".into()),
        "default_beta" => rules.default_driver = Some("fake_preview".into()),
        "beta_enabled" => rules.enabled_beta_drivers = names(&["fake_preview"]),
        "beta_shared" => rules.disabled_drivers = names(&["fake_mid"]),
        "no_drivers" => {
            rules.disabled_drivers = names(&[
                "fake_alpha",
                "fake_mid",
                "fake_zeta",
                "fake_preview",
                "zz_fake_beta",
            ]);
        }
        _ => panic!("no profile {name}"),
    }
    rules
}

/// Case, profile, driver of the request, os, `magnum_driver`, our answer, Magnum's.
type RecordedCase = (
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
);

/// The cases of the transcripts of Magnum 23.0.0 that are about the choice. The last column says what Magnum
/// answered where we answer differently on purpose.
#[test]
fn recorded_cases_resolve_as_decided() {
    const NO_UBUNTU: &str = "Cluster type (vm, ubuntu, kubernetes) not supported.";
    const NO_FLATCAR: &str = "Cluster type (vm, flatcar, kubernetes) not supported.";
    const SAME: &str = "the same";
    #[rustfmt::skip]
    let cases: &[RecordedCase] = &[
        ("fallback-alphabetical", "base", None, "ubuntu", None, "fake_alpha 0.1.0 by First", SAME),
        ("user-given", "base", Some("fake_zeta"), "ubuntu", None, "fake_zeta 0.1.0 by Request", SAME),
        ("user-alpha-explicit", "base", Some("fake_alpha"), "ubuntu", None, "fake_alpha 0.1.0 by Request", SAME),
        ("user-unknown", "base", Some("no_such_driver"), "ubuntu", None, "Cluster driver (no_such_driver) not supported.", SAME),
        ("user-disabled", "base", Some("fake_mid"), "ubuntu", None, "Cluster driver (fake_mid) not supported.", "fake_mid"),
        ("user-beta-not-enabled", "base", Some("fake_preview"), "flatcar", None, "Cluster driver (fake_preview) not supported.", "fake_preview"),
        ("user-beta-and-disabled", "base", Some("zz_fake_beta"), "ubuntu", None, "Cluster driver (zz_fake_beta) not supported.", "zz_fake_beta"),
        ("image-driver-unknown", "base", None, "ubuntu", Some("no_such_driver"), "Cluster driver (no_such_driver) not supported.", SAME),
        ("image-driver-disabled", "base", None, "ubuntu", Some("fake_mid"), "Cluster driver (fake_mid) not supported.", "fake_mid"),
        ("image-driver-empty", "base", None, "ubuntu", Some(""), "fake_alpha 0.1.0 by First", SAME),
        ("image-by-uuid", "base", None, "ubuntu", Some("fake_zeta"), "fake_zeta 0.1.0 by Image", SAME),
        ("user-beats-unknown-image-driver", "base", Some("fake_alpha"), "ubuntu", Some("no_such_driver"), "fake_alpha 0.1.0 by Request", SAME),
        ("flatcar-fallback-wrong-tuple", "base", None, "flatcar", None, NO_FLATCAR, "fake_alpha, unusable"),
        ("default-driver", "default_zeta", None, "ubuntu", None, "fake_zeta 0.1.0 by Default", SAME),
        ("default-driver-user-beats-all", "default_zeta", Some("fake_alpha"), "ubuntu", Some("fake_mid"), "fake_alpha 0.1.0 by Request", SAME),
        ("default-driver-image-beats", "default_zeta", None, "ubuntu", Some("fake_alpha"), "fake_alpha 0.1.0 by Image", SAME),
        ("default-driver-flatcar", "default_zeta", None, "flatcar", None, NO_FLATCAR, "fake_zeta, unusable"),
        ("default-unknown", "default_unknown", None, "ubuntu", None, "Cluster driver (no_such_driver) not supported.", SAME),
        ("default-disabled", "default_disabled", None, "ubuntu", None, "Cluster driver (fake_mid) not supported.", SAME),
        ("default-disabled/named", "default_disabled", Some("fake_mid"), "ubuntu", None, "Cluster driver (fake_mid) not supported.", "fake_mid"),
        ("default-beta-not-enabled", "default_beta", None, "ubuntu", None, "Cluster driver (fake_preview) not supported.", "fake_preview"),
        ("default-beta-not-enabled/flatcar", "default_beta", None, "flatcar", None, "Cluster driver (fake_preview) not supported.", "fake_preview"),
        ("beta-enabled-named", "beta_enabled", Some("fake_preview"), "flatcar", None, "fake_preview 0.1.0 by Request", SAME),
        ("beta-enabled-image", "beta_enabled", None, "flatcar", Some("fake_preview"), "fake_preview 0.1.0 by Image", SAME),
        ("beta-last-on-shared-tuple-named-alpha", "beta_shared", Some("fake_alpha"), "ubuntu", None, "fake_alpha 0.1.0 by Request", "accepted, then refused for clusters"),
        ("beta-last-on-shared-tuple-named-zeta", "beta_shared", Some("fake_zeta"), "ubuntu", None, "fake_zeta 0.1.0 by Request", "accepted, then refused for clusters"),
        ("no-drivers", "no_drivers", None, "ubuntu", None, NO_UBUNTU, SAME),
        ("no-drivers/named", "no_drivers", Some("fake_alpha"), "ubuntu", None, "Cluster driver (fake_alpha) not supported.", "fake_alpha"),
        ("no-drivers-image", "no_drivers", None, "ubuntu", Some("fake_zeta"), "Cluster driver (fake_zeta) not supported.", "fake_zeta"),
    ];
    let registry = recorded_drivers();
    for (case, rules, request, os, magnum_driver, ours, _) in cases {
        let outcome = resolve(
            &ask(*request),
            &image(Some(os), *magnum_driver),
            &profile(rules),
            &registry,
        );
        assert_eq!(told(outcome), *ours, "{case}");
    }
}

#[test]
fn a_bare_metal_template_falls_back_only_to_a_driver_for_bare_metal() {
    let request = ResolutionRequest {
        server_type: "bm",
        ..ask(None)
    };
    let outcome = resolve(
        &request,
        &image(Some("ubuntu"), None),
        &profile("base"),
        &recorded_drivers(),
    );
    assert_eq!(
        told(outcome),
        "Cluster type (bm, ubuntu, kubernetes) not supported."
    );
}

// ---- stored templates -------------------------------------------------------------------------------------

fn template(driver: Option<&str>, os: Option<&str>) -> ClusterTemplate {
    let mut template = ClusterTemplate::new("t".into());
    template.driver = driver.map(str::to_owned);
    template.cluster_distro = os.map(str::to_owned);
    template.coe = Some("kubernetes".into());
    template
}

#[test]
fn a_stored_template_uses_its_driver_and_one_without_goes_through_the_chain() {
    let registry = recorded_drivers();
    let base = profile("base");
    for (driver, image_driver, rules, outcome) in [
        (
            Some("fake_zeta"),
            Some("fake_alpha"),
            &base,
            "fake_zeta 0.1.0 by Request",
        ),
        (None, None, &base, "fake_alpha 0.1.0 by First"),
        (Some(""), None, &base, "fake_alpha 0.1.0 by First"),
        (None, Some("fake_zeta"), &base, "fake_zeta 0.1.0 by Image"),
        (None, None, &profile("default_zeta"), "fake_zeta 0.1.0 by Default"),
        // Disabled since: no new clusters, whoever named it.
        (
            Some("fake_mid"),
            None,
            &base,
            "Cluster driver (fake_mid) not supported.",
        ),
    ] {
        let outcome_now = resolve_stored(&template(driver, Some("ubuntu")), image_driver, rules, &registry);
        assert_eq!(told(outcome_now), outcome, "{driver:?} {image_driver:?}");
    }
    let gone = resolve_stored(&template(None, Some("fedora-coreos")), None, &base, &registry);
    assert_eq!(
        told(gone),
        "Cluster type (vm, fedora-coreos, kubernetes) not supported."
    );
    let unknown = resolve_stored(&template(None, None), None, &base, &registry);
    assert_eq!(
        told(unknown),
        "Cluster type (vm, None, kubernetes) not supported."
    );
}

// ---- versions ---------------------------------------------------------------------------------------------

#[test]
fn new_clusters_take_the_highest_version_that_may_be_used_and_provides_the_type() {
    let registry: Registry = [
        driver("d", "1.0.0", false, &[("vm", "ubuntu"), ("vm", "flatcar")]),
        driver("d", "1.10.0", false, UBUNTU),
        driver("d", "1.9.0", false, UBUNTU),
        driver("d", "2.0.0", true, UBUNTU),
    ]
    .into_iter()
    .collect();
    let mut rules = ResolutionRules::default();
    let version = |os: &str, name, rules: &ResolutionRules| {
        told(resolve(&ask(name), &image(Some(os), None), rules, &registry))
    };
    assert_eq!(version("ubuntu", Some("d"), &rules), "d 1.10.0 by Request");
    assert_eq!(version("ubuntu", None, &rules), "d 1.10.0 by First");
    assert_eq!(version("flatcar", Some("d"), &rules), "d 1.0.0 by Request");
    rules.enabled_beta_drivers = names(&["d"]);
    assert_eq!(version("ubuntu", Some("d"), &rules), "d 2.0.0 by Request");
    rules.cluster_type_check = ClusterTypeCheck::Lenient;
    assert_eq!(version("flatcar", Some("d"), &rules), "d 2.0.0 by Request");
}

#[test]
fn an_existing_cluster_keeps_its_version_or_gets_the_highest_compatible_one() {
    let registry: Registry = [
        driver("d", "0.3.1", false, UBUNTU),
        driver("d", "0.4.0", false, UBUNTU),
        driver("d", "1.2.0", true, UBUNTU),
        driver("d", "1.4.0", false, UBUNTU),
        driver("d", "1.5.0", true, UBUNTU),
        driver("d", "2.0.0", false, UBUNTU),
    ]
    .into_iter()
    .collect();
    for (built_by, taken) in [
        ("1.2.0", Some("1.2.0")),
        ("1.3.0", Some("1.5.0")),
        ("1.0.0", Some("1.5.0")),
        // A newer one built it: an older one may not understand what it made.
        ("1.6.0", None),
        ("2.0.0", Some("2.0.0")),
        ("3.0.0", None),
        ("0.3.0", Some("0.3.1")),
        ("0.4.7", None),
        ("0.0.1", None),
        ("nonsense", None),
    ] {
        match for_existing_cluster("d", built_by, &registry) {
            Ok(info) => assert_eq!(Some(info.version.to_string().as_str()), taken, "{built_by}"),
            Err(fault) => {
                assert_eq!(taken, None, "{built_by}");
                assert_eq!(
                    fault.message,
                    format!("Cluster driver (d {built_by}) not supported.")
                );
            }
        }
    }
    assert!(for_existing_cluster("e", "1.2.0", &registry).is_err());
}

#[test]
fn a_cluster_without_a_record_stays_with_a_driver_that_was_disabled_since() {
    let registry = recorded_drivers();
    let taken = |driver, os, rules: &ResolutionRules| {
        for_unrecorded_cluster(&template(driver, Some(os)), rules, &registry)
            .map(|info| info.name.clone())
            .map_err(|fault| fault.message)
    };
    let none = profile("no_drivers");
    assert_eq!(
        taken(Some("fake_mid"), "ubuntu", &none).as_deref(),
        Ok("fake_mid")
    );
    assert_eq!(taken(None, "flatcar", &none).as_deref(), Ok("fake_preview"));
    assert_eq!(
        taken(None, "ubuntu", &profile("default_zeta")).as_deref(),
        Ok("fake_zeta")
    );
    assert_eq!(
        taken(Some("gone"), "ubuntu", &none),
        Err("Cluster driver (gone) not supported.".into())
    );
    assert_eq!(
        taken(None, "beos", &none),
        Err("Cluster type (vm, beos, kubernetes) not supported.".into())
    );
}

// ---- every combination --------------------------------------------------------------------------------------

/// What a driver of the matrix is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    installed: bool,
    provides: bool,
    beta: bool,
    beta_enabled: bool,
    disabled: bool,
}

impl State {
    fn all() -> Vec<Self> {
        let flags = [false, true];
        let mut states = Vec::new();
        for installed in flags {
            for provides in flags {
                for beta in flags {
                    for beta_enabled in flags {
                        for disabled in flags {
                            states.push(Self {
                                installed,
                                provides,
                                beta,
                                beta_enabled,
                                disabled,
                            });
                        }
                    }
                }
            }
        }
        // What an absent driver would be like makes no difference, except that options may still name it.
        states.retain(|state| state.installed || (!state.provides && !state.beta));
        states
    }
}

/// The rule again, written as a decision table over one driver's state instead of as a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Taken,
    NoDriver,
    NoType,
}

fn verdict(state: State, strict: bool) -> Verdict {
    match (
        state.installed,
        state.disabled,
        state.beta,
        state.beta_enabled,
        strict,
        state.provides,
    ) {
        (false, ..) | (_, true, ..) | (_, _, true, false, ..) => Verdict::NoDriver,
        (.., true, false) => Verdict::NoType,
        _ => Verdict::Taken,
    }
}

fn oracle(a: State, b: State, named: [Option<&str>; 3], strict: bool) -> String {
    let state = |name: &str| match name {
        "a" => Some(a),
        "b" => Some(b),
        _ => None,
    };
    let levels = [Level::Request, Level::Image, Level::Default];
    let decided = levels
        .iter()
        .zip(named)
        .find(|(_, name)| name.is_some_and(|name| !name.is_empty()));
    let no_type = "Cluster type (vm, ubuntu, kubernetes) not supported.".to_owned();
    if let Some((level, Some(name))) = decided {
        return match state(name).map_or(Verdict::NoDriver, |state| verdict(state, strict)) {
            Verdict::Taken => format!("{name} 1.0.0 by {level:?}"),
            Verdict::NoDriver => format!("Cluster driver ({name}) not supported."),
            Verdict::NoType => no_type,
        };
    }
    match (verdict(a, strict), verdict(b, strict)) {
        (Verdict::Taken, _) => "a 1.0.0 by First".to_owned(),
        (_, Verdict::Taken) => "b 1.0.0 by First".to_owned(),
        _ => no_type,
    }
}

#[test]
fn every_combination_of_request_image_default_and_drivers_follows_the_rule() {
    let choices = [None, Some(""), Some("a"), Some("b"), Some("unknown")];
    let states = State::all();
    let mut combinations = 0_u32;
    for a in &states {
        for b in &states {
            let both = [("a", *a), ("b", *b)];
            let registry: Registry = both
                .iter()
                .filter(|(_, state)| state.installed)
                .map(|(name, state)| {
                    driver(
                        name,
                        "1.0.0",
                        state.beta,
                        if state.provides { UBUNTU } else { FLATCAR },
                    )
                })
                .collect();
            let picked = |pick: fn(&State) -> bool| -> Vec<String> {
                both.iter()
                    .filter(|(_, state)| pick(state))
                    .map(|(name, _)| (*name).to_owned())
                    .collect()
            };
            for cluster_type_check in [ClusterTypeCheck::Strict, ClusterTypeCheck::Lenient] {
                for default in choices {
                    let rules = ResolutionRules {
                        default_driver: default.map(str::to_owned),
                        disabled_drivers: picked(|state| state.disabled),
                        enabled_beta_drivers: picked(|state| state.beta_enabled),
                        cluster_type_check,
                    };
                    for request in choices {
                        for image_driver in choices {
                            let got = resolve(
                                &ask(request),
                                &image(Some("ubuntu"), image_driver),
                                &rules,
                                &registry,
                            );
                            let strict = cluster_type_check == ClusterTypeCheck::Strict;
                            let wanted = oracle(*a, *b, [request, image_driver, default], strict);
                            assert_eq!(
                                told(got),
                                wanted,
                                "a {a:?}, b {b:?}, request {request:?}, image {image_driver:?}, \
                                 default {default:?}, {cluster_type_check:?}"
                            );
                            let stored = resolve_stored(
                                &template(request, Some("ubuntu")),
                                image_driver,
                                &rules,
                                &registry,
                            );
                            assert_eq!(told(stored), wanted, "a stored template follows the same chain");
                            combinations += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(combinations, 20 * 20 * 2 * 5 * 5 * 5);
}
