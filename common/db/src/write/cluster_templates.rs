//! Writing cluster templates. A template that clusters were made from may hardly change: they would no longer
//! be what it says.

use diesel::dsl::{exists, not};
use diesel::prelude::*;

use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::lock;
use crate::read::cluster_templates as read;
use crate::rows::{ClusterTemplateChanges, ClusterTemplateRow};
use crate::schema::{cluster, cluster_template};
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;

/// What became of a change that a reference can forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The template was changed or deleted.
    Done,
    /// There is no such template.
    Absent,
    /// Clusters use it; nothing was written.
    Referenced,
}

/// Inserts a template. A uuid that exists already is [`DbError::UniqueViolation`].
///
/// # Errors
/// The database failed.
pub fn insert(conn: &mut AnyConnection, template: &ClusterTemplate) -> Result<(), DbError> {
    diesel::insert_into(cluster_template::table)
        .values(ClusterTemplateRow::from(template))
        .execute(conn)?;
    Ok(())
}

/// Writes the columns in which `after` differs from `before`, by the uuid of `before`. Call it in a
/// transaction: the row is locked between the check and the write.
///
/// # Errors
/// The database failed.
pub fn update(
    conn: &mut AnyConnection,
    before: &ClusterTemplate,
    after: &ClusterTemplate,
) -> Result<Written, DbError> {
    let changes = ClusterTemplateRow::from(after).changes_since(&ClusterTemplateRow::from(before));
    if !lock::cluster_template(conn, &before.uuid)? {
        return Ok(Written::Absent);
    }
    if changes.is_empty() {
        return Ok(Written::Done);
    }
    if !is_allowed_on_referenced(&changes) && read::is_referenced(conn, &before.uuid)? {
        return Ok(Written::Referenced);
    }
    diesel::update(cluster_template::table.filter(cluster_template::uuid.eq(before.uuid.as_str())))
        .set(&changes)
        .execute(conn)?;
    Ok(Written::Done)
}

/// Deletes a template that no cluster uses. One statement decides and deletes.
///
/// # Errors
/// The database failed.
pub fn delete(conn: &mut AnyConnection, uuid: &TemplateUuid) -> Result<Written, DbError> {
    let users = cluster::table.filter(cluster::cluster_template_id.eq(uuid.as_str()));
    let deleted = diesel::delete(
        cluster_template::table
            .filter(cluster_template::uuid.eq(uuid.as_str()))
            .filter(not(exists(users))),
    )
    .execute(conn)?;
    if deleted > 0 {
        return Ok(Written::Done);
    }
    let there = cluster_template::table.filter(cluster_template::uuid.eq(uuid.as_str()));
    let there: bool = diesel::select(exists(there)).get_result(conn)?;
    Ok(if there {
        Written::Referenced
    } else {
        Written::Absent
    })
}

/// Magnum's rule: exactly one of `name`, `public` to true, `hidden`, `tags` to a value; nothing with it.
fn is_allowed_on_referenced(changes: &ClusterTemplateChanges) -> bool {
    let only = |allowed: ClusterTemplateChanges| {
        *changes
            == ClusterTemplateChanges {
                updated_at: changes.updated_at,
                ..allowed
            }
    };
    let none = ClusterTemplateChanges::default;
    (changes.name.is_some()
        && only(ClusterTemplateChanges {
            name: changes.name.clone(),
            ..none()
        }))
        || (changes.public == Some(Some(true))
            && only(ClusterTemplateChanges {
                public: changes.public,
                ..none()
            }))
        || (changes.hidden.is_some()
            && only(ClusterTemplateChanges {
                hidden: changes.hidden,
                ..none()
            }))
        || (matches!(changes.tags, Some(Some(_)))
            && only(ClusterTemplateChanges {
                tags: changes.tags.clone(),
                ..none()
            }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(change: impl FnOnce(&mut ClusterTemplateChanges)) -> bool {
        let mut changes = ClusterTemplateChanges::default();
        change(&mut changes);
        is_allowed_on_referenced(&changes)
    }

    #[test]
    fn of_a_referenced_template_one_harmless_field_may_change_at_a_time() {
        assert!(allowed(|c| c.name = Some(Some("n".into()))));
        assert!(allowed(|c| c.public = Some(Some(true))));
        assert!(allowed(|c| c.hidden = Some(Some(false))));
        assert!(allowed(|c| c.tags = Some(Some("a".into()))));

        assert!(!allowed(|c| c.public = Some(Some(false))), "un-publishing");
        assert!(!allowed(|c| c.tags = Some(None)));
        assert!(!allowed(|c| c.image_id = Some(Some("i".into()))));
        assert!(
            !allowed(|c| {
                c.name = Some(Some("n".into()));
                c.tags = Some(Some("a".into()));
            }),
            "two at once"
        );
    }
}
