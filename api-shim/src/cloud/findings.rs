//! Everything that one request names, asked for at once and judged in Magnum's order.

use magnum_common::error::{Exception, Fault};

use super::error::CloudError;
use super::flavors::Flavor;
use super::inquiry::Inquiry;
use super::named::Named;

/// What came of asking. Nothing is refused before somebody asks what was found.
#[derive(Debug)]
pub struct Findings {
    flavor: Result<Option<Flavor>, CloudError>,
    master_flavor: Result<Option<Flavor>, CloudError>,
    external_network: Result<(), CloudError>,
    fixed_network: Result<Option<String>, CloudError>,
    network_of_subnet: Result<Option<String>, CloudError>,
    volume_types: Result<(), CloudError>,
    key_pair: Result<(), CloudError>,
    /// As the request calls them.
    network: String,
    subnet: String,
}

/// The answer, where there is a question.
async fn answered<T: Default>(
    question: Option<impl Future<Output = Result<T, CloudError>>>,
) -> Result<T, CloudError> {
    match question {
        Some(question) => question.await,
        None => Ok(T::default()),
    }
}

impl Inquiry {
    /// Asks for all of it together.
    pub async fn look_up(&self, named: &Named<'_>) -> Findings {
        let (
            flavor,
            master_flavor,
            external_network,
            fixed_network,
            network_of_subnet,
            volume_types,
            key_pair,
        ) = tokio::join!(
            answered(named.flavor.map(|ident| self.flavor(ident))),
            answered(named.master_flavor.map(|ident| self.flavor(ident))),
            answered(named.external_network.map(|ident| self.external_network(ident))),
            answered(named.fixed_network.map(|ident| self.fixed_network(ident))),
            answered(named.fixed_subnet.map(|ident| self.network_of_subnet(ident))),
            answered(named.labels.map(|labels| self.volume_types(labels))),
            answered(named.key_pair.map(|name| self.key_pair(name))),
        );
        Findings {
            flavor,
            master_flavor,
            external_network,
            fixed_network,
            network_of_subnet,
            volume_types,
            key_pair,
            network: named.fixed_network.unwrap_or_default().to_owned(),
            subnet: named.fixed_subnet.unwrap_or_default().to_owned(),
        }
    }
}

impl Findings {
    /// Whether flavors, networks, the subnet and volume types exist, and the subnet is one of the network's.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub fn check_existence(&self) -> Result<(), CloudError> {
        self.flavor.clone()?;
        self.master_flavor.clone()?;
        self.external_network.clone()?;
        let network = self.fixed_network.clone()?;
        let of_subnet = self.network_of_subnet.clone()?;
        if let (Some(network), Some(of_subnet)) = (network, of_subnet)
            && network != of_subnet
        {
            return Err(Fault::invalid_parameter(format!(
                "The fixed subnet {} is not one of the fixed network {}.",
                self.subnet, self.network
            ))
            .into());
        }
        self.volume_types.clone()
    }

    /// Whether any flavor was looked up.
    pub fn has_flavors(&self) -> bool {
        [&self.flavor, &self.master_flavor]
            .iter()
            .any(|flavor| !matches!(flavor, Ok(None)))
    }

    /// Whether the nodes get a root disk: from their flavor, unless their boot volume has a size.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub fn check_root_disks(&self, boot_volume_size: u32) -> Result<(), CloudError> {
        if boot_volume_size > 0 {
            return Ok(());
        }
        for flavor in [&self.flavor, &self.master_flavor] {
            if flavor.clone()?.is_some_and(|flavor| flavor.disk == 0) {
                return Err(Fault::new(
                    Exception::FlavorZeroRootVolumeNotSupported,
                    "Flavor with zero root volume size is not supported when boot_volume_size is zero.",
                )
                .into());
            }
        }
        Ok(())
    }

    /// Whether the key pair exists.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub fn check_key_pair(&self) -> Result<(), CloudError> {
        self.key_pair.clone()
    }
}
