//! Checks of the database and of the key file.

use crate::seal::{JournalKey, Place, SealError};
use magnum_config::{DatabaseSection, KeyType, Settings};
use magnum_db::migrate::{self, HEAD, Revision};
use magnum_db::{Database, DatabaseUrl, DbError, PoolOptions};

use super::report::Finding;
use crate::operations::journal::read;
use crate::store::upgrade_facts::{Facts, OpenContext};
use magnum_x509::key::KeyKind;

/// The result of the database checks.
pub(super) struct DatabaseCheck {
    pub(super) findings: Vec<Finding>,
    /// Its content for the further checks; `None` when it cannot be read.
    pub(super) facts: Option<Facts>,
}

/// Checks that the database responds and has all tables, and reads its content.
pub(super) async fn database(settings: &Settings) -> DatabaseCheck {
    let mut finding = Finding::of("Database");
    // A person waits for the result.
    let once = DatabaseSection {
        max_retries: 1,
        ..settings.database.clone()
    };
    let version = match migrate::version(&once).await {
        Ok(version) => version,
        Err(error) => {
            finding.fail(format!("[database] connection: {error}"));
            return DatabaseCheck {
                findings: vec![finding],
                facts: None,
            };
        }
    };
    let Some(name) = version.magnum else {
        finding.fail(
            "There are no tables of Magnum, or none whose revision is known: run `magnum-db-manage upgrade`.",
        );
        return DatabaseCheck {
            findings: vec![finding],
            facts: None,
        };
    };
    let Some(revision) = Revision::named(&name).filter(|_| name != "head") else {
        finding.fail(format!(
            "Magnum's tables are at revision {name}, which this release does not know. Of an older Magnum: run the \
             magnum-db-manage of Magnum 18 to 23 first. Of a newer one: use a newer release of this program."
        ));
        return DatabaseCheck {
            findings: vec![finding],
            facts: None,
        };
    };
    if revision != HEAD {
        finding.fail(format!(
            "Magnum's tables are at revision {revision} (Magnum 18 to 22): stop the services of that release and run \
             `magnum-db-manage upgrade`, which takes them to {HEAD} as Magnum 23 does."
        ));
    }
    let mut ours = Finding::of("Tables of this release");
    if !version.pending.is_empty() {
        ours.fail(format!(
            "Missing: {}. Run `magnum-db-manage upgrade`, which adds them beside Magnum's; services need not stop for it.",
            version.pending.join(", ")
        ));
    }
    let has_ours = version.pending.is_empty();
    let facts = match facts(settings, revision, has_ours).await {
        Ok(facts) => Some(facts),
        Err(error) => {
            finding.fail(format!("The tables cannot be read: {error}"));
            None
        }
    };
    DatabaseCheck {
        findings: vec![finding, ours],
        facts,
    }
}

async fn facts(settings: &Settings, revision: Revision, has_ours: bool) -> Result<Facts, DbError> {
    let options = PoolOptions {
        connect_attempts: Some(1),
        max_connections: 1,
        ..PoolOptions::from(&settings.database)
    };
    let url = DatabaseUrl::parse(settings.database.connection.expose())?;
    let fresh = settings.default.service_down_time;
    Database::open(url, options)
        .await?
        .run(move |conn| {
            let mut facts = Facts::read(conn, revision, has_ours, fresh)?;
            if has_ours {
                facts.open = read::open_contexts(conn)?;
            }
            Ok(facts)
        })
        .await
}

/// The key that seals users' tokens.
pub(super) fn journal_key(settings: &Settings) -> (Option<JournalKey>, Finding) {
    let mut finding = Finding::of("Journal key");
    match JournalKey::load(&settings.conductor.journal_key_file) {
        Ok(key) => return (Some(key), finding),
        Err(missing @ SealError::Missing { .. }) => finding.warn(format!("[conductor] {missing}.")),
        Err(error) => finding.fail(format!("[conductor] journal_key_file: {error}.")),
    }
    (None, finding)
}

/// Whether the key opens what other conductors have sealed: it must be the same file on every host.
pub(super) fn open_operations(key: Option<&JournalKey>, facts: &Facts, mut finding: Finding) -> Finding {
    let sealed: Vec<(&OpenContext, &[u8])> = facts
        .open
        .iter()
        .filter_map(|open| Some((open, open.context.as_deref()?)))
        .collect();
    let opens = |key: &JournalKey, open: &OpenContext, context: &[u8]| {
        let place = Place::Context(&open.operation);
        !matches!(
            key.open(place, open.created_ms, context),
            Err(SealError::WrongKey | SealError::UnknownLayout)
        )
    };
    let closed = sealed
        .iter()
        .filter(|(open, context)| key.is_none_or(|key| !opens(key, open, context)))
        .count();
    if closed > 0 {
        finding.fail(format!(
            "{closed} of {} unfinished operations were sealed with a key that is not in [conductor] journal_key_file: \
             copy the file from the conductor that accepted them.",
            sealed.len()
        ));
    }
    finding
}

/// Private keys made ahead of need. An empty pool stops nothing: creates make their keys themselves.
pub(super) fn key_pool(settings: &Settings, facts: &Facts) -> Finding {
    let mut finding = Finding::of("Key pool");
    let (key_type, size) = (
        KeyKind::from(settings).name(),
        settings.certificates.key_pool_size,
    );
    let depth = facts.key_pool.get(&key_type).copied().unwrap_or(0);
    match (settings.certificates.key_type, size) {
        (KeyType::EcdsaP256, _) => {}
        (KeyType::Rsa2048, 0) => finding.note("Off: [certificates] key_pool_size is 0."),
        (KeyType::Rsa2048, _) => {
            finding.note(format!("{depth} of {size} keys of type {key_type} are ready."))
        }
    }
    finding
}

/// Heartbeats of services.
pub(super) fn services(facts: &Facts) -> Finding {
    let mut finding = Finding::of("Service records");
    let nameless = facts.services_without_host;
    if nameless > 0 {
        finding.warn(format!(
            "magnum_service has {} without a host: a Python conductor ran without [DEFAULT] host. Two of them end \
             the heartbeats of Python conductors for ever. Set host for those, and delete the rows.",
            super::cluster_checks::count(nameless, "row", "rows")
        ));
    }
    finding
}
