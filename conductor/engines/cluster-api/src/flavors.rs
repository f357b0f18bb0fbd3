//! Whether a flavor is large enough for a node (reference drivers.md 4.2).

use crate::options::CapiHelmSection;

/// A flavor of Nova's that has [`CapiHelmSection::minimum_flavor_ram`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its processors.
    pub vcpus: u32,
}

/// Why a flavor is none for a node. The texts are the package's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooSmall {
    /// It has too little memory, or is not there at all: Nova lists those that have enough.
    #[error("Flavor {flavor} does not have enough RAM to run Kubernetes. Minimum {least} MB required.")]
    Memory {
        /// As the request names it.
        flavor: String,
        /// MB.
        least: u32,
    },
    /// It has too few processors.
    #[error("Flavor {flavor} does not have enough CPU to run Kubernetes. Minimum {least} vcpus required.")]
    Processors {
        /// As the request names it.
        flavor: String,
        /// How many there have to be.
        least: u32,
    },
}

/// Looks for `wanted`, an id or a name, among the flavors that have enough memory.
///
/// # Errors
/// It is too small, or there is none.
pub fn check(wanted: &str, with_memory: &[Flavor], options: &CapiHelmSection) -> Result<(), TooSmall> {
    let mut found = with_memory.iter();
    match found.find(|flavor| flavor.id == wanted || flavor.name == wanted) {
        None => Err(TooSmall::Memory {
            flavor: wanted.to_owned(),
            least: options.minimum_flavor_ram,
        }),
        Some(flavor) if flavor.vcpus < options.minimum_flavor_vcpus => Err(TooSmall::Processors {
            flavor: wanted.to_owned(),
            least: options.minimum_flavor_vcpus,
        }),
        Some(_) => Ok(()),
    }
}
