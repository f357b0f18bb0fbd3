//! Flavors in Nova.
//!
//! Nova finds flavors by id only. A name is looked for in the list, page by page: also where the look-up by id fails,
//! since not every cloud lets everybody make it.

use magnum_common::error::{Exception, Fault};
use serde_json::Value;

use super::Services;
use super::error::CloudError;
use super::inquiry::{Inquiry, LookupResponse, NO_LIST, bad_response, items, part};
use magnum_openstack::Service;

/// More pages than this are no list that ends.
const PAGES: usize = 1000;

/// A flavor, as far as nodes are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavor {
    /// Size of its root disk in GB; 0: it has none.
    pub disk: i64,
}

impl Inquiry {
    /// The flavor with this id or name; `None` where there is no Nova to ask.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn flavor(&self, ident: &str) -> Result<Option<Flavor>, CloudError> {
        let Some(nova) = self.services() else {
            return Ok(None);
        };
        if let Some(id) = part(ident) {
            let answer = self
                .get(nova, Service::Nova, &format!("/flavors/{id}"), &[])
                .await?;
            if let LookupResponse::Document(document) = &*answer {
                return read(&document["flavor"]).map(Some);
            }
        }
        let is_wanted = |flavor: &Value| flavor["name"] == *ident || flavor["id"] == *ident;
        match self
            .listed(nova, Service::Nova, "/flavors/detail", "flavors", is_wanted)
            .await?
        {
            Some(flavor) => read(&flavor).map(Some),
            None => {
                let detail = format!("Unable to find flavor {ident}.");
                Err(Fault::new(Exception::FlavorNotFound, detail).into())
            }
        }
    }

    /// The first in a list of pages, linked as Nova and Cinder link them, that is wanted.
    pub(super) async fn listed(
        &self,
        services: &Services,
        service: Service,
        path: &str,
        key: &'static str,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, CloudError> {
        let mut marker: Option<String> = None;
        for _ in 0..PAGES {
            let query: Vec<(&str, &str)> = marker.iter().map(|id| ("marker", id.as_str())).collect();
            let answer = self.get(services, service, path, &query).await?;
            let document = match &*answer {
                LookupResponse::Document(document) => document,
                LookupResponse::Forbidden => {
                    return Err(CloudError::Forbidden {
                        service,
                        subject: key,
                    });
                }
                LookupResponse::Missing | LookupResponse::BadName => {
                    return Err(bad_response(service, path, NO_LIST));
                }
            };
            let page = items(service, document, key)?;
            if let Some(found) = page.iter().find(|one| is_wanted(one)) {
                return Ok(Some(found.clone()));
            }
            let last = page.last().and_then(|last| last["id"].as_str());
            match last.filter(|_| has_next(document, key)) {
                Some(last) => marker = Some(last.to_owned()),
                None => return Ok(None),
            }
        }
        Err(bad_response(service, path, "the list does not end"))
    }
}

/// Whether a document links to a page after it, under `flavors_links` or `volume_type_links`.
fn has_next(document: &Value, key: &str) -> bool {
    let names = [
        format!("{key}_links"),
        format!("{}_links", key.trim_end_matches('s')),
    ];
    names
        .iter()
        .filter_map(|name| document[name].as_array())
        .flatten()
        .any(|link| link["rel"] == "next")
}

fn read(flavor: &Value) -> Result<Flavor, CloudError> {
    let disk = flavor["disk"].as_i64();
    let disk = disk.ok_or_else(|| bad_response(Service::Nova, "flavor", "it has no disk"))?;
    Ok(Flavor { disk })
}
