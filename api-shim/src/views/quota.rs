//! A quota: a row, or the limit that holds without one.

use magnum_common::model::Quota;
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use crate::microversion::Version;
use crate::validation::quota::CLUSTER;

/// A quota that was set.
pub const SET: View = 1;
/// What holds without one.
pub const DEFAULT: View = 2;
/// One or the other.
pub const ANY: View = SET | DEFAULT;

/// A quota as it is shown.
#[derive(Debug)]
pub struct QuotaView;

impl Shown for QuotaView {
    type Source<'a> = &'a Quota;
    attributes! { Self, quota;
        "id": Integer, in SET, maybe DEFAULT => quota.id.as_ref();
        "hard_limit": Integer => &quota.hard_limit;
        "project_id" or null: Text => &quota.project_id;
        "resource" or null: Text => &quota.resource;
        "created_at" or null: Time, in SET, maybe DEFAULT => Some(&quota.created_at);
        "updated_at" or null: Time, in SET, maybe DEFAULT => Some(&quota.updated_at);
    }
}

/// A quota that was set.
pub fn show(quota: &Quota) -> Value {
    attribute::render::<QuotaView>(quota, SET, Version::MAX)
}

/// What holds for a project without one.
pub fn default(project: &str, limit: u32) -> Value {
    let quota = Quota {
        id: None,
        project_id: Some(project.to_owned()),
        resource: Some(CLUSTER.to_owned()),
        hard_limit: i32::try_from(limit).unwrap_or(i32::MAX),
        created_at: None,
        updated_at: None,
    };
    attribute::render::<QuotaView>(&quota, DEFAULT, Version::MAX)
}
