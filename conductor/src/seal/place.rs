//! Where a sealed value belongs: what it is, and in which row. Authenticated with the value, so that it opens there only.

/// The layout of values that are bound to their place.
pub(super) const LAYOUT: u8 = 2;
/// The layout before it, in which contexts and passwords are bound to what they are, and to no row.
pub(super) const FORMER: u8 = 1;

/// A place for one sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// The context of an operation, by the operation's uuid.
    Context(&'a str),
    /// The password of a cluster's user in Keystone, by the cluster's uuid.
    TrustPassword(&'a str),
    /// A private key, by the reference of its certificate.
    PrivateKey(&'a str),
    /// A key of the pool, by its type: such keys are alike until they are used.
    PooledKey(&'a str),
    /// A record of when something began, by its name.
    Beginning(&'a str),
}

impl Place<'_> {
    const fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Context(operation) => ("context", operation),
            Self::TrustPassword(cluster) => ("trust password", cluster),
            Self::PrivateKey(reference) => ("private key", reference),
            Self::PooledKey(key_type) => ("pooled key", key_type),
            Self::Beginning(name) => ("beginning", name),
        }
    }

    /// What is authenticated with a value of the present layout. No purpose has a NUL: none runs into its identity.
    pub(super) fn bound(&self) -> Vec<u8> {
        let (purpose, identity) = self.parts();
        format!("magnum sealed v{LAYOUT}\0{purpose}\0{identity}").into_bytes()
    }

    /// What was authenticated with a value of the former layout: never to be changed.
    pub(super) fn former(&self) -> Vec<u8> {
        match self {
            Self::Context(_) => "magnum conductor journal v1".to_owned(),
            Self::TrustPassword(_) => "magnum cluster trust v1".to_owned(),
            Self::PrivateKey(reference) => format!("magnum private key v1 {reference}"),
            Self::PooledKey(key_type) => format!("magnum key pool v1 {key_type}"),
            // There were none.
            Self::Beginning(name) => format!("magnum beginning v1 {name}"),
        }
        .into_bytes()
    }

    /// Whether the former layout bound such values to their place as well.
    pub(super) const fn is_bound_by_former(&self) -> bool {
        matches!(self, Self::PrivateKey(_) | Self::PooledKey(_))
    }
}
