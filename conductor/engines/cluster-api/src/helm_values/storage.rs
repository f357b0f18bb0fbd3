//! The storage classes of a cluster: one for each volume type of Cinder's.

use magnum_config::value::Keyword as _;
use serde_json::{Value, json};

use super::{Choices, NoValues};
use crate::labels::Labels;
use crate::names::sanitized;

pub(super) fn classes(
    labels: Labels<'_>,
    choices: Choices<'_>,
    volume_types: &[String],
) -> Result<Value, NoValues> {
    let default = default_type(&choices.helm.csi_cinder_default_volume_type, volume_types)?;
    let defaults = choices.labels;
    let class = |volume_type: &String| {
        json!({
            "name": sanitized(volume_type),
            "reclaimPolicy":
                labels.text("csi_cinder_reclaim_policy", defaults.csi_cinder_reclaim_policy.word()),
            "allowVolumeExpansion": labels
                .flag("csi_cinder_allow_volume_expansion", defaults.csi_cinder_allow_volume_expansion),
            "volumeBindingMode":
                labels.text("csi_cinder_volume_binding_mode", defaults.csi_cinder_volume_binding_mode.word()),
            "availabilityZone":
                labels.text("csi_cinder_availability_zone", &defaults.csi_cinder_availability_zone),
            "volumeType": volume_type,
            "allowedTopologies": choices.helm.csi_cinder_allowed_topologies,
            "fstype": labels.text("csi_cinder_fstype", &defaults.csi_cinder_fstype),
            "enabled": true,
        })
    };
    let others = volume_types.iter().filter(|one| *one != default);
    Ok(json!({
        "defaultStorageClass": class(default),
        "additionalStorageClasses": others.map(class).collect::<Vec<_>>(),
    }))
}

/// The operator's, or else Cinder's first.
fn default_type<'a>(wanted: &str, volume_types: &'a [String]) -> Result<&'a String, NoValues> {
    let first = volume_types.first().ok_or(NoValues::NoVolumeTypes)?;
    if wanted.is_empty() {
        return Ok(first);
    }
    let mut named = volume_types.iter().filter(|one| *one == wanted);
    named
        .next()
        .ok_or_else(|| NoValues::NoSuchVolumeType(wanted.to_owned()))
}
