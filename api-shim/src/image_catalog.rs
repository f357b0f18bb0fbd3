//! Images and their properties, and the file that has them where there is no Glance.
//!
//! A template names an image, and the image's properties say which operating system is on it and, if an
//! operator wants, which driver builds from it. [`FileCatalog`] reads them from a JSON file, for `noauth`:
//!
//! ```json
//! [{"id": "…uuid…", "name": "ubuntu-24.04", "properties": {"magnum_distro": "ubuntu"}}]
//! ```
//!
//! The file is read at each lookup (lookups are rare: templates are few), so that an edit needs no restart.

use std::path::PathBuf;
use std::sync::Arc;

use magnum_common::error::{Exception, Fault};
use magnum_common::model::StringMap;
use magnum_drivers::ImageProperties;
use serde::Deserialize;

/// An image, as far as templates are concerned.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Image {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub properties: StringMap,
}

impl Image {
    /// What the choice of a driver needs to know; `ident` is what the user called the image.
    pub fn for_resolution(&self, ident: &str) -> ImageProperties {
        let property = |name: &str| self.properties.get(name).cloned();
        ImageProperties {
            image: ident.to_owned(),
            magnum_distro: property("magnum_distro"),
            os_distro: property("os_distro"),
            magnum_driver: property("magnum_driver"),
        }
    }
}

/// Why the file that stands in for Glance has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CatalogError {
    /// `[api] image_catalog_file` is not set.
    #[error("[api] image_catalog_file is not set")]
    NotConfigured,
    /// It cannot be read.
    #[error("[api] image_catalog_file {} cannot be read: {source}", file.display())]
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// What happened.
        source: Arc<std::io::Error>,
    },
    /// It is not a list of images in JSON.
    #[error("[api] image_catalog_file {} is not valid: {source}", file.display())]
    Invalid {
        /// Its path.
        file: PathBuf,
        /// What is wrong with it.
        source: Arc<serde_json::Error>,
    },
    /// It has no such image, or several with this name.
    #[error(transparent)]
    Refused(#[from] Fault),
}

/// Images from a JSON file. Every caller sees all of them.
#[derive(Debug, Clone)]
pub struct FileCatalog {
    file: Option<PathBuf>,
}

impl FileCatalog {
    /// A catalog in `file`. Without one, every lookup is refused with a message that says what to set.
    pub fn new(file: Option<PathBuf>) -> Self {
        if file.is_none() {
            tracing::warn!(
                "[api] image_catalog_file is not set: cluster templates cannot be created, since nothing knows \
                 the images"
            );
        }
        Self { file }
    }

    /// The image with this id, or the only one with this name.
    ///
    /// # Errors
    /// The file is not set, cannot be read or is not valid, or has no such image or several.
    pub async fn find(&self, ident: &str) -> Result<Image, CatalogError> {
        let file = self.file.as_ref().ok_or(CatalogError::NotConfigured)?;
        let text = tokio::fs::read(file)
            .await
            .map_err(|error| CatalogError::Unreadable {
                file: file.clone(),
                source: Arc::new(error),
            })?;
        let images: Vec<Image> = serde_json::from_slice(&text).map_err(|error| CatalogError::Invalid {
            file: file.clone(),
            source: Arc::new(error),
        })?;
        Ok(pick(images, ident)?)
    }
}

fn pick(images: Vec<Image>, ident: &str) -> Result<Image, Fault> {
    if let Some(image) = images.iter().find(|image| image.id == ident) {
        return Ok(image.clone());
    }
    let mut named = images.into_iter().filter(|image| image.name == ident);
    match (named.next(), named.next()) {
        (Some(image), None) => Ok(image),
        (Some(_), Some(_)) => Err(several(ident)),
        (None, _) => Err(not_found(ident)),
    }
}

/// The fault for a name that several images have.
pub fn several(ident: &str) -> Fault {
    Fault::new(
        Exception::Conflict,
        format!("Multiple images exist with same name '{ident}'. Please use the image ID instead."),
    )
}

/// The fault for an image that the caller cannot see.
pub fn not_found(ident: &str) -> Fault {
    Fault::new(
        Exception::ImageNotFound,
        format!("Image {ident} could not be found."),
    )
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::cloud::CloudError;
    use crate::faults::ApiFault;

    fn image(id: &str, name: &str) -> Image {
        Image {
            id: id.to_owned(),
            name: name.to_owned(),
            properties: StringMap::new(),
        }
    }

    #[test]
    fn an_image_is_found_by_id_or_by_its_only_name() {
        let images = vec![
            image("1", "a"),
            image("2", "twin"),
            image("3", "twin"),
            image("4", "1"),
        ];
        assert_eq!(pick(images.clone(), "a").unwrap().id, "1");
        assert_eq!(pick(images.clone(), "1").unwrap().id, "1");
        assert_eq!(pick(images.clone(), "twin").unwrap_err().code(), 409);
        assert_eq!(pick(images, "no").unwrap_err().code(), 400);
    }

    #[tokio::test]
    async fn missing_file_is_a_503_that_does_not_show_its_path() {
        for catalog in [
            FileCatalog { file: None },
            FileCatalog {
                file: Some("/nonexistent/images".into()),
            },
        ] {
            let fault = ApiFault::from(CloudError::from(catalog.find("a").await.unwrap_err()));
            assert_eq!(fault.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(!fault.detail().contains("nonexistent"), "{}", fault.detail());
        }
    }
}
