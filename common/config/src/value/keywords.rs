//! Options with a fixed set of words.

use super::Codec;

/// A type whose values are a fixed set of words.
pub trait Keyword: Sized + Copy + 'static {
    /// Every value with its word.
    const WORDS: &'static [(Self, &'static str)];
    /// What to say of any other word, besides which there are.
    const ADVICE: &'static str = "";
    /// The value's word.
    fn word(self) -> &'static str;
}

/// One of a fixed set of words, in any case.
pub struct Choice;

impl<T: Keyword> Codec<T> for Choice {
    fn form() -> String {
        T::WORDS
            .iter()
            .map(|(_, word)| *word)
            .collect::<Vec<_>>()
            .join(" | ")
    }
    fn parse(text: &str) -> Result<T, String> {
        T::WORDS
            .iter()
            .find(|(_, word)| word.eq_ignore_ascii_case(text))
            .map(|(value, _)| *value)
            .ok_or_else(|| {
                format!(
                    "{text:?} is not one of: {}{}",
                    T::WORDS
                        .iter()
                        .map(|(_, word)| *word)
                        .collect::<Vec<_>>()
                        .join(", "),
                    T::ADVICE
                )
            })
    }
    fn show(value: &T) -> Option<String> {
        Some(value.word().to_owned())
    }
}

/// Declares an enum for [`Choice`]: each variant with its word in the file; behind them, what to say of other words.
macro_rules! keywords {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* } $($advice:literal)?) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $crate::value::Keyword for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)*];
            $(const ADVICE: &'static str = $advice;)?
            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
pub(crate) use keywords;
