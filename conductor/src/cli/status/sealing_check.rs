//! Checks of what is sealed, and of what should be.

use magnum_config::{CertManagerType, Settings, UnsealedKeys};

use super::report::Finding;
use crate::seal::{ALWAYS, Beginning, JournalKey};
use crate::store::sealing::{SealingRow, is_proven};
use crate::store::upgrade_facts::Facts;

/// Whether sealed values are bound to their rows, and private keys sealed where they have to be.
pub(super) fn sealing(settings: &Settings, key: Option<&JournalKey>, facts: &Facts) -> Finding {
    let mut finding = Finding::of("Sealed values");
    let row = |what: Beginning| facts.sealing.iter().find(|row| row.name == what.as_str());
    for what in Beginning::ALL {
        let has_proof = |row: &SealingRow| key.is_none_or(|key| is_proven(key, *what, row));
        if row(*what).is_some_and(|row| !has_proof(row)) {
            finding.fail(format!(
                "The row {} of conductor_sealing has no valid proof: it was changed, or the journal key is another one. Delete \
                 it if the key file was replaced.",
                what.as_str()
            ));
        }
    }
    match row(Beginning::BoundValues) {
        Some(row) if row.since_ms <= ALWAYS => {}
        None if facts.open.is_empty() && facts.announced.is_empty() => {}
        _ => finding.warn(
            "What an older release has sealed is not bound to its row: when all conductors run this release, run \
             `magnum-db-manage reseal`.",
        ),
    }
    let certificates = &settings.certificates;
    if !certificates.seal_private_keys || certificates.cert_manager_type != CertManagerType::X509KeyPair {
        return finding;
    }
    let since = row(Beginning::SealedKeys).map(|row| row.since_ms);
    let is_new = |made: Option<i64>| match (since, made) {
        (Some(since), Some(made)) => since <= ALWAYS || made >= since,
        (since, None) => since.is_some(),
        (None, Some(_)) => false,
    };
    let made = facts
        .plain_keys
        .iter()
        .map(|(_, made)| made.map(|made| made.and_utc().timestamp_millis()));
    let new = made.clone().filter(|made| is_new(*made)).count();
    let old = made.count() - new;
    match certificates.unsealed_keys {
        UnsealedKeys::Accept => {}
        UnsealedKeys::Refuse if old + new > 0 => finding.fail(format!(
            "{} private keys in x509keypair are not sealed, and [certificates] unsealed_keys = refuse: their clusters' \
             certificates cannot be used.",
            old + new
        )),
        _ if new > 0 => finding.fail(format!(
            "{new} private keys in x509keypair are not sealed and newer than [certificates] seal_private_keys: their clusters' \
             certificates cannot be used. A Python Magnum beside writes such keys: set unsealed_keys = accept. If there is \
             none, find out who wrote them."
        )),
        _ if old > 0 => finding.warn(format!(
            "{old} private keys in x509keypair are older than [certificates] seal_private_keys and not sealed: run \
             `magnum-db-manage reseal`."
        )),
        _ => {}
    }
    finding
}
