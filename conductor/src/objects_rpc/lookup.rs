//! Lookup of one row by its number, its uuid or its name, shared by the classes whose rows have an owner. Behaves as
//! Magnum does.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_db::read::Tenancy;
use magnum_db::read::cluster_templates::Visibility;
use magnum_db::{AnyConnection, DbError};
use magnum_objects::{VersionedObject, WireModel};

use super::arguments::Bound;
use super::class::Outcome;
use super::failure::Failure;
use super::fields;
use super::identity::{self, Identity, python_str};

/// The tenant scope of a lookup.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    /// All rows: the caller has been checked before.
    All,
    /// The rows that the caller with this context may see.
    Caller(&'a RequestContext),
}

impl Scope<'_> {
    /// The tenant filter of this scope.
    pub(super) fn tenancy(self) -> Tenancy {
        match self {
            Self::All => Tenancy::All,
            Self::Caller(context) => Tenancy::of(context),
        }
    }

    /// The filter for templates, which may also be public.
    pub(super) fn visibility(self) -> Visibility {
        match self {
            Self::All => Visibility::all(),
            Self::Caller(context) => Visibility::of(context),
        }
    }
}

/// A class whose rows are found by number and by uuid.
pub(super) trait Lookup: WireModel + Sized {
    /// The row with this number.
    fn by_id(conn: &mut AnyConnection, scope: Scope<'_>, id: i32) -> Result<Option<Self>, DbError>;

    /// The row with this uuid.
    fn by_uuid(conn: &mut AnyConnection, scope: Scope<'_>, uuid: &str) -> Result<Option<Self>, DbError>;

    /// Magnum's exception for a missing row; `text` is the identifier in the request.
    fn not_found(text: &str) -> Failure;
}

/// A class whose rows are found by name too. Names need not be unique.
pub(super) trait LookupByName: Lookup {
    /// The noun in Magnum's messages, in singular and plural.
    const NOUNS: (&'static str, &'static str);

    /// The rows with this name, or two of them.
    fn by_name(conn: &mut AnyConnection, scope: Scope<'_>, name: &str) -> Result<Vec<Self>, DbError>;
}

/// `get`: its argument is a number or a uuid, recognised by its form; names are refused.
pub(super) fn get<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    match Identity::of(&args.into_only()) {
        Identity::Number(id, text) => number::<M>(conn, context, id, &text),
        Identity::Uuid(uuid) => {
            with_uuid::<M>(conn, Scope::Caller(context), &uuid).map(|row| Outcome::of(&row))
        }
        Identity::Name(text) => Err(identity::invalid(&text).into()),
    }
}

/// `get` of a class that accepts names as well.
pub(super) fn get_or_by_name<M: LookupByName>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    match Identity::of(&args.clone().into_only()) {
        Identity::Name(_) => get_by_name::<M>(conn, context, args),
        _ => get::<M>(conn, context, args),
    }
}

/// `get_by_id`.
pub(super) fn get_by_id<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    let id = args.into_only();
    number::<M>(conn, context, identity::number(&id), &python_str(&id))
}

/// `get_by_uuid`.
pub(super) fn get_by_uuid<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    with_uuid::<M>(conn, Scope::Caller(context), &python_str(&args.into_only())).map(|row| Outcome::of(&row))
}

/// `get_by_name`.
pub(super) fn get_by_name<M: LookupByName>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    let name = python_str(&args.into_only());
    match M::by_name(conn, Scope::Caller(context), &name)?.as_slice() {
        [] => Err(M::not_found(&name)),
        [row] => Ok(Outcome::of(row)),
        _ => {
            let (one, several) = M::NOUNS;
            let text = format!("Multiple {several} exist with same name. Please use the {one} uuid instead.");
            Err(Fault::new(Exception::Conflict, text).into())
        }
    }
}

/// The row with this uuid, or Magnum's exception.
pub(super) fn with_uuid<M: Lookup>(
    conn: &mut AnyConnection,
    scope: Scope<'_>,
    uuid: &str,
) -> Result<M, Failure> {
    M::by_uuid(conn, scope, uuid)?.ok_or_else(|| M::not_found(uuid))
}

/// The row of an object. In the scope [`Scope::All`], for writes, its uuid must be valid.
pub(super) fn of_object<M: Lookup>(
    conn: &mut AnyConnection,
    scope: Scope<'_>,
    object: &VersionedObject,
) -> Result<M, Failure> {
    let uuid = match scope {
        Scope::All => fields::uuid(object)?,
        Scope::Caller(_) => fields::text(object, "uuid")?,
    };
    with_uuid(conn, scope, uuid)
}

fn number<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    id: Option<i32>,
    text: &str,
) -> Result<Outcome, Failure> {
    let found = match id {
        Some(id) => M::by_id(conn, Scope::Caller(context), id)?,
        None => None,
    };
    found
        .map(|row| Outcome::of(&row))
        .ok_or_else(|| M::not_found(text))
}
