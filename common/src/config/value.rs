//! How one option's text becomes a value, and back.
//!
//! A [`Codec`] names the form (whole number, list, seconds, …); the field's own type says what the program
//! gets. The split lets one Rust type have several forms: a `Duration` may be written in seconds or minutes.
//!
//! [`Codec::show`] is what the sample file, the dump and the documentation print. A codec of a secret masks
//! there, so nothing downstream has to remember to.
//!
//! Differs from oslo.config: list items may be quoted to contain commas; durations accept fractions.

use std::fmt::Display;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::url;
use crate::secret::Secret;

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

/// Any text.
pub struct Text;

impl Codec<String> for Text {
    fn form() -> String {
        "text".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(value.clone())
    }
}

/// A name of a host, queue or exchange: not empty, without white space.
pub struct Name;

impl Codec<String> for Name {
    fn form() -> String {
        "name".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        if text.is_empty() {
            return Err("must not be empty".into());
        }
        // 255 bytes is the limit of both a queue name in AMQP and a host column in the database.
        if text.len() > 255 || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("{text:?} must have at most 255 bytes and no white space"));
        }
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(value.clone())
    }
}

/// Yes or no, in oslo's eight spellings.
pub struct Bool;

impl Codec<bool> for Bool {
    fn form() -> String {
        "boolean".into()
    }
    fn parse(text: &str) -> Result<bool, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(format!("{text:?} is not a boolean; write true or false")),
        }
    }
    fn show(value: &bool) -> Option<String> {
        Some(value.to_string())
    }
}

/// A whole number from `MIN` to `MAX`, both allowed.
pub struct Int<const MIN: i64 = { i64::MIN }, const MAX: i64 = { i64::MAX }>;

impl<T: TryFrom<i64> + Display, const MIN: i64, const MAX: i64> Codec<T> for Int<MIN, MAX> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        match (MIN, MAX) {
            (i64::MIN, i64::MAX) => "integer".into(),
            (min, i64::MAX) => format!("integer, at least {min}"),
            (min, max) => format!("integer, {min} to {max}"),
        }
    }
    fn parse(text: &str) -> Result<T, String> {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("{text:?} is not a whole number"))?;
        if !(MIN..=MAX).contains(&number) {
            return Err(format!(
                "{number} is out of range ({})",
                <Self as Codec<T>>::form()
            ));
        }
        T::try_from(number).map_err(|_| format!("{number} is out of range"))
    }
    fn show(value: &T) -> Option<String> {
        Some(value.to_string())
    }
}

/// A number of threads; 0 means one per processor.
pub struct Threads;

impl Codec<usize> for Threads {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        <Int<0, 1024> as Codec<usize>>::form()
    }
    fn parse(text: &str) -> Result<usize, String> {
        let number = <Int<0, 1024>>::parse(text)?;
        Ok(if number == 0 { processors() } else { number })
    }
    fn show(value: &usize) -> Option<String> {
        Some(value.to_string())
    }
}

/// Processors of this machine, at least one.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A decimal number; the limits are in thousandths.
pub struct Float<const MIN: i64, const MAX: i64>;

impl<const MIN: i64, const MAX: i64> Codec<f64> for Float<MIN, MAX> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        format!("number, {} to {}", thousandths(MIN), thousandths(MAX))
    }
    fn parse(text: &str) -> Result<f64, String> {
        let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
        if !(thousandths(MIN)..=thousandths(MAX)).contains(&number) {
            return Err(format!("{number} is out of range ({})", Self::form()));
        }
        Ok(number)
    }
    fn show(value: &f64) -> Option<String> {
        Some(value.to_string())
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are small literals")]
fn thousandths(limit: i64) -> f64 {
    limit as f64 / 1000.0
}

/// Seconds, whole or with a fraction; the least value is in milliseconds.
pub struct Seconds<const MIN_MS: u64 = 0>;

impl<const MIN_MS: u64> Codec<Duration> for Seconds<MIN_MS> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        least("seconds", MIN_MS, 1)
    }
    fn parse(text: &str) -> Result<Duration, String> {
        duration(text, 1, MIN_MS).map_err(|why| format!("{why} ({})", Self::form()))
    }
    fn show(value: &Duration) -> Option<String> {
        Some(value.as_secs_f64().to_string())
    }
}

/// Minutes, whole or with a fraction; the least value is in milliseconds.
pub struct Minutes<const MIN_MS: u64 = 0>;

impl<const MIN_MS: u64> Codec<Duration> for Minutes<MIN_MS> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        least("minutes", MIN_MS, 60)
    }
    fn parse(text: &str) -> Result<Duration, String> {
        duration(text, 60, MIN_MS).map_err(|why| format!("{why} ({})", Self::form()))
    }
    fn show(value: &Duration) -> Option<String> {
        Some((value.as_secs_f64() / 60.0).to_string())
    }
}

fn least(unit: &str, min_ms: u64, seconds_per_unit: u64) -> String {
    let least =
        Duration::from_millis(min_ms).as_secs_f64() / Duration::from_secs(seconds_per_unit).as_secs_f64();
    if min_ms == 0 {
        unit.to_owned()
    } else {
        format!("{unit}, at least {least}")
    }
}

fn duration(text: &str, seconds_per_unit: u32, min_ms: u64) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    let value = Duration::try_from_secs_f64(number * f64::from(seconds_per_unit))
        .map_err(|_| format!("{text} is out of range"))?;
    // A century bounds sums of durations and instants far from overflow.
    if value < Duration::from_millis(min_ms) || value > Duration::from_secs(100 * 366 * 86_400) {
        return Err(format!("{text} is out of range"));
    }
    Ok(value)
}

/// A path of a file or directory.
pub struct Path;

impl Codec<PathBuf> for Path {
    fn form() -> String {
        "path".into()
    }
    fn parse(text: &str) -> Result<PathBuf, String> {
        if text.is_empty() || text.contains('\0') {
            return Err(format!("{text:?} is not a path"));
        }
        Ok(PathBuf::from(text))
    }
    fn show(value: &PathBuf) -> Option<String> {
        Some(value.display().to_string())
    }
}

/// Directories separated by colons, as in `PATH`.
pub struct SearchPath;

impl Codec<Vec<PathBuf>> for SearchPath {
    fn form() -> String {
        "directories separated by `:`".into()
    }
    fn parse(text: &str) -> Result<Vec<PathBuf>, String> {
        text.split(':')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(Path::parse)
            .collect()
    }
    fn show(value: &Vec<PathBuf>) -> Option<String> {
        Some(
            value
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(":"),
        )
    }
}

/// An IP address to listen on.
pub struct Ip;

impl Codec<IpAddr> for Ip {
    fn form() -> String {
        "IP address".into()
    }
    fn parse(text: &str) -> Result<IpAddr, String> {
        text.parse().map_err(|_| format!("{text:?} is not an IP address"))
    }
    fn show(value: &IpAddr) -> Option<String> {
        Some(value.to_string())
    }
}

/// Where to listen: `address:port`, `localhost:port`, or `:port` for all addresses.
pub struct Listen;

impl Codec<SocketAddr> for Listen {
    fn form() -> String {
        "address:port".into()
    }
    fn parse(text: &str) -> Result<SocketAddr, String> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let found = text.rsplit_once(':').and_then(|(host, port)| {
            let ip = match host {
                "" | "*" => Ipv4Addr::UNSPECIFIED,
                "localhost" => Ipv4Addr::LOCALHOST,
                _ => return None,
            };
            Some(SocketAddr::from((ip, port.parse::<u16>().ok()?)))
        });
        found.ok_or_else(|| format!("{text:?} is not an address with a port, such as 127.0.0.1:9512"))
    }
    fn show(value: &SocketAddr) -> Option<String> {
        Some(value.to_string())
    }
}

/// A secret text, always shown as `***`.
pub struct Hidden;

impl Codec<Secret> for Hidden {
    const SECRET: bool = true;
    fn form() -> String {
        "text".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        Ok(Secret::new(text))
    }
    fn show(value: &Secret) -> Option<String> {
        Some(value.to_string())
    }
}

/// A broker's URL; the passwords in it are masked.
pub struct BrokerUrl;

impl Codec<Secret> for BrokerUrl {
    const SECRET: bool = true;
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        url::check_broker(text)?;
        Ok(Secret::new(text))
    }
    fn show(value: &Secret) -> Option<String> {
        Some(url::masked(value.expose()))
    }
}

/// A database's URL; the password in it is masked.
pub struct DatabaseUrl;

impl Codec<Secret> for DatabaseUrl {
    const SECRET: bool = true;
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        url::check_database(text)?;
        Ok(Secret::new(text))
    }
    fn show(value: &Secret) -> Option<String> {
        Some(url::masked(value.expose()))
    }
}

/// An `http` or `https` URL.
pub struct HttpUrl;

impl Codec<String> for HttpUrl {
    fn form() -> String {
        "URL".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        url::check_http(text)?;
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(url::masked(value))
    }
}

/// A value that may be absent; an empty text means absent.
pub struct Opt<C>(PhantomData<C>);

impl<T, C: Codec<T>> Codec<Option<T>> for Opt<C> {
    const SECRET: bool = C::SECRET;
    const MULTI: bool = C::MULTI;
    fn form() -> String {
        C::form()
    }
    fn parse(text: &str) -> Result<Option<T>, String> {
        if text.is_empty() {
            Ok(None)
        } else {
            C::parse(text).map(Some)
        }
    }
    fn show(value: &Option<T>) -> Option<String> {
        value.as_ref().and_then(C::show)
    }
}

/// Items separated by commas; quotes keep a comma inside an item.
pub struct List<C>(PhantomData<C>);

impl<T, C: Codec<T>> Codec<Vec<T>> for List<C> {
    const SECRET: bool = C::SECRET;
    const OWN_QUOTES: bool = true;
    fn form() -> String {
        format!("list of {}", C::form())
    }
    fn parse(text: &str) -> Result<Vec<T>, String> {
        items(text)?.iter().map(|item| C::parse(item)).collect()
    }
    fn show(value: &Vec<T>) -> Option<String> {
        let quoted = |text: String| {
            if text.contains(',') {
                format!("\"{text}\"")
            } else {
                text
            }
        };
        Some(
            value
                .iter()
                .filter_map(C::show)
                .map(quoted)
                .collect::<Vec<_>>()
                .join(","),
        )
    }
}

/// A key that may be repeated; every occurrence is one item.
pub struct Multi<C>(PhantomData<C>);

impl<T, C: Codec<T>> Codec<Vec<T>> for Multi<C> {
    const SECRET: bool = C::SECRET;
    const MULTI: bool = true;
    fn form() -> String {
        format!("{}, may be repeated", C::form())
    }
    fn parse(text: &str) -> Result<Vec<T>, String> {
        if text.is_empty() {
            Ok(Vec::new())
        } else {
            C::parse(text).map(|item| vec![item])
        }
    }
    fn parse_all(texts: &[String]) -> Result<Vec<T>, String> {
        texts
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| C::parse(text))
            .collect()
    }
    fn show(value: &Vec<T>) -> Option<String> {
        (!value.is_empty()).then(|| value.iter().filter_map(C::show).collect::<Vec<_>>().join(", "))
    }
}

/// Pairs `key<SEPARATOR>value` separated by commas, in the order written.
pub struct Dict<const SEPARATOR: char = ':'>;

impl<const SEPARATOR: char> Codec<Vec<(String, String)>> for Dict<SEPARATOR> {
    const OWN_QUOTES: bool = true;
    fn form() -> String {
        format!("list of `key{SEPARATOR}value`")
    }
    fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
        let pair = |item: &String| {
            let (key, value) = item
                .split_once(SEPARATOR)
                .ok_or_else(|| format!("{item:?} is not of the form key{SEPARATOR}value"))?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        items(text)?.iter().map(pair).collect()
    }
    fn show(value: &Vec<(String, String)>) -> Option<String> {
        Some(
            value
                .iter()
                .map(|(key, value)| format!("{key}{SEPARATOR}{value}"))
                .collect::<Vec<_>>()
                .join(","),
        )
    }
}

/// A type whose values are a fixed set of words.
pub trait Keyword: Sized + Copy + 'static {
    /// Every value with its word.
    const WORDS: &'static [(Self, &'static str)];
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
                    "{text:?} is not one of: {}",
                    T::WORDS
                        .iter()
                        .map(|(_, word)| *word)
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            })
    }
    fn show(value: &T) -> Option<String> {
        Some(value.word().to_owned())
    }
}

/// Declares an enum for [`Choice`]: each variant with its word in the file.
macro_rules! keywords {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $crate::config::value::Keyword for $name {
            const WORDS: &'static [(Self, &'static str)] = &[$((Self::$variant, $word),)*];
            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
pub(crate) use keywords;

/// Removes one pair of quotes around the whole text, as oslo.config does with every value.
pub(super) fn unquoted(text: &str) -> &str {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) if bytes.len() > 1 && first == last && matches!(first, b'"' | b'\'') => {
            &text[1..text.len() - 1]
        }
        _ => text,
    }
}

/// Splits a list. Quotes around the whole list are dropped first, unless they belong to its items.
fn items(text: &str) -> Result<Vec<String>, String> {
    let inner = unquoted(text.trim());
    let text = if inner.contains(['"', '\'']) {
        text.trim()
    } else {
        inner
    };
    let mut found = Vec::new();
    let mut item = String::new();
    let mut quote: Option<char> = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => item.push(c),
            None if (c == '"' || c == '\'') && item.trim().is_empty() => {
                item.clear();
                quote = Some(c);
            }
            None if c == ',' => found.push(std::mem::take(&mut item).trim().to_owned()),
            None => item.push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".into());
    }
    found.push(item.trim().to_owned());
    found.retain(|item| !item.is_empty());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_read_in_any_case() {
        assert_eq!(Bool::parse("Yes"), Ok(true));
        assert_eq!(Bool::parse("OFF"), Ok(false));
        assert!(Bool::parse("maybe").is_err());
    }

    #[test]
    fn a_number_out_of_range_names_the_range() {
        let error = <Int<1, 65535> as Codec<u16>>::parse("70000").unwrap_err();
        assert_eq!(error, "70000 is out of range (integer, 1 to 65535)");
        assert!(<Int as Codec<u16>>::parse("-1").is_err());
    }

    #[test]
    fn list_items_may_be_quoted_and_continue_over_lines() {
        let list = |text| <List<Text> as Codec<Vec<String>>>::parse(text).unwrap();
        assert_eq!(list("a, b ,,c"), ["a", "b", "c"]);
        assert_eq!(
            list("\"Digital Signature\", \"Key, Encipherment\""),
            ["Digital Signature", "Key, Encipherment"]
        );
        assert_eq!(list("\"a,b\""), ["a", "b"]);
        assert_eq!(list("\na,\nb"), ["a", "b"]);
        assert_eq!(list("it's, fine"), ["it's", "fine"]);
        assert_eq!(list(""), Vec::<String>::new());
        assert!(<List<Text> as Codec<Vec<String>>>::parse("\"a, b").is_err());
    }

    #[test]
    fn dict_pairs_keep_their_order() {
        assert_eq!(
            <Dict<'='>>::parse("amqp=WARN, b=INFO").unwrap(),
            [
                ("amqp".to_owned(), "WARN".to_owned()),
                ("b".to_owned(), "INFO".to_owned())
            ]
        );
        assert!(<Dict>::parse("a").is_err());
    }

    #[test]
    fn durations_have_limits_and_units() {
        assert_eq!(<Seconds>::parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(<Minutes>::parse("60"), Ok(Duration::from_secs(3600)));
        assert_eq!(<Minutes>::show(&Duration::from_secs(90)), Some("1.5".into()));
        assert!(<Seconds>::parse("-1").is_err());
        assert!(<Seconds>::parse("1e300").is_err());
        assert!(<Seconds>::parse("nan").is_err());
        assert!(<Seconds<1000>>::parse("0.9").unwrap_err().contains("at least 1"));
    }

    #[test]
    fn listen_addresses_take_names_only_of_this_host() {
        assert_eq!(Listen::parse(":9512").unwrap().to_string(), "0.0.0.0:9512");
        assert_eq!(Listen::parse("[::1]:9512").unwrap().to_string(), "[::1]:9512");
        assert_eq!(Listen::parse("localhost:1").unwrap().to_string(), "127.0.0.1:1");
        assert!(Listen::parse("example.org:1").is_err());
    }

    #[test]
    fn a_url_shows_without_its_password() {
        let url = BrokerUrl::parse("rabbit://u:hunter2@h/").unwrap();
        assert_eq!(BrokerUrl::show(&url), Some("rabbit://u:***@h/".into()));
    }
}
