//! What a rule is asked about: the attributes that `%(name)s` stands for.

use std::borrow::Cow;
use std::fmt;

use magnum_common::context::RequestContext;
use magnum_common::model::{Cluster, ClusterTemplate, Federation};
use magnum_objects::WireModel as _;
use serde_json::{Map, Value};

use crate::validation::python::str_of;

/// Something that belongs to somebody.
pub trait Resource: Sync {
    /// An attribute of Magnum's object for it, by name; `None` when there is none of that name.
    fn attribute(&self, name: &str) -> Option<Value>;
}

macro_rules! resources {
    ($($model:ty),*) => {
        $(impl Resource for $model {
            fn attribute(&self, name: &str) -> Option<Value> {
                self.field(name)
            }
        })*
    };
}
resources!(Cluster, ClusterTemplate, Federation);

/// Whose, or which, resource it is.
///
/// Who has no project owns nothing: a project or user that is not there is an attribute that is not there, so that
/// `project_id:%(project_id)s` does not hold between a caller without a project and a resource without one.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// Something that is about to belong to the caller: the caller's own project and user.
    Caller(&'a RequestContext),
    /// A resource with all its attributes.
    Resource(&'a dyn Resource),
    /// Attributes from a map.
    Values(&'a Map<String, Value>),
    /// No resource: no attributes.
    Nothing,
}

impl<'a> Target<'a> {
    /// Something that is about to belong to the caller.
    pub fn own(context: &'a RequestContext) -> Self {
        Self::Caller(context)
    }

    /// A resource that is there.
    pub fn of(resource: &'a dyn Resource) -> Self {
        Self::Resource(resource)
    }

    /// The attribute as text, as Python would print it.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let value = match self {
            Self::Caller(context) => {
                return match name {
                    "project_id" => context.project_id().map(Cow::Borrowed),
                    "user_id" => context.user_id().map(Cow::Borrowed),
                    _ => None,
                };
            }
            Self::Resource(resource) => resource.attribute(name)?,
            Self::Values(values) => values.get(name)?.clone(),
            Self::Nothing => return None,
        };
        match value {
            Value::Null if matches!(name, "project_id" | "user_id") => None,
            Value::String(text) => Some(Cow::Owned(text)),
            other => Some(Cow::Owned(str_of(&other))),
        }
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("project_id", &self.attribute("project_id"))
            .field("user_id", &self.attribute("user_id"))
            .finish_non_exhaustive()
    }
}
