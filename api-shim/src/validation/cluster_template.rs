//! What the attributes of a cluster template mean, and which go together.

use magnum_common::error::Fault;
use magnum_common::model::ClusterTemplate;
use magnum_config::ClusterTemplateSection;
use serde_json::{Map, Value};

use super::body::{Access, FREE_TEXT, Field, Kind, NAME, at_least};
use super::patch::Rules;
use super::python::str_of;
use crate::microversion::Version;

/// The body's name in error texts.
pub const ARGUMENT: &str = "cluster_template";

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    Field::new("uuid", Kind::Uuid),
    Field::new("name", NAME),
    Field::new("coe", Kind::Choice(&["kubernetes"])),
    Field::mandatory("image_id", NAME),
    Field::new("flavor_id", NAME),
    Field::new("master_flavor_id", NAME),
    Field::new("dns_nameserver", Kind::DnsServers),
    Field::new("keypair_id", NAME),
    Field::new("external_network_id", NAME),
    Field::new("fixed_network", NAME),
    Field::new("fixed_subnet", NAME),
    Field::new("network_driver", NAME),
    Field::new(
        "apiserver_port",
        Kind::Integer {
            min: 1024,
            max: 65535,
        },
    ),
    Field::new("docker_volume_size", at_least(1)),
    Field::new("cluster_distro", NAME),
    Field::read_only("links"),
    Field::new("http_proxy", NAME),
    Field::new("https_proxy", NAME),
    Field::new("no_proxy", NAME),
    Field::new("volume_driver", NAME),
    Field::new("registry_enabled", Kind::Boolean),
    Field::new("labels", Kind::Labels),
    Field::new("tls_disabled", Kind::Boolean),
    Field::new("public", Kind::Boolean),
    Field::new("server_type", Kind::Choice(&["vm", "bm"])),
    Field::new("insecure_registry", NAME),
    Field::new("docker_storage_driver", NAME),
    Field::new("master_lb_enabled", Kind::Boolean),
    Field::new("floating_ip_enabled", Kind::Boolean),
    Field::read_only("project_id"),
    Field::read_only("user_id"),
    Field::new("hidden", Kind::Boolean),
    Field::new("tags", FREE_TEXT),
    Field::new("driver", NAME).since(Version::TEMPLATE_DRIVER),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// What a patch may not touch.
pub const PATCH_RULES: Rules = Rules {
    internal: &[],
    mandatory: &[
        "image_id",
        "network_driver",
        "external_network_id",
        "tls_disabled",
        "public",
        "server_type",
        "coe",
        "registry_enabled",
        "cluster_distro",
        "hidden",
    ],
    dictionaries: &["labels"],
    lists: &[],
};

/// `driver` below the microversion that has it: null is as good as absent, a value is refused.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn refuse_driver(given: &Map<String, Value>) -> Result<(), Fault> {
    match given.get("driver") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Fault::invalid_parameter(format!(
            "The attribute driver of a cluster template needs microversion {} or later.",
            Version::TEMPLATE_DRIVER
        ))),
    }
}

/// Refuses explicit nulls where there is no default to fall back to.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn refuse_nulls(given: &Map<String, Value>) -> Result<(), Fault> {
    let is_null = |name| given.get(name).is_some_and(Value::is_null);
    if is_null("image_id") {
        return Err(super::body::invalid(
            "image_id",
            &Value::Null,
            "Value should be string",
        ));
    }
    if is_null("server_type") {
        return Err(Fault::invalid_parameter(
            "Server type None is not supported, expecting a vm/bm/unspecified server type.".to_owned(),
        ));
    }
    Ok(())
}

/// Writes body values into a template; absent attributes stay as they are. Null resets to the default.
///
/// The values are expected to be checked by [`super::body`].
pub fn assign(template: &mut ClusterTemplate, given: &Map<String, Value>) {
    let fresh = ClusterTemplate::new(template.uuid.clone());
    for field in FIELDS.iter().filter(|field| field.access != Access::ReadOnly) {
        if let Some(value) = given.get(field.name) {
            assign_one(template, &fresh, field.name, value);
        }
    }
}

fn assign_one(template: &mut ClusterTemplate, fresh: &ClusterTemplate, name: &str, value: &Value) {
    let text = || value.as_str().map(str::to_owned);
    let number = || value.as_i64().and_then(|number| i32::try_from(number).ok());
    let flag = |default: bool| value.as_bool().unwrap_or(default);
    match name {
        "name" => template.name = text(),
        "coe" => template.coe = text(),
        "image_id" => template.image_id = text(),
        "flavor_id" => template.flavor_id = text(),
        "master_flavor_id" => template.master_flavor_id = text(),
        "dns_nameserver" => template.dns_nameserver = text(),
        "keypair_id" => template.keypair_id = text(),
        "external_network_id" => template.external_network_id = text(),
        "fixed_network" => template.fixed_network = text(),
        "fixed_subnet" => template.fixed_subnet = text(),
        "network_driver" => template.network_driver = text(),
        "apiserver_port" => template.apiserver_port = number(),
        "docker_volume_size" => template.docker_volume_size = number(),
        "cluster_distro" => template.cluster_distro = text(),
        "http_proxy" => template.http_proxy = text(),
        "https_proxy" => template.https_proxy = text(),
        "no_proxy" => template.no_proxy = text(),
        "volume_driver" => template.volume_driver = text(),
        "registry_enabled" => template.registry_enabled = flag(fresh.registry_enabled),
        "labels" => {
            template.labels = value.as_object().map(super::labels::stored).unwrap_or_default();
        }
        "tls_disabled" => template.tls_disabled = flag(fresh.tls_disabled),
        "public" => template.public = flag(fresh.public),
        "server_type" => template.server_type = text().or_else(|| fresh.server_type.clone()),
        "insecure_registry" => template.insecure_registry = text(),
        "docker_storage_driver" => template.docker_storage_driver = text(),
        "master_lb_enabled" => template.master_lb_enabled = flag(fresh.master_lb_enabled),
        "floating_ip_enabled" => template.floating_ip_enabled = flag(fresh.floating_ip_enabled),
        "hidden" => template.hidden = flag(fresh.hidden),
        "tags" => template.tags = text(),
        "driver" => template.driver = text(),
        // The uuid is given when the template is made and never changes.
        _ => {}
    }
}

/// The COE is what everything else depends on, so it is asked for first. `given` tells absent from null.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_coe(template: &ClusterTemplate, given: bool) -> Result<(), Fault> {
    match template.coe.as_deref() {
        Some("kubernetes") => Ok(()),
        other => Err(Fault::invalid_parameter(format!(
            "Requested COE type {} is not supported.",
            other.unwrap_or(if given { "None" } else { "Unset" })
        ))),
    }
}

const NETWORK_DRIVERS: [&str; 3] = ["flannel", "calico", "cilium"];

/// The network driver, with the configured default where none was asked for.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn network_driver(
    wanted: Option<&str>,
    section: &ClusterTemplateSection,
) -> Result<Option<String>, Fault> {
    let Some(wanted) = wanted else {
        return Ok(Some(section.kubernetes_default_network_driver.clone()));
    };
    let refuse = |word: &str, expected: &str, end: &str| {
        Err(Fault::invalid_parameter(format!(
            "Network driver type {wanted} is not {word}, expecting a {expected}/unspecified network driver.{end}"
        )))
    };
    if !NETWORK_DRIVERS.contains(&wanted) {
        return refuse("supported", &NETWORK_DRIVERS.join("/"), "");
    }
    let allowed = &section.kubernetes_allowed_network_drivers;
    if !allowed.iter().any(|name| name == "all" || name == wanted) {
        // The blank at the end is Magnum's.
        return refuse("allowed", &allowed.join("/"), " ");
    }
    Ok(Some(wanted.to_owned()))
}

/// `cinder`, or none.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_volume_driver(wanted: Option<&str>) -> Result<(), Fault> {
    match wanted {
        None | Some("cinder") => Ok(()),
        Some(other) => Err(Fault::invalid_parameter(format!(
            "Volume driver type {other} is not supported, expecting a cinder/unspecified volume driver."
        ))),
    }
}

const DEVICEMAPPER_MINIMUM: i32 = 3;

/// The `devicemapper` storage driver needs a volume of a certain size.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_docker_volume(storage_driver: Option<&str>, size: Option<i32>) -> Result<(), Fault> {
    if storage_driver != Some("devicemapper") || size.is_some_and(|size| size >= DEVICEMAPPER_MINIMUM) {
        return Ok(());
    }
    let given = size.map_or_else(|| "None".to_owned(), |size| size.to_string());
    Err(Fault::invalid_parameter(format!(
        "docker volume size {given} GB is not valid, expecting minimum value {DEVICEMAPPER_MINIMUM}GB for \
         devicemapper storage driver."
    )))
}

/// The size of the boot volume that the labels ask for; drivers compute with it.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn boot_volume_size(labels: &magnum_common::model::StringMap) -> Result<Option<u32>, Fault> {
    let Some(text) = labels.get("boot_volume_size") else {
        return Ok(None);
    };
    text.trim().parse().map(Some).map_err(|_| {
        Fault::invalid_parameter(format!(
            "boot_volume_size must be an integer of at least 0, not '{}'.",
            str_of(&Value::String(text.clone()))
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn section() -> ClusterTemplateSection {
        ClusterTemplateSection::default()
    }

    fn given(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => unreachable!(),
        }
    }

    #[test]
    fn every_field_that_a_client_may_give_is_assigned() {
        let fresh = ClusterTemplate::new("u".into());
        for field in FIELDS
            .iter()
            .filter(|f| f.access != Access::ReadOnly && f.name != "uuid")
        {
            let mut template = fresh.clone();
            let default = match field.name {
                "floating_ip_enabled" => json!(false),
                "labels" => json!({"a": "b"}),
                _ => match field.kind {
                    Kind::Boolean => json!(true),
                    Kind::Integer { .. } => json!(2000),
                    _ => json!("text"),
                },
            };
            assign(&mut template, &Map::from_iter([(field.name.to_owned(), default)]));
            assert_ne!(template, fresh, "{} was not assigned", field.name);
        }
    }

    #[test]
    fn null_resets_an_attribute_to_its_default() {
        let mut template = ClusterTemplate::new("u".into());
        template.floating_ip_enabled = false;
        template.tags = Some("t".into());
        template.labels.insert("a".into(), "b".into());
        assign(
            &mut template,
            &given(json!({"floating_ip_enabled": null, "tags": null, "labels": null, "server_type": null})),
        );
        assert_eq!(template, ClusterTemplate::new("u".into()));
    }

    #[test]
    fn network_drivers_are_supported_and_allowed_or_refused_with_the_choice() {
        assert_eq!(network_driver(None, &section()), Ok(Some("flannel".into())));
        assert_eq!(
            network_driver(Some("calico"), &section()),
            Ok(Some("calico".into()))
        );
        assert_eq!(
            network_driver(Some("cilium"), &section()).unwrap_err().message,
            "Network driver type cilium is not allowed, expecting a flannel/calico/unspecified network driver. "
        );
        assert_eq!(
            network_driver(Some("ovn"), &section()).unwrap_err().message,
            "Network driver type ovn is not supported, expecting a flannel/calico/cilium/unspecified network driver."
        );
        let all = ClusterTemplateSection {
            kubernetes_allowed_network_drivers: vec!["all".into()],
            ..section()
        };
        assert!(network_driver(Some("cilium"), &all).is_ok());
    }

    #[test]
    fn volumes_are_checked() {
        assert!(
            check_volume_driver(Some("rexray"))
                .unwrap_err()
                .message
                .contains("expecting a cinder/unspecified")
        );
        assert!(check_volume_driver(Some("cinder")).is_ok());
        assert!(
            check_docker_volume(Some("devicemapper"), Some(2))
                .unwrap_err()
                .message
                .contains("2 GB")
        );
        assert!(check_docker_volume(Some("overlay2"), Some(1)).is_ok());
        assert!(check_docker_volume(None, None).is_ok());
        assert!(
            check_docker_volume(Some("devicemapper"), None)
                .is_err_and(|fault| fault.message.starts_with("docker volume size None GB"))
        );
    }

    #[test]
    fn the_driver_is_refused_below_its_version_unless_it_is_null() {
        assert!(refuse_driver(&given(json!({"driver": null}))).is_ok());
        assert_eq!(
            refuse_driver(&given(json!({"driver": "d"}))).unwrap_err().code(),
            400
        );
    }

    #[test]
    fn the_coe_is_required() {
        let template = ClusterTemplate::new("u".into());
        assert_eq!(
            check_coe(&template, false).unwrap_err().message,
            "Requested COE type Unset is not supported."
        );
        assert_eq!(
            check_coe(&template, true).unwrap_err().message,
            "Requested COE type None is not supported."
        );
    }

    #[test]
    fn a_boot_volume_size_is_a_number() {
        let labels = |text: &str| {
            [("boot_volume_size".to_owned(), text.to_owned())]
                .into_iter()
                .collect()
        };
        assert_eq!(boot_volume_size(&labels(" 20")), Ok(Some(20)));
        assert_eq!(boot_volume_size(&labels("0")), Ok(Some(0)));
        for text in ["x", "-5"] {
            assert_eq!(
                boot_volume_size(&labels(text)).unwrap_err().message,
                format!("boot_volume_size must be an integer of at least 0, not '{text}'.")
            );
        }
    }
}
