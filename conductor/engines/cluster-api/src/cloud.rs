//! What the cloud has of that which a cluster's rows name, asked with the requester's token.

use magnum_common::context::RequestContext;
use magnum_driver_api::{Cloud, DriverError, Reason};
use magnum_openstack::{Endpoint, Method, Reply, Root, Service, ServiceError, ServiceRequest, UserSession};
use serde_json::Value;
use uuid::Uuid;

use crate::flavors::Flavor;
use crate::helm_values::Image;

/// Where a cloud is, for those in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Keystone's address for everybody.
    pub keystone: String,
    /// The region of clusters.
    pub region: String,
}

/// Questions in the name of the user who asked for something.
pub struct Questions<'a> {
    user: UserSession<'a>,
    cloud: &'a Cloud,
}

/// A permanent failure in the words that Magnum has for it.
fn missing(what: &str, name: &str) -> DriverError {
    DriverError::Permanent(Reason::open(format!("Unable to find {what} {name}.")))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn list(reply: &Reply, name: &str) -> Result<Vec<Value>, ServiceError> {
    match reply.json()?[name].take() {
        Value::Array(items) => Ok(items),
        _ => Err(reply.unusable("it has no list")),
    }
}

impl<'a> Questions<'a> {
    /// With the token of a call.
    ///
    /// # Errors
    /// There is none, or Keystone does not take it any more.
    pub async fn of(cloud: &'a Cloud, context: &RequestContext) -> Result<Self, DriverError> {
        let user = cloud.user(context).await?;
        Ok(Self { user, cloud })
    }

    async fn get(&self, service: Service, path: &str, query: &[(&str, &str)]) -> Result<Reply, ServiceError> {
        let endpoint = self.cloud.endpoints().of(service);
        self.user
            .request(&ServiceRequest::get(endpoint, path, query))
            .await
    }

    /// Has a service make something in the user's name.
    ///
    /// # Errors
    /// It refuses that, or is away.
    pub async fn post(&self, service: Service, path: &str, body: &Value) -> Result<Reply, ServiceError> {
        let endpoint = self.cloud.endpoints().of(service);
        let request = ServiceRequest {
            method: Method::POST,
            body: Some(body),
            ..ServiceRequest::get(endpoint, path, &[])
        };
        self.user.request(&request).await
    }

    /// Where the user's cloud is. The region is that of `[cinder_client] region_name`, or the only one.
    ///
    /// # Errors
    /// The option names no region of Keystone's, or no option says which of several it is.
    pub async fn place(&self) -> Result<Place, DriverError> {
        let endpoints = self.cloud.endpoints();
        let public = Endpoint {
            interface: "public".to_owned(),
            ..endpoints.of(Service::Keystone).clone()
        };
        let keystone = self.user.address(&public.at(Root::AsListed))?;
        let reply = self.get(Service::Keystone, "/regions", &[]).await?;
        let regions: Vec<String> = list(&reply, "regions")?
            .iter()
            .filter_map(|region| text(&region["id"]))
            .collect();
        let wanted = endpoints.of(Service::Cinder).region.clone();
        let region = region_of(wanted, &regions).map_err(|why| {
            DriverError::Permanent(Reason::internal("the region of clusters is not known", why))
        })?;
        Ok(Place { keystone, region })
    }

    /// The image with this id, or the only one with this name, hidden ones last.
    ///
    /// # Errors
    /// There is none, or several have the name, or Glance cannot be asked.
    pub async fn image(&self, ident: &str) -> Result<Image, DriverError> {
        if Uuid::try_parse(ident).is_ok() {
            match self.get(Service::Glance, &format!("/images/{ident}"), &[]).await {
                Ok(reply) => return Ok(image(&reply.json()?)),
                Err(ServiceError::NotFound { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        for query in [&[("name", ident)][..], &[("name", ident), ("os_hidden", "true")]] {
            let reply = self.get(Service::Glance, "/images", query).await?;
            let found = list(&reply, "images")?;
            let mut named = found.iter().filter(|image| image["name"] == ident);
            match (named.next(), named.next()) {
                (Some(found), None) => return Ok(image(found)),
                (Some(_), Some(_)) => {
                    let several = format!("More than one image has the name {ident}: name it by its id.");
                    return Err(DriverError::Permanent(Reason::open(several)));
                }
                (None, _) => {}
            }
        }
        Err(missing("image", ident))
    }

    /// The flavors with at least so much memory, in MB.
    ///
    /// # Errors
    /// Nova cannot be asked.
    pub async fn flavors(&self, least_memory: u32) -> Result<Vec<Flavor>, DriverError> {
        let least = least_memory.to_string();
        // The service leaves it to us to say which: an administrator sees those of other projects, too, as with Magnum.
        let query = [("is_public", "None"), ("minRam", &*least)];
        let reply = self.get(Service::Nova, "/flavors/detail", &query).await?;
        let flavors = list(&reply, "flavors")?;
        let read = |flavor: &Value| {
            Some(Flavor {
                id: text(&flavor["id"])?,
                name: text(&flavor["name"])?,
                vcpus: u32::try_from(flavor["vcpus"].as_u64()?).ok()?,
            })
        };
        let flavors: Option<Vec<Flavor>> = flavors.iter().map(read).collect();
        Ok(flavors.ok_or_else(|| reply.unusable("a flavor lacks its id, its name or its vcpus"))?)
    }

    /// The id of a network outside of the project's.
    ///
    /// # Errors
    /// There is none of that name, or Neutron cannot be asked.
    pub async fn external_network(&self, ident: &str) -> Result<String, DriverError> {
        self.network(ident, "True", "external network").await
    }

    /// The id of a network inside.
    ///
    /// # Errors
    /// There is none of that name, or Neutron cannot be asked.
    pub async fn fixed_network(&self, ident: &str) -> Result<String, DriverError> {
        self.network(ident, "False", "fixed network").await
    }

    async fn network(&self, ident: &str, external: &str, what: &str) -> Result<String, DriverError> {
        let query = [("name", ident), ("router:external", external)];
        self.neutron(ident, "/networks", "networks", &query, what).await
    }

    /// The id of a subnet.
    ///
    /// # Errors
    /// There is none of that name, or Neutron cannot be asked.
    pub async fn fixed_subnet(&self, ident: &str) -> Result<String, DriverError> {
        let query = [("name", ident)];
        self.neutron(ident, "/subnets", "subnets", &query, "fixed subnet")
            .await
    }

    /// An id is believed: whether there is such a thing is seen where it is used.
    async fn neutron(
        &self,
        ident: &str,
        path: &str,
        items: &str,
        query: &[(&str, &str)],
        what: &str,
    ) -> Result<String, DriverError> {
        if Uuid::try_parse(ident).is_ok() {
            return Ok(ident.to_owned());
        }
        let reply = self.get(Service::Neutron, path, query).await?;
        let found = list(&reply, items)?;
        let mut named = found.iter().filter(|one| one["name"] == ident);
        match (named.next(), named.next()) {
            (Some(one), None) => Ok(text(&one["id"]).ok_or_else(|| reply.unusable("it has no id"))?),
            (Some(_), Some(_)) => {
                let several = format!("More than one {what} has the name {ident}: name it by its id.");
                Err(DriverError::Permanent(Reason::open(several)))
            }
            (None, _) => Err(missing(what, ident)),
        }
    }

    /// The names of Cinder's volume types, in its order.
    ///
    /// # Errors
    /// Cinder cannot be asked.
    pub async fn volume_types(&self) -> Result<Vec<String>, DriverError> {
        let reply = self.get(Service::Cinder, "/types", &[]).await?;
        let types = list(&reply, "volume_types")?;
        Ok(types.iter().filter_map(|one| text(&one["name"])).collect())
    }
}

fn region_of(wanted: Option<String>, regions: &[String]) -> Result<String, String> {
    match (wanted, regions) {
        (Some(wanted), _) if regions.contains(&wanted) => Ok(wanted),
        (Some(wanted), _) => Err(format!(
            "[cinder_client] region_name: Keystone has no region {wanted}, but {}",
            regions.join(", ")
        )),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(format!(
            "[cinder_client] region_name has to say which region clusters are in: Keystone has {}",
            regions.join(", ")
        )),
    }
}

fn image(found: &Value) -> Image {
    Image {
        id: text(&found["id"]).unwrap_or_default(),
        kube_version: text(&found["kube_version"]),
        os_distro: text(&found["os_distro"]),
    }
}
