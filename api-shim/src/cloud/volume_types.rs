//! Volume types in Cinder, which labels name.
//!
//! Magnum looks at none of them. A type that does not exist only shows when volumes are made, minutes later; so it is
//! refused here, where there is a Cinder to ask.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::StringMap;
use serde_json::Value;

use super::error::CloudError;
use super::inquiry::Inquiry;
use magnum_openstack::Service;

/// The labels that name one. An empty one means Cinder's own choice.
pub(super) const LABELS: [&str; 3] = ["boot_volume_type", "docker_volume_type", "etcd_volume_type"];

impl Inquiry {
    /// Whether the caller can use every volume type that the labels name, by id or name.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn volume_types(&self, labels: &StringMap) -> Result<(), CloudError> {
        let named = LABELS
            .iter()
            .filter_map(|label| Some((*label, labels.get(*label)?)))
            .filter(|(_, name)| !name.is_empty());
        for (label, name) in named {
            let Some(cinder) = self.services().filter(|_| self.has(Service::Cinder)) else {
                return Ok(());
            };
            let is_wanted = |kind: &Value| kind["name"] == **name || kind["id"] == **name;
            let found = self
                .listed(cinder, Service::Cinder, "/types", "volume_types", is_wanted)
                .await?;
            if found.is_none() {
                let detail = format!(
                    "Valid volume type could not be found. The label {label} names '{name}', which Cinder does not \
                     show to the caller."
                );
                return Err(Fault::new(Exception::VolumeTypeNotFound, detail).into());
            }
        }
        Ok(())
    }
}
