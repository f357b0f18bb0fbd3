//! Images in Glance.
//!
//! An image is found by its id, else by its name, else by its name among the hidden ones, as `openstacksdk` does for
//! Magnum. An id that Glance does not let the caller see is as good as none.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::StringMap;
use serde_json::Value;
use uuid::Uuid;

use super::error::CloudError;
use super::inquiry::{Inquiry, LookupResponse, NO_LIST, bad_response, items};
use super::{Services, Source};
use crate::image_catalog::{self, Image};
use magnum_openstack::Service;

/// The properties that decide about drivers.
const PROPERTIES: [&str; 3] = ["magnum_driver", "magnum_distro", "os_distro"];

impl Inquiry {
    /// The image with this id, or the only one with this name, among those that the caller can see.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn image(&self, ident: &str) -> Result<Image, CloudError> {
        match &*self.source {
            Source::File(catalog) => Ok(catalog.find(ident).await?),
            Source::Services(glance) => self.image_in(glance, ident).await,
        }
    }

    async fn image_in(&self, glance: &Services, ident: &str) -> Result<Image, CloudError> {
        // Glance's ids are uuids, so nothing else can be one.
        if Uuid::try_parse(ident).is_ok() {
            let answer = self
                .get(glance, Service::Glance, &format!("/images/{ident}"), &[])
                .await?;
            if let LookupResponse::Document(image) = &*answer {
                return read(image);
            }
        }
        for filter in [&[("name", ident)][..], &[("name", ident), ("os_hidden", "true")]] {
            let answer = self.get(glance, Service::Glance, "/images", filter).await?;
            let found = match &*answer {
                LookupResponse::Document(document) => items(Service::Glance, document, "images")?,
                LookupResponse::BadName => continue,
                LookupResponse::Missing => return Err(bad_response(Service::Glance, "/images", NO_LIST)),
                LookupResponse::Forbidden => {
                    let detail = format!("Not authorized for image {ident}.");
                    return Err(Fault::new(Exception::ImageNotAuthorized, detail).into());
                }
            };
            let mut named = found.iter().filter(|image| image["name"] == *ident);
            match (named.next(), named.next()) {
                (Some(image), None) => return read(image),
                (Some(_), Some(_)) => return Err(image_catalog::several(ident).into()),
                (None, _) => {}
            }
        }
        Err(image_catalog::not_found(ident).into())
    }
}

fn read(image: &Value) -> Result<Image, CloudError> {
    let text = |key: &str| image[key].as_str().map(str::to_owned);
    let properties: StringMap = PROPERTIES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), text(name)?)))
        .collect();
    Ok(Image {
        id: text("id").ok_or_else(|| bad_response(Service::Glance, "image", "it has no id"))?,
        name: text("name").unwrap_or_default(),
        properties,
    })
}
