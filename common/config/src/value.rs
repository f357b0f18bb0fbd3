//! How one option's text becomes a value, and back.
//!
//! A [`Codec`] names the form (whole number, list, seconds, …); the field's own type says what the program
//! gets. The split lets one Rust type have several forms: a `Duration` may be written in seconds or minutes.
//!
//! [`Codec::show`] is what the sample file, the dump and the documentation print. A codec of a secret masks
//! there, so nothing downstream has to remember to.
//!
//! Differs from oslo.config: list items may be quoted to contain commas; durations accept fractions.

mod compound;
mod keywords;
mod network;
mod numbers;
mod texts;

pub(super) use compound::unquoted;
pub use compound::{Dict, List, Multi, Opt};
pub(crate) use keywords::keywords;
pub use keywords::{Choice, Keyword};
pub use network::{BrokerUrl, DatabaseUrl, HttpUrl, Ip, Listen, Network};
pub(super) use numbers::processors;
pub use numbers::{Bool, Count, Days, Float, Int, Interval, Minutes, Seconds, SecondsMinMillis, Threads};
pub use texts::{Name, Password, Path, SearchPath, Text};

/// One written form of values of type `T`.
pub trait Codec<T> {
    /// Whether the value must not be quoted in messages.
    const SECRET: bool = false;
    /// Whether every occurrence of the key counts, instead of the last one.
    const MULTI: bool = false;
    /// Whether an empty text means "not set", as oslo has it for numbers.
    const EMPTY_IS_UNSET: bool = false;
    /// Whether quotes belong to the items, so that the pair around the whole text must not be dropped first.
    const OWN_QUOTES: bool = false;

    /// The form in words, for documentation and errors.
    fn form() -> String;
    /// Reads the text; the error says what is wrong without naming the option, and never quotes a secret.
    fn parse(text: &str) -> Result<T, String>;
    /// The text a file would have; `None` for "not set".
    fn show(value: &T) -> Option<String>;

    /// Reads all occurrences of the key, first to last; there is at least one.
    fn parse_all(texts: &[String]) -> Result<T, String> {
        Self::parse(texts.last().map_or("", String::as_str))
    }
}
