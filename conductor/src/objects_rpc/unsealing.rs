//! Opens the sealed private keys in replies, and seals those that callers write.
//!
//! `[certificates] seal_private_keys` protects keys in the database and in its backups. Callers of the objects RPC
//! have no database and no key file, and need a key that its passphrase opens, as Magnum writes it. So the key is
//! opened in the reply, and nowhere else; rows and stored replies keep the sealed one, or none.

use chrono::DateTime;
use magnum_common::error::{Exception, Fault};
use magnum_common::secret::Secret;
use magnum_objects::VersionedObject;
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::Call;
use super::key_pairs;
use crate::certificates::manager::{Kept, Sealing};

const FIELD: &str = "private_key";

/// Seals a private key that is to be written, for the uuid of its object, which gets one where it has none.
///
/// # Errors
/// `CertificateStorageException` where that fails.
pub(super) fn close(object: &mut VersionedObject, sealing: &Sealing) -> Result<(), Fault> {
    if object.name() != key_pairs::CLASS.schema.name || !object.is_changed(FIELD) {
        return Ok(());
    }
    let Some(key) = object.text(FIELD).map(Secret::new) else {
        return Ok(());
    };
    let uuid = match object.text("uuid").filter(|uuid| !uuid.is_empty()) {
        Some(uuid) => uuid.to_owned(),
        None => {
            let uuid = Uuid::new_v4().to_string();
            object.set("uuid", &json!(uuid))?;
            uuid
        }
    };
    let closed = sealing.close(&uuid, &key).map_err(|error| {
        tracing::error!(%error, "a private key cannot be sealed");
        Fault::new(
            Exception::CertificateStorageException,
            format!("The private key of {uuid} cannot be sealed."),
        )
    })?;
    object.set(FIELD, &json!(closed.expose()))
}

/// Opens the sealed private keys in the reply to `call`.
///
/// # Errors
/// `CertificateStorageException` for a key that the key file does not open.
pub(super) fn open(answer: &mut Value, call: &Call, sealing: &Sealing) -> Result<(), Fault> {
    match call {
        Call::Class { .. } => match answer {
            Value::Array(objects) => objects.iter_mut().try_for_each(|one| open_object(one, sealing)),
            object => open_object(object, sealing),
        },
        Call::Instance { object, .. } if object.name() == key_pairs::CLASS.schema.name => {
            let Some(updates) = answer.get_mut(0) else {
                return Ok(());
            };
            let uuid = updates["uuid"].as_str().map(str::to_owned);
            let uuid = uuid.or_else(|| object.get("uuid").and_then(Value::as_str).map(str::to_owned));
            let made = updates.get("created_at").or_else(|| object.get("created_at"));
            let kept = updates.get(FIELD).cloned();
            open_field(updates, uuid, row(made), sealing)?;
            // After a refresh: the caller has this key already, opened. Marked as changed, it would be written back opened.
            if kept.as_ref() != updates.get(FIELD) && updates.get(FIELD) == object.get(FIELD) {
                remove_update(updates, object.is_changed(FIELD));
            }
            Ok(())
        }
        // Objects that a caller has sent are returned unchanged.
        Call::Instance { .. } | Call::Answered(_) => Ok(()),
    }
}

/// Removes the field from the updates, since the caller has the same value.
fn remove_update(updates: &mut Value, was_changed: bool) {
    let Some(updates) = updates.as_object_mut() else {
        return;
    };
    updates.shift_remove(FIELD);
    if !was_changed && let Some(changed) = updates.get_mut("obj_what_changed").and_then(Value::as_array_mut) {
        changed.retain(|name| name != FIELD);
    }
}

fn open_object(object: &mut Value, sealing: &Sealing) -> Result<(), Fault> {
    if object["magnum_object.name"] != key_pairs::CLASS.schema.name {
        return Ok(());
    }
    let data = &mut object["magnum_object.data"];
    let uuid = data["uuid"].as_str().map(str::to_owned);
    let made = row(data.get("created_at"));
    open_field(data, uuid, made, sealing)
}

/// A row, by when an object says that it was made.
fn row(made: Option<&Value>) -> Kept {
    let made = made.and_then(Value::as_str);
    Kept::Row(made.and_then(|made| {
        DateTime::parse_from_rfc3339(made)
            .ok()
            .map(|made| made.naive_utc())
    }))
}

fn open_field(fields: &mut Value, uuid: Option<String>, made: Kept, sealing: &Sealing) -> Result<(), Fault> {
    let (Some(kept), Some(uuid)) = (fields.get(FIELD).and_then(Value::as_str), uuid) else {
        return Ok(());
    };
    match sealing.open(&uuid, kept, made) {
        Ok(opened) => {
            fields[FIELD] = Value::String(opened.expose().to_owned());
            Ok(())
        }
        Err(error) => {
            tracing::warn!(%error, "a sealed private key cannot be given out");
            Err(Fault::new(
                Exception::CertificateStorageException,
                format!("The private key of {uuid} cannot be opened by this conductor."),
            ))
        }
    }
}
