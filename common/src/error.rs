//! Magnum's exception classes, and which error type belongs where.
//!
//! * [`Fault`] is what a *user or peer* gets: an instance of one of Magnum's exception classes. The REST shim
//!   turns it into an HTTP fault, the RPC server into a failure reply from which a Python caller rebuilds the
//!   real `magnum.common.exception.<Class>`. Its message is shown to users: never put SQL, paths of this host
//!   or secrets into it.
//! * Each module has its own `thiserror` type for what can go wrong inside; it becomes a [`Fault`] at the border
//!   where a person has to be told.
//! * [`ErrorClass`] says what to do next with an operation: retry or give up.
//! * [`with_causes`] is how a program tells a person at a terminal why it ends.
//!
//! Classes, modules, codes and texts are those of `magnum/common/exception.py`.

use std::fmt;

use indexmap::IndexMap;
use serde_json::Value;

/// The error with its causes in one line. A cause that the error's own text quotes already is not said twice.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

/// What a failed step means for the operation it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// May succeed later without anybody changing anything: retry by the schedule.
    Transient,
    /// Will fail again: end the operation.
    Permanent,
    /// The driver cannot do this at all: refuse, and leave the cluster's status alone.
    NotSupported,
}

/// Where an exception class lives on the Python side.
pub const MAGNUM: &str = "magnum.common.exception";
/// Python's own exceptions.
pub const BUILTINS: &str = "builtins";
/// The dispatcher's exceptions of oslo.messaging.
pub const DISPATCHER: &str = "oslo_messaging.rpc.dispatcher";
/// The exceptions of oslo.versionedobjects.
pub const VERSIONED_OBJECTS: &str = "oslo_versionedobjects.exception";

macro_rules! exceptions {
    ($($variant:ident $module:ident $code:literal;)*) => {
        /// An exception class that a Python caller, or a REST client by its code, gets to see.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are Magnum's, which explains them")]
        pub enum Exception {
            $($variant,)*
        }

        impl Exception {
            /// All classes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The class's name in Python.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }

            /// The module it lives in.
            pub fn module(self) -> &'static str {
                match self {
                    $(Self::$variant => $module,)*
                }
            }

            /// The HTTP status a client gets for it.
            pub fn code(self) -> u16 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }
    };
}

exceptions! {
    MagnumException MAGNUM 500;
    // not found
    ObjectNotFound MAGNUM 404;
    ResourceNotFound MAGNUM 404;
    ProjectNotFound MAGNUM 404;
    HTTPNotFound MAGNUM 404;
    ClusterTemplateNotFound MAGNUM 404;
    ClusterNotFound MAGNUM 404;
    NodeGroupNotFound MAGNUM 404;
    FederationNotFound MAGNUM 404;
    QuotaNotFound MAGNUM 404;
    KeyPairNotFound MAGNUM 404;
    X509KeyPairNotFound MAGNUM 404;
    MagnumServiceNotFound MAGNUM 404;
    // bad input
    Invalid MAGNUM 400;
    InvalidUUID MAGNUM 400;
    InvalidName MAGNUM 400;
    InvalidIdentity MAGNUM 400;
    InvalidDNS MAGNUM 400;
    InvalidParameterValue MAGNUM 400;
    PatchError MAGNUM 400;
    InvalidCsr MAGNUM 400;
    InvalidVersion MAGNUM 400;
    CertificateValidationError MAGNUM 400;
    ConfigInvalid MAGNUM 400;
    ImageNotFound MAGNUM 400;
    OSDistroFieldNotFound MAGNUM 400;
    FlavorNotFound MAGNUM 400;
    FixedNetworkNotFound MAGNUM 400;
    FixedSubnetNotFound MAGNUM 400;
    ExternalNetworkNotFound MAGNUM 400;
    VolumeTypeNotFound MAGNUM 400;
    ClusterTemplateReferenced MAGNUM 400;
    OperationInProgress MAGNUM 400;
    NgOperationInProgress MAGNUM 400;
    NGResizeOutBounds MAGNUM 400;
    MasterNGSizeInvalid MAGNUM 400;
    NotSupported MAGNUM 400;
    ClusterTypeNotSupported MAGNUM 400;
    ClusterDriverNotSupported MAGNUM 400;
    MasterNGResizeNotSupported MAGNUM 400;
    ZeroNodeCountNotSupported MAGNUM 400;
    FlavorZeroRootVolumeNotSupported MAGNUM 400;
    ClusterUpgradeNotSupported MAGNUM 400;
    DeletingDefaultNGNotSupported MAGNUM 400;
    CreateMasterNodeGroup MAGNUM 400;
    // not allowed
    NotAuthorized MAGNUM 403;
    PolicyNotAuthorized MAGNUM 403;
    ClusterTemplatePublishDenied MAGNUM 403;
    ImageNotAuthorized MAGNUM 403;
    ResourceLimitExceeded MAGNUM 403;
    AuthorizationFailure MAGNUM 403;
    // conflict
    Conflict MAGNUM 409;
    ClusterAlreadyExists MAGNUM 409;
    ClusterTemplateAlreadyExists MAGNUM 409;
    FederationAlreadyExists MAGNUM 409;
    X509KeyPairAlreadyExists MAGNUM 409;
    NodeGroupAlreadyExists MAGNUM 409;
    NodeGroupInvalidInput MAGNUM 409;
    QuotaAlreadyExists MAGNUM 409;
    MemberAlreadyExists MAGNUM 409;
    InvalidClusterTemplateForUpgrade MAGNUM 409;
    ClusterAPIAddressUnavailable MAGNUM 409;
    PreDeletionFailed MAGNUM 409;
    // server side
    CertificateStorageException MAGNUM 500;
    CertificatesToClusterFailed MAGNUM 500;
    GetDiscoveryUrlFailed MAGNUM 500;
    ObjectError MAGNUM 500;
    // not Magnum's: a Python caller sees the builtin, or RemoteError
    ValueError BUILTINS 500;
    TypeError BUILTINS 500;
    AttributeError BUILTINS 500;
    KeyError BUILTINS 500;
    NotImplementedError BUILTINS 500;
    RuntimeError BUILTINS 500;
    NoSuchMethod DISPATCHER 500;
    UnsupportedVersion DISPATCHER 500;
    IncompatibleObjectVersion VERSIONED_OBJECTS 500;
    UnsupportedObjectError VERSIONED_OBJECTS 500;
    InvalidTargetVersion VERSIONED_OBJECTS 500;
}

/// One failure, told to a user or a peer in Magnum's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The class.
    pub exception: Exception,
    /// The formatted message, shown to users.
    pub message: String,
    /// Extra keyword arguments of the Python exception (`code` is added on the wire for Magnum's classes).
    pub kwargs: IndexMap<String, Value>,
}

impl Fault {
    /// A failure of `exception` with its whole message.
    pub fn new(exception: Exception, message: impl Into<String>) -> Self {
        Self {
            exception,
            message: message.into(),
            kwargs: IndexMap::new(),
        }
    }

    /// The HTTP status.
    pub fn code(&self) -> u16 {
        self.exception.code()
    }

    /// `Cluster <ident> could not be found.`
    pub fn cluster_not_found(ident: &str) -> Self {
        Self::new(
            Exception::ClusterNotFound,
            format!("Cluster {ident} could not be found."),
        )
    }

    /// `ClusterTemplate <ident> could not be found.`
    pub fn cluster_template_not_found(ident: &str) -> Self {
        Self::new(
            Exception::ClusterTemplateNotFound,
            format!("ClusterTemplate {ident} could not be found."),
        )
    }

    /// `Nodegroup <ident> could not be found.`
    pub fn node_group_not_found(ident: &str) -> Self {
        Self::new(
            Exception::NodeGroupNotFound,
            format!("Nodegroup {ident} could not be found."),
        )
    }

    /// `<operation> is not supported.`
    pub fn not_supported(operation: &str) -> Self {
        Self::new(Exception::NotSupported, format!("{operation} is not supported."))
    }

    /// `Cluster driver (<name>) not supported.`
    pub fn driver_not_supported(name: &str) -> Self {
        Self::new(
            Exception::ClusterDriverNotSupported,
            format!("Cluster driver ({name}) not supported."),
        )
    }

    /// `Cluster type (<server_type>, <os>, <coe>) not supported.`
    pub fn cluster_type_not_supported(server_type: &str, os: &str, coe: &str) -> Self {
        Self::new(
            Exception::ClusterTypeNotSupported,
            format!("Cluster type ({server_type}, {os}, {coe}) not supported."),
        )
    }

    /// A wrong value of a parameter, in free text that names the field.
    pub fn invalid_parameter(text: impl Into<String>) -> Self {
        Self::new(Exception::InvalidParameterValue, text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot listen: {0}")]
    struct Quoting(#[from] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("cannot serve")]
    struct Silent(#[source] Quoting);

    #[test]
    fn repeated_cause_is_shown_once() {
        let quoting = Quoting(std::io::Error::other("port taken"));
        assert_eq!(with_causes(&quoting), "cannot listen: port taken");
        assert_eq!(
            with_causes(&Silent(quoting)),
            "cannot serve: cannot listen: port taken"
        );
    }
}
