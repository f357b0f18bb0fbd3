//! What a request names in other OpenStack services: images, flavors, key pairs, networks, volume types, projects.
//!
//! Everything is asked with the caller's own token, at the endpoints of the caller's own catalog, so that a caller can
//! name exactly what a caller can see. One [`Inquiry`] belongs to one request of a client: what it has asked once it
//! does not ask again, independent questions go out together, and all of them end within `[api] lookup_timeout`.
//!
//! Guarantee: a service that is away, slow or answers what its API does not promise is a 503 that names the service,
//! never a 500. What it responded goes to the log. Look-ups are filtered by the service where its API can, and always again
//! here.
//!
//! Where this differs from Magnum: each thing is asked for by its id or name instead of listing all of its kind several
//! times, and a failing service is not taken for a missing image. Without Keystone (`[api] auth_strategy = noauth`)
//! there is no cloud to ask: images come from `[api] image_catalog_file`, and the rest is taken as it is.

mod error;
mod findings;
mod flavors;
mod images;
mod inquiry;
mod key_pairs;
mod named;
mod networks;
mod projects;
mod volume_types;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_config::{AuthStrategy, Settings};
use magnum_openstack::{Connection, Endpoints, ServiceError, Trust};

pub use error::CloudError;
pub use findings::Findings;
pub use flavors::Flavor;
pub use inquiry::Inquiry;
pub use named::Named;

use crate::image_catalog::FileCatalog;

/// What is asked, for as long as the process runs.
pub struct Cloud {
    source: Arc<Source>,
}

/// Where answers come from.
enum Source {
    /// A file knows the images, and nothing else is asked.
    File(FileCatalog),
    Services(Box<Services>),
}

/// The services of a cloud.
struct Services {
    connection: Connection,
    endpoints: Endpoints,
    /// For all look-ups of one request together.
    timeout: Duration,
}

impl Cloud {
    /// The cloud that the settings name. Connects to nothing yet.
    ///
    /// # Errors
    /// A file of certificates cannot be read.
    pub fn from_settings(settings: &Settings) -> Result<Self, ServiceError> {
        let source = match settings.api.auth_strategy {
            AuthStrategy::Noauth => Source::File(FileCatalog::new(settings.api.image_catalog_file.clone())),
            AuthStrategy::Keystone => {
                let timeout = settings.api.lookup_timeout;
                Source::Services(Box::new(Services {
                    connection: Connection::new(&trust(settings), timeout)?,
                    endpoints: Endpoints::new(settings),
                    timeout,
                }))
            }
        };
        Ok(Self {
            source: Arc::new(source),
        })
    }

    /// Begins the look-ups of one request.
    pub fn inquire(&self, context: &RequestContext) -> Inquiry {
        Inquiry::new(Arc::clone(&self.source), context.clone())
    }
}

/// Whom we believe: as `[keystone_auth]` says, and where that says nothing, as `[keystone_authtoken]`.
fn trust(settings: &Settings) -> Trust {
    let (own, other) = (&settings.keystone_auth, &settings.keystone_authtoken);
    let says = own.cafile.is_some() || own.certfile.is_some() || own.keyfile.is_some() || own.insecure;
    if says {
        return Trust {
            section: "keystone_auth",
            cafile: own.cafile.clone(),
            certfile: own.certfile.clone(),
            keyfile: own.keyfile.clone(),
            insecure: own.insecure,
        };
    }
    Trust {
        section: "keystone_authtoken",
        cafile: other.cafile.clone(),
        certfile: other.certfile.clone(),
        keyfile: other.keyfile.clone(),
        insecure: other.insecure,
    }
}
