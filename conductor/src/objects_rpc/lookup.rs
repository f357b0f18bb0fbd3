//! One row by its number, its uuid or its name: alike for the classes whose rows somebody owns.
//!
//! Where we differ from Magnum: nothing that a caller sees.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_db::read::Tenancy;
use magnum_db::read::cluster_templates::Visibility;
use magnum_db::{AnyConnection, DbError};
use magnum_objects::{VersionedObject, WireModel};

use super::arguments::Bound;
use super::failure::Failure;
use super::identity::{self, Identity, shown};
use super::instance;
use super::methods::Outcome;

/// Whose eyes look for a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// The program's, which see everything.
    Program,
    /// A caller's.
    Caller(&'a RequestContext),
}

impl Sight<'_> {
    /// Which rows that is.
    pub(super) fn tenancy(self) -> Tenancy {
        match self {
            Self::Program => Tenancy::All,
            Self::Caller(context) => Tenancy::of(context),
        }
    }

    /// Which templates that is.
    pub(super) fn visibility(self) -> Visibility {
        match self {
            Self::Program => Visibility::all(),
            Self::Caller(context) => Visibility::of(context),
        }
    }
}

/// A class whose rows are found by number and by uuid.
pub(super) trait Lookup: WireModel + Sized {
    /// The row with this number.
    fn by_id(conn: &mut AnyConnection, sight: Sight<'_>, id: i32) -> Result<Option<Self>, DbError>;

    /// The row with this uuid.
    fn by_uuid(conn: &mut AnyConnection, sight: Sight<'_>, uuid: &str) -> Result<Option<Self>, DbError>;

    /// What Magnum raises when there is none; `text` is what the caller asked for.
    fn not_found(text: &str) -> Failure;
}

/// A class whose rows are found by name too. Names need not be unique.
pub(super) trait LookupByName: Lookup {
    /// One row and several, as Magnum's message calls them.
    const CALLED: (&'static str, &'static str);

    /// The rows with this name, or two of them.
    fn by_name(conn: &mut AnyConnection, sight: Sight<'_>, name: &str) -> Result<Vec<Self>, DbError>;
}

/// `get`: tells by the looks what the only argument is; a name is none.
pub(super) fn get<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    match Identity::of(&args.into_only()) {
        Identity::Number(id, text) => number::<M>(conn, context, id, &text),
        Identity::Uuid(uuid) => {
            with_uuid::<M>(conn, Sight::Caller(context), &uuid).map(|row| Outcome::of(&row))
        }
        Identity::Name(text) => Err(identity::invalid(&text).into()),
    }
}

/// `get` of a class that takes names as well.
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
    number::<M>(conn, context, identity::number(&id), &shown(&id))
}

/// `get_by_uuid`.
pub(super) fn get_by_uuid<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    with_uuid::<M>(conn, Sight::Caller(context), &shown(&args.into_only())).map(|row| Outcome::of(&row))
}

/// `get_by_name`.
pub(super) fn get_by_name<M: LookupByName>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    args: Bound,
) -> Result<Outcome, Failure> {
    let name = shown(&args.into_only());
    match M::by_name(conn, Sight::Caller(context), &name)?.as_slice() {
        [] => Err(M::not_found(&name)),
        [row] => Ok(Outcome::of(row)),
        _ => {
            let (one, several) = M::CALLED;
            let text = format!("Multiple {several} exist with same name. Please use the {one} uuid instead.");
            Err(Fault::new(Exception::Conflict, text).into())
        }
    }
}

/// The row with this uuid, or Magnum's exception.
pub(super) fn with_uuid<M: Lookup>(
    conn: &mut AnyConnection,
    sight: Sight<'_>,
    uuid: &str,
) -> Result<M, Failure> {
    M::by_uuid(conn, sight, uuid)?.ok_or_else(|| M::not_found(uuid))
}

/// The row of an object. The program, which is about to write it, wants a uuid that is one.
pub(super) fn of_object<M: Lookup>(
    conn: &mut AnyConnection,
    sight: Sight<'_>,
    object: &VersionedObject,
) -> Result<M, Failure> {
    let uuid = match sight {
        Sight::Program => instance::uuid(object)?,
        Sight::Caller(_) => instance::text(object, "uuid")?,
    };
    with_uuid(conn, sight, uuid)
}

fn number<M: Lookup>(
    conn: &mut AnyConnection,
    context: &RequestContext,
    id: Option<i32>,
    text: &str,
) -> Result<Outcome, Failure> {
    let found = match id {
        Some(id) => M::by_id(conn, Sight::Caller(context), id)?,
        None => None,
    };
    found
        .map(|row| Outcome::of(&row))
        .ok_or_else(|| M::not_found(text))
}
