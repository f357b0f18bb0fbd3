//! Networks and subnets in Neutron, by id or name.

use magnum_common::error::{Exception, Fault};
use serde_json::Value;
use uuid::Uuid;

use super::Services;
use super::error::CloudError;
use super::inquiry::{Inquiry, LookupResponse, NO_LIST, bad_response, items};
use magnum_openstack::Service;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ExternalNetwork,
    FixedNetwork,
    FixedSubnet,
}

impl Kind {
    const fn list(self) -> &'static str {
        match self {
            Self::ExternalNetwork | Self::FixedNetwork => "networks",
            Self::FixedSubnet => "subnets",
        }
    }

    fn not_found(self, ident: &str) -> Fault {
        let (exception, what) = match self {
            Self::ExternalNetwork => (Exception::ExternalNetworkNotFound, "external network"),
            Self::FixedNetwork => (Exception::FixedNetworkNotFound, "fixed network"),
            Self::FixedSubnet => (Exception::FixedSubnetNotFound, "fixed subnet"),
        };
        Fault::new(exception, format!("Unable to find {what} {ident}."))
    }

    fn several(self, ident: &str) -> Fault {
        let what = match self {
            Self::ExternalNetwork => "external network",
            Self::FixedNetwork => "network",
            Self::FixedSubnet => "subnet",
        };
        Fault::new(
            Exception::Conflict,
            format!("Multiple {what}s exist with same name '{ident}'. Please use the {what} ID instead."),
        )
    }

    /// Whether Neutron would have left it out, had it looked at the filter.
    fn fits(self, found: &Value) -> bool {
        self != Self::ExternalNetwork || found["router:external"] == true
    }
}

impl Inquiry {
    /// Whether there is exactly one external network with this id or name.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn external_network(&self, ident: &str) -> Result<(), CloudError> {
        self.in_neutron(Kind::ExternalNetwork, ident).await.map(drop)
    }

    /// The id of the only network with this id or name; `None` where there is no Neutron to ask.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn fixed_network(&self, ident: &str) -> Result<Option<String>, CloudError> {
        let found = self.in_neutron(Kind::FixedNetwork, ident).await?;
        found.as_ref().map(|network| id_in(network, "id")).transpose()
    }

    /// The id of the network that has the only subnet with this id or name; `None` where there is no Neutron to ask.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn network_of_subnet(&self, ident: &str) -> Result<Option<String>, CloudError> {
        let found = self.in_neutron(Kind::FixedSubnet, ident).await?;
        found
            .as_ref()
            .map(|subnet| id_in(subnet, "network_id"))
            .transpose()
    }

    async fn in_neutron(&self, kind: Kind, ident: &str) -> Result<Option<Value>, CloudError> {
        let Some(neutron) = self.services() else {
            return Ok(None);
        };
        // Neutron cannot be asked for "id or name". Its ids are uuids, so nothing else can be one.
        if Uuid::try_parse(ident).is_ok()
            && let Some(found) = self.only(neutron, kind, "id", ident).await?
        {
            return Ok(Some(found));
        }
        match self.only(neutron, kind, "name", ident).await? {
            Some(found) => Ok(Some(found)),
            None => Err(kind.not_found(ident).into()),
        }
    }

    /// The only one whose `key` is `value`.
    async fn only(
        &self,
        neutron: &Services,
        kind: Kind,
        key: &str,
        value: &str,
    ) -> Result<Option<Value>, CloudError> {
        let mut query = vec![(key, value), ("fields", "id"), ("fields", "name")];
        match kind {
            Kind::ExternalNetwork => {
                query.extend([("fields", "router:external"), ("router:external", "true")]);
            }
            Kind::FixedNetwork => {}
            Kind::FixedSubnet => query.push(("fields", "network_id")),
        }
        let path = format!("/{}", kind.list());
        let answer = self.get(neutron, Service::Neutron, &path, &query).await?;
        let found = match &*answer {
            LookupResponse::Document(document) => items(Service::Neutron, document, kind.list())?,
            LookupResponse::BadName => return Ok(None),
            LookupResponse::Missing => return Err(bad_response(Service::Neutron, &path, NO_LIST)),
            LookupResponse::Forbidden => {
                return Err(CloudError::Forbidden {
                    service: Service::Neutron,
                    subject: kind.list(),
                });
            }
        };
        let mut fitting = found.iter().filter(|one| one[key] == *value && kind.fits(one));
        match (fitting.next(), fitting.next()) {
            (_, Some(_)) => Err(kind.several(value).into()),
            (found, None) => Ok(found.cloned()),
        }
    }
}

fn id_in(found: &Value, key: &str) -> Result<String, CloudError> {
    let id = found[key].as_str().map(str::to_owned);
    id.ok_or_else(|| bad_response(Service::Neutron, key, "there is none"))
}
