//! Whose rows a caller may see: Magnum's tenant filter, as a value.

use magnum_common::context::RequestContext;

/// A filter on `project_id` or `user_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenancy {
    /// No filter: an administrator who asked for all tenants, or the program itself.
    All,
    /// Rows of one project.
    Project(String),
    /// Rows of one user, for a context without a project.
    User(String),
    /// Nothing: a context that names neither.
    Nobody,
}

impl Tenancy {
    /// For clusters, templates, federations, key pairs.
    pub fn of(context: &RequestContext) -> Self {
        if context.is_admin() && context.all_tenants() {
            Self::All
        } else {
            Self::own(context)
        }
    }

    /// For node groups: an administrator sees all of them without asking, others those of their project. Never
    /// those of a user, whatever the context names: the table has no user.
    pub fn of_node_groups(context: &RequestContext) -> Self {
        if context.is_admin() {
            return Self::All;
        }
        match Self::own(context) {
            Self::User(_) => Self::Nobody,
            other => other,
        }
    }

    fn own(context: &RequestContext) -> Self {
        match (context.project_id(), context.user_id()) {
            (Some(project), _) if !project.is_empty() => Self::Project(project.to_owned()),
            (_, Some(user)) if !user.is_empty() => Self::User(user.to_owned()),
            _ => Self::Nobody,
        }
    }
}

/// Adds the filter to a boxed query on `$table`.
macro_rules! keep_to {
    ($query:expr, $tenancy:expr, $table:ident) => {
        match $tenancy {
            $crate::read::Tenancy::All => $query,
            $crate::read::Tenancy::Project(project) => $query.filter($table::project_id.eq(project.clone())),
            $crate::read::Tenancy::User(user) => $query.filter($table::user_id.eq(user.clone())),
            $crate::read::Tenancy::Nobody => $query.filter($table::id.lt(0)),
        }
    };
}
pub(super) use keep_to;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn context(value: Value) -> RequestContext {
        match value {
            Value::Object(map) => RequestContext::from_map(map),
            _ => RequestContext::default(),
        }
    }

    #[test]
    fn all_tenants_need_an_admin_and_the_argument() {
        let cases = [
            (
                json!({"is_admin": true, "all_tenants": true, "project_id": "p"}),
                Tenancy::All,
            ),
            (
                json!({"is_admin": true, "project_id": "p"}),
                Tenancy::Project("p".into()),
            ),
            (
                json!({"all_tenants": true, "project_id": "p"}),
                Tenancy::Project("p".into()),
            ),
            (json!({"user_id": "u"}), Tenancy::User("u".into())),
            (json!({"project_id": "", "user_id": null}), Tenancy::Nobody),
        ];
        for (values, expected) in cases {
            assert_eq!(Tenancy::of(&context(values.clone())), expected, "{values}");
        }
    }

    #[test]
    fn node_groups_are_open_to_admins_and_otherwise_kept_to_the_project() {
        let cases = [
            (json!({"is_admin": true, "project_id": "p"}), Tenancy::All),
            (
                json!({"project_id": "p", "user_id": "u"}),
                Tenancy::Project("p".into()),
            ),
            (json!({"user_id": "u"}), Tenancy::Nobody),
        ];
        for (values, expected) in cases {
            assert_eq!(
                Tenancy::of_node_groups(&context(values.clone())),
                expected,
                "{values}"
            );
        }
    }
}
