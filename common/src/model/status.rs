//! Cluster and node group statuses, and the sets that Magnum's rules are written in.

use std::fmt;
use std::str::FromStr;

macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the texts say it")]
        pub enum $name {
            $($variant,)*
        }

        impl $name {
            /// Every value, in Magnum's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The text on the wire and in rows.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl FromStr for $name {
            type Err = UnknownText;

            fn from_str(text: &str) -> Result<Self, UnknownText> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(UnknownText { kind: stringify!($name), text: text.to_owned() }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// A text that is not one of an enumeration's values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a value of {kind}")]
pub struct UnknownText {
    /// Name of the enumeration.
    pub kind: &'static str,
    /// The text that is none of its words.
    pub text: String,
}

text_enum! {
    /// Status of a cluster or of a node group.
    ClusterStatus {
        CreateInProgress = "CREATE_IN_PROGRESS",
        CreateFailed = "CREATE_FAILED",
        CreateComplete = "CREATE_COMPLETE",
        UpdateInProgress = "UPDATE_IN_PROGRESS",
        UpdateFailed = "UPDATE_FAILED",
        UpdateComplete = "UPDATE_COMPLETE",
        DeleteInProgress = "DELETE_IN_PROGRESS",
        DeleteFailed = "DELETE_FAILED",
        DeleteComplete = "DELETE_COMPLETE",
        ResumeComplete = "RESUME_COMPLETE",
        ResumeFailed = "RESUME_FAILED",
        RestoreComplete = "RESTORE_COMPLETE",
        RollbackInProgress = "ROLLBACK_IN_PROGRESS",
        RollbackFailed = "ROLLBACK_FAILED",
        RollbackComplete = "ROLLBACK_COMPLETE",
        SnapshotComplete = "SNAPSHOT_COMPLETE",
        CheckComplete = "CHECK_COMPLETE",
        AdoptComplete = "ADOPT_COMPLETE",
    }
}

text_enum! {
    /// Health as the monitor last saw it.
    HealthStatus {
        Healthy = "HEALTHY",
        Unhealthy = "UNHEALTHY",
        Unknown = "UNKNOWN",
    }
}

/// What was asked of a cluster: the first word of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Action {
    Create,
    Update,
    Delete,
}

/// The second part of a status: how far the action got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Outcome {
    InProgress,
    Failed,
    Complete,
}

impl ClusterStatus {
    /// The statuses in which nothing is going on and nothing failed last.
    pub const COMPLETE: &[Self] = &[
        Self::CreateComplete,
        Self::UpdateComplete,
        Self::ResumeComplete,
        Self::RestoreComplete,
        Self::RollbackComplete,
        Self::SnapshotComplete,
        Self::CheckComplete,
        Self::AdoptComplete,
    ];

    /// The statuses that the status sync polls.
    pub const IN_PROGRESS: &[Self] = &[
        Self::CreateInProgress,
        Self::UpdateInProgress,
        Self::DeleteInProgress,
        Self::RollbackInProgress,
    ];

    /// The status for an action and how far it got.
    pub const fn of(action: Action, outcome: Outcome) -> Self {
        match (action, outcome) {
            (Action::Create, Outcome::InProgress) => Self::CreateInProgress,
            (Action::Create, Outcome::Failed) => Self::CreateFailed,
            (Action::Create, Outcome::Complete) => Self::CreateComplete,
            (Action::Update, Outcome::InProgress) => Self::UpdateInProgress,
            (Action::Update, Outcome::Failed) => Self::UpdateFailed,
            (Action::Update, Outcome::Complete) => Self::UpdateComplete,
            (Action::Delete, Outcome::InProgress) => Self::DeleteInProgress,
            (Action::Delete, Outcome::Failed) => Self::DeleteFailed,
            (Action::Delete, Outcome::Complete) => Self::DeleteComplete,
        }
    }

    /// What was asked for; `None` for the statuses that only a cloud's own stack can be in.
    pub const fn action(self) -> Option<Action> {
        match self {
            Self::CreateInProgress | Self::CreateFailed | Self::CreateComplete => Some(Action::Create),
            Self::UpdateInProgress | Self::UpdateFailed | Self::UpdateComplete => Some(Action::Update),
            Self::DeleteInProgress | Self::DeleteFailed | Self::DeleteComplete => Some(Action::Delete),
            _ => None,
        }
    }

    /// Whether something is going on.
    pub fn is_in_progress(self) -> bool {
        Self::IN_PROGRESS.contains(&self)
    }

    /// Whether the last thing failed.
    pub fn is_failed(self) -> bool {
        self.as_str().ends_with("_FAILED")
    }

    /// Whether the last thing succeeded (`DELETE_COMPLETE` included).
    pub fn is_complete(self) -> bool {
        self.as_str().ends_with("_COMPLETE")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_reads_back_from_its_text() {
        for status in ClusterStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
            assert!(status.as_str().len() <= 20, "the column holds 20 characters");
        }
        assert!("CREATE_DONE".parse::<ClusterStatus>().is_err());
    }

    #[test]
    fn each_status_is_in_exactly_one_of_the_three_states() {
        for status in ClusterStatus::ALL {
            let states = [status.is_in_progress(), status.is_failed(), status.is_complete()];
            assert_eq!(states.iter().filter(|s| **s).count(), 1, "{status}");
        }
    }
}
