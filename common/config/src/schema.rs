//! The option table.
//!
//! An option is written once, in a [`section!`] of `sections/`: its doc comment is the help text, its type and
//! codec the form, and from that one line come the field, the reading, the sample file, the dump and the
//! documentation.

use super::option_spec::OptionSpec;
use super::reader::Reader;
use super::value::Codec;

/// A typed section.
pub trait Section: Sized {
    /// The section as written in the file.
    const NAME: &'static str;
    /// What it is for.
    const HELP: &'static str;
    /// Its options, in the order of their declaration.
    fn specs() -> Vec<OptionSpec>;
    /// Reads every option, collecting problems in the reader.
    fn read(reader: &mut Reader<'_>) -> Self;
    /// The values as shown to people (secrets masked), in the order of [`Section::specs`].
    fn shown(&self) -> Vec<Option<String>>;
}

/// Whether a codec's values are secret; lets the macro infer the field's type.
#[doc(hidden)]
pub fn is_secret<T, C: Codec<T>>() -> bool {
    C::SECRET
}

/// Declares a section: a struct with public fields, its defaults, and its rows of the option table.
///
/// `field: Type as Codec = default` may be followed, in this order, by `template "…"` (the default's text with
/// substitutions), `machine "…"` (how a default of this machine is found out), `was [("section", "key")]` and
/// `ours true` (Python Magnum does not know it).
///
/// Other crates declare sections with it, too, for [`Settings::section`](crate::Settings::section).
#[macro_export]
macro_rules! config_section {
    (
        $(#[doc = $about:literal])+
        $section:ident $name:literal {
            $(
                $(#[doc = $help:literal])+
                $field:ident : $type:ty as $codec:ty = $default:expr
                    $(, template $template:literal)?
                    $(, machine $machine:literal)?
                    $(, was [$($was:expr),*])?
                    $(, ours $ours:literal)?
                ;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $section {
            $($(#[doc = $help])+ pub $field: $type,)*
        }

        impl Default for $section {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::Section for $section {
            const NAME: &'static str = $name;
            const HELP: &'static str = concat!($($about),+);

            fn specs() -> Vec<$crate::OptionSpec> {
                #[allow(unused_imports, reason = "a section need not use every codec")]
                use $crate::value::*;
                let defaults = Self::default();
                vec![$($crate::OptionSpec {
                    section: $name,
                    name: stringify!($field),
                    help: concat!($($help),+),
                    form: <$codec as Codec<$type>>::form(),
                    default: $crate::__config_default_text!(
                        <$codec as Codec<$type>>::show(&defaults.$field)
                        $(, template $template)? $(, machine $machine)?
                    ),
                    secret: $crate::is_secret::<$type, $codec>(),
                    was: &[$($($was),*)?],
                    ours: false $(|| $ours)?,
                },)*]
            }

            fn read(reader: &mut $crate::Reader<'_>) -> Self {
                #[allow(unused_imports, reason = "a section need not use every codec")]
                use $crate::value::*;
                Self {
                    $($field: reader.option::<$type, $codec>($name, stringify!($field), || $default),)*
                }
            }

            fn shown(&self) -> Vec<Option<String>> {
                #[allow(unused_imports, reason = "a section need not use every codec")]
                use $crate::value::*;
                vec![$(<$codec as Codec<$type>>::show(&self.$field),)*]
            }
        }
    };
}
pub(super) use crate::config_section as section;

/// Picks the most telling text of a default.
#[doc(hidden)]
#[macro_export]
macro_rules! __config_default_text {
    ($value:expr) => {
        $crate::DefaultText::Value($value)
    };
    ($value:expr, template $text:literal) => {
        $crate::DefaultText::Template($text)
    };
    ($value:expr, machine $text:literal) => {
        $crate::DefaultText::Machine($text, $value)
    };
}
