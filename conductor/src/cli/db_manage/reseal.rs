//! `magnum-db-manage reseal`: everything that is sealed gets bound to its row, in two runs.
//!
//! The first says in the database that it begins. Conductors learn it within a minute; an hour later nobody writes anything
//! else. The second run writes what is left in the new form, and says that nothing older is accepted any more.

use std::io::Write;
use std::time::Duration;

use chrono::DateTime;
use magnum_config::Settings;
use magnum_db::{AnyConnection, Database, DbError, now_ms};

use super::Failure;
use crate::certificates;
use crate::seal::{Beginning, JournalKey};
use crate::store::resealing::{self, Resealed};
use crate::store::sealing::{self, GRACE};

pub(super) async fn run(settings: &Settings, out: &mut dyn Write) -> Result<(), Failure> {
    let key = JournalKey::load(&settings.conductor.journal_key_file)
        .map_err(|error| Failure::Message(error.to_string()))?;
    let db = Database::connect(&settings.database).await?;
    magnum_db::migrate::check(&db).await?;
    let settings = Box::new(settings.clone());
    let lines = db.transaction(move |conn| reseal(conn, &settings, &key)).await?;
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn reseal(conn: &mut AnyConnection, settings: &Settings, key: &JournalKey) -> Result<Vec<String>, DbError> {
    let mut lines = sealing::refresh(conn, key)?;
    let seals_keys = settings.certificates.seal_private_keys;
    sealing::begin(conn, key, Beginning::BoundValues, GRACE)?;
    if seals_keys {
        sealing::begin(conn, key, Beginning::SealedKeys, GRACE)?;
    }
    let now = now_ms(conn)?;
    let begins = Beginning::ALL
        .iter()
        .filter_map(|what| key.begun().since(*what))
        .max();
    if let Some(begins) = begins.filter(|begins| *begins > now) {
        let wait = Duration::from_millis((begins - now).unsigned_abs())
            .as_secs()
            .div_ceil(60);
        let time = DateTime::from_timestamp_millis(begins)
            .map(|time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string());
        lines.push(format!(
            "conductors bind what they seal to its row from now on, and have to by {}; run this again then, in {wait} minutes, \
             for what is left",
            time.unwrap_or_default()
        ));
        return Ok(lines);
    }
    let kinds = [
        (
            "contexts of unfinished operations",
            resealing::contexts(conn, key)?,
        ),
        ("passwords of clusters' users", resealing::trusts(conn, key)?),
        ("private keys", certificates::reseal(conn, settings, key)?),
    ];
    for (what, done) in kinds {
        if done.renewed > 0 {
            lines.push(format!("sealed {} {what}", done.renewed));
        }
        if done.refused > 0 {
            lines.push(format!(
                "left {} {what} as they are: they cannot be opened, or may not be in rows that new (docs/certificates.md)",
                done.refused
            ));
        }
    }
    let [contexts, trusts, keys] = kinds.map(|(_, done)| is_done(done));
    if contexts && trusts {
        sealing::complete(conn, key, Beginning::BoundValues)?;
    }
    if keys && seals_keys {
        sealing::complete(conn, key, Beginning::SealedKeys)?;
    }
    if contexts && trusts && (keys || !seals_keys) {
        lines.push("everything is sealed as it should be, and nothing else is accepted".to_owned());
    }
    Ok(lines)
}

const fn is_done(done: Resealed) -> bool {
    done.refused == 0
}
