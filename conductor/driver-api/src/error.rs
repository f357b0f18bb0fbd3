//! Why a driver could not do what it was asked, and what that means for the operation.

use magnum_common::error::ErrorClass;

use crate::Reason;

/// A driver's failure. What its reason tells ends up in the cluster's `status_reason`, which users read; a driver's own
/// words are for them, and what an engine finds out about this host is not ([`Reason`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// May succeed later without anybody changing anything: the operation is tried again by its schedule.
    #[error("{0}")]
    Transient(Reason),
    /// Will fail again: the operation ends, the cluster becomes `*_FAILED`.
    #[error("{0}")]
    Permanent(Reason),
    /// The driver cannot do this at all: the operation ends, as with `Permanent`, but an upgrade or a rotation
    /// leaves the cluster's status as it was.
    #[error("{0}")]
    NotSupported(Reason),
    /// The driver was not asked at all: this conductor has no process, descriptor, memory or disk left for it, or what it
    /// runs is missing here. Another conductor may do better, so it counts as no attempt.
    #[error("{0}")]
    NotHere(Reason),
    /// The call was stopped from outside (a delete asked it to, the lease is gone, the process ends). Says
    /// nothing about the cluster; whoever cancelled knows what comes next.
    #[error("the call was cancelled")]
    Cancelled,
}

impl DriverError {
    /// What to do with the operation.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Transient(_) | Self::NotHere(_) | Self::Cancelled => ErrorClass::Transient,
            Self::Permanent(_) => ErrorClass::Permanent,
            Self::NotSupported(_) => ErrorClass::NotSupported,
        }
    }

    /// The reason, for whoever hands it on.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Transient(reason)
            | Self::Permanent(reason)
            | Self::NotSupported(reason)
            | Self::NotHere(reason) => reason.clone(),
            Self::Cancelled => Reason::open(self.to_string()),
        }
    }

    /// The error of that class with that reason.
    pub fn of(class: ErrorClass, reason: Reason) -> Self {
        match class {
            ErrorClass::Transient => Self::Transient(reason),
            ErrorClass::Permanent => Self::Permanent(reason),
            ErrorClass::NotSupported => Self::NotSupported(reason),
        }
    }
}
