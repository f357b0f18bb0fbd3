//! A federation, in its short form for lists and its long form.

use magnum_common::model::Federation;
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use super::links;
use crate::microversion::Version;

/// The form in lists.
pub const BRIEF: View = 1;
/// The form in lists with details, and a single federation.
pub const FULL: View = 2;

/// What a row of the table reads.
#[derive(Debug)]
pub struct FederationSource<'a> {
    federation: &'a Federation,
    uuid: &'a str,
    base: &'a str,
}

/// A federation as it is shown.
#[derive(Debug)]
pub struct FederationView;

impl Shown for FederationView {
    type Source<'a> = FederationSource<'a>;
    attributes! { Self, seen;
        "uuid": Uuid => seen.uuid;
        "name" or null: Text => &seen.federation.name;
        "hostcluster_id" or null: Text => &seen.federation.hostcluster_id;
        "member_ids": Texts => &seen.federation.member_ids;
        "status" or null: Text => &seen.federation.status;
        "properties": Anything => &seen.federation.properties;
        "links": Links => links::pair(seen.base, format!("federations/{}", seen.uuid));
        "status_reason" or null: Text, in FULL => &seen.federation.status_reason;
        "created_at" or null: Time, in FULL => &seen.federation.created_at;
        "updated_at" or null: Time, in FULL => &seen.federation.updated_at;
    }
}

fn show(federation: &Federation, base: &str, view: View) -> Value {
    let seen = FederationSource {
        federation,
        uuid: federation.uuid.as_deref().unwrap_or_default(),
        base,
    };
    attribute::render::<FederationView>(seen, view, Version::MAX)
}

/// The short form.
pub fn brief(federation: &Federation, base: &str) -> Value {
    show(federation, base, BRIEF)
}

/// The long form.
pub fn full(federation: &Federation, base: &str) -> Value {
    show(federation, base, FULL)
}
