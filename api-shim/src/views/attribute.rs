//! Attributes of resources as tables: from one row come the rendering and the schema of the API's document.
//!
//! A row says what the attribute is called, of which form it is, whether it can be null, in which views and versions
//! it stands, and how it is read off a resource. Order in the table is order in the answer.

use std::fmt;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::cell::Cell;
use crate::microversion::Version;

/// What an attribute's value looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Text.
    Text,
    /// A uuid.
    Uuid,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// ISO 8601 with a zone.
    Time,
    /// A dictionary of texts.
    Strings,
    /// A dictionary of texts, any of which may be null.
    Reasons,
    /// A dictionary of whatever it holds.
    Anything,
    /// A list of texts.
    Texts,
    /// A list of dictionaries of texts.
    ListOfStrings,
    /// The two links of a resource.
    Links,
    /// What happened to an operation.
    Events,
}

/// A kind of view: one bit, so that an attribute can stand in several.
pub type View = u8;

/// A resource as it is shown.
pub trait Shown: 'static {
    /// What a view is made of.
    type Source<'a>;
    /// Its attributes, in order.
    const ATTRIBUTES: &'static [Attribute<Self>];
}

/// One attribute of a resource.
#[expect(missing_docs, reason = "the names say it")]
pub struct Attribute<R: Shown + ?Sized> {
    pub name: &'static str,
    pub form: Form,
    /// Whether null stands for "unset".
    pub null: bool,
    pub views: View,
    /// In which views it may be absent.
    pub optional: View,
    pub since: Version,
    /// The first version that does not have it any more.
    pub until: Option<Version>,
    /// Its value; `None`: the attribute is left out.
    pub value: for<'a, 'b> fn(&'b R::Source<'a>) -> Option<Cell<'b>>,
}

impl<R: Shown + ?Sized> Attribute<R> {
    /// Whether the view of this version has it.
    pub fn is_in(&self, view: View, version: Version) -> bool {
        self.views & view != 0 && version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

/// A resource as a client of `version` sees it in this view: written straight into the answer.
pub struct Rendered<'p, R: Shown + ?Sized> {
    parts: R::Source<'p>,
    view: View,
    version: Version,
}

impl<'p, R: Shown> Rendered<'p, R> {
    /// A view of a resource at one microversion.
    pub fn new(parts: R::Source<'p>, view: View, version: Version) -> Self {
        Self { parts, view, version }
    }
}

impl<R: Shown> Serialize for Rendered<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_map(None)?;
        for attribute in R::ATTRIBUTES
            .iter()
            .filter(|attribute| attribute.is_in(self.view, self.version))
        {
            if let Some(value) = (attribute.value)(&self.parts) {
                shown.serialize_entry(attribute.name, &value)?;
            }
        }
        shown.end()
    }
}

impl<R: Shown> fmt::Debug for Rendered<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {} in {}", self.view, self.version)
    }
}

/// The same as a tree, for what is small.
pub fn render<R: Shown>(parts: R::Source<'_>, view: View, version: Version) -> Value {
    // Keys are texts and values plain, which always makes a tree.
    serde_json::to_value(Rendered::<R>::new(parts, view, version)).unwrap_or_default()
}

/// Writes a table: `"name" [or null]: Form [, in VIEWS] [, maybe VIEWS] [, since VERSION] [, until VERSION] => value;`
/// where `value` makes a [`Cell`], or with `maybe` is an option of what does.
macro_rules! attributes {
    ($resource:ty, $parts:ident; $($name:literal $(or $null:ident)? : $form:expr $(, in $views:expr)?
        $(, maybe $optional:expr)? $(, since $since:expr)? $(, until $until:expr)? => $value:expr;)*) => {
        const ATTRIBUTES: &'static [$crate::views::attribute::Attribute<$resource>] = {
            use $crate::views::attribute::Form::*;
            &[$($crate::views::attribute::Attribute {
                name: $name,
                form: $form,
                null: $crate::views::attribute::attributes!(@null $($null)?),
                views: $crate::views::attribute::attributes!(@or u8::MAX $(, $views)?),
                optional: $crate::views::attribute::attributes!(@or 0 $(, $optional)?),
                since: $crate::views::attribute::attributes!(@or $crate::microversion::Version::MIN $(, $since)?),
                until: $crate::views::attribute::attributes!(@option $($until)?),
                value: $crate::views::attribute::attributes!(@value $parts, $value $(, $optional)?),
            },)*]
        };
    };
    (@null null) => { true };
    (@null) => { false };
    (@or $default:expr, $given:expr) => { $given };
    (@or $default:expr) => { $default };
    (@option $given:expr) => { Some($given) };
    (@option) => { None };
    (@value $parts:ident, $value:expr, $optional:expr) => {
        |$parts| $value.map($crate::views::cell::Cell::from)
    };
    (@value $parts:ident, $value:expr) => {
        |$parts| {
            // Not every attribute is read off something.
            let _ = $parts;
            Some($crate::views::cell::Cell::from($value))
        }
    };
}
pub(super) use attributes;
