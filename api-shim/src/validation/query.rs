//! Arguments of the query string, and paging.
//!
//! Each route names the arguments it knows; another one is a 400, so that a misspelt filter is not taken for
//! none. Of one that is given several times the last counts if it is a text; a list of values is no number, no uuid and no
//! boolean. So it is in Magnum.

use magnum_common::error::{Exception, Fault};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::body::{Kind, NAME, at_least, boolean_of, invalid};
use super::python::{no_whole_number, str_of};
use crate::microversion::Version;

/// One argument that a route knows.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    pub since: Version,
}

impl Argument {
    /// One of every version.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            since: Version::MIN,
        }
    }

    /// The same from a version on.
    pub const fn since(self, since: Version) -> Self {
        Self { since, ..self }
    }
}

/// Continue after this one.
pub const MARKER: Argument = Argument::new("marker", Kind::Uuid);
/// The same by a row's number.
pub const NUMBERED_MARKER: Argument = Argument::new("marker", at_least(0));
/// At most so many.
pub const LIMIT: Argument = Argument::new("limit", at_least(1));
/// The column to sort by.
pub const SORT_KEY: Argument = Argument::new("sort_key", NAME);
/// The direction of sorting.
pub const SORT_DIR: Argument = Argument::new("sort_dir", Kind::Choice(&["asc", "desc"]));

/// The arguments of collections.
pub const PAGING: &[Argument] = &[MARKER, LIMIT, SORT_KEY, SORT_DIR];

/// The arguments of one request, all of them known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Vec<Given>);

/// One of them, with all the values that it was given.
#[derive(Debug, Clone, PartialEq)]
struct Given {
    name: String,
    values: Vec<String>,
}

impl Given {
    /// As Python would write what it takes for the value: the only one, or the list of them.
    fn text(&self) -> String {
        match &self.values[..] {
            [value] => value.clone(),
            values => str_of(&Value::from(values)),
        }
    }
}

impl Arguments {
    /// Reads a query string; `known` are the route's arguments, of which a version has those that it has.
    ///
    /// # Errors
    /// What the client is told: a 400 that names the field, where no other status is said.
    pub fn parse(query: Option<&str>, known: &[Argument], version: Version) -> Result<Self, Fault> {
        let mut given: Vec<Given> = Vec::new();
        for (key, value) in pairs(query) {
            let is_known = |argument: &Argument| argument.name == key && version >= argument.since;
            if !known.iter().any(is_known) {
                return Err(Fault::new(
                    Exception::Invalid,
                    format!("Unknown argument: \"{key}\""),
                ));
            }
            match given.iter_mut().find(|given| given.name == key) {
                Some(given) => given.values.push(value),
                None => given.push(Given {
                    name: key,
                    values: vec![value],
                }),
            }
        }
        Ok(Self(given))
    }

    /// The text of one argument, the last one where there are several.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given(name)?.values.last().map(String::as_str)
    }

    fn uuid(&self, name: &str) -> Result<Option<String>, Fault> {
        let text = self.given(name).map(Given::text);
        text.map(|text| uuid(name, &text)).transpose()
    }

    fn integer(&self, name: &str) -> Result<Option<i128>, Fault> {
        let Some(given) = self.given(name) else {
            return Ok(None);
        };
        match &given.values[..] {
            [text] => integer(name, text).map(Some),
            _ => {
                let reason = "unable to convert to int. Error: int() argument must be a string, a bytes-like object \
                              or a real number, not 'list'";
                Err(invalid(name, &Value::String(given.text()), reason))
            }
        }
    }

    fn given(&self, name: &str) -> Option<&Given> {
        self.0.iter().find(|given| given.name == name)
    }

    /// A boolean argument.
    ///
    /// # Errors
    /// What the client is told: a 400 that names the field, where no other status is said.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, Fault> {
        self.given(key)
            .map(|given| {
                let value = Value::String(given.text());
                boolean_of(&value).ok_or_else(|| invalid(key, &value, "unable to convert to boolean."))
            })
            .transpose()
    }
}

/// The names and values of a query string, decoded, in their order.
pub fn pairs(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    let pairs = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " "))
        .decode_utf8_lossy()
        .into_owned()
}

/// Which way a collection is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    /// The word in query strings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// Which part of a collection is wanted, in which order. Whether `sort_key` is a column is the database's to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Paging {
    /// Continue after this one.
    pub marker: Option<String>,
    /// At most so many; never more than the service allows.
    pub limit: u32,
    /// The column to sort by.
    pub sort_key: String,
    /// The direction.
    pub direction: Direction,
}

impl Paging {
    /// Reads the four arguments. `max_limit` is `[api] max_limit`.
    ///
    /// # Errors
    /// What the client is told: a 400 that names the field, where no other status is said.
    pub fn from_arguments(arguments: &Arguments, max_limit: u32) -> Result<Self, Fault> {
        let marker = arguments.uuid("marker")?;
        Self::read(arguments, max_limit, marker)
    }

    /// The same for a collection whose markers are numbers of rows; 0 is before the first one.
    ///
    /// # Errors
    /// What the client is told: a 400 that names the field, where no other status is said.
    pub fn numbered(arguments: &Arguments, max_limit: u32) -> Result<Self, Fault> {
        let marker = arguments.integer("marker")?.map(|number| number.to_string());
        let marker = marker.filter(|number| number != "0");
        Self::read(arguments, max_limit, marker)
    }

    fn read(arguments: &Arguments, max_limit: u32, marker: Option<String>) -> Result<Self, Fault> {
        let limit = match arguments.integer("limit")? {
            None => max_limit,
            Some(number) => limit(number)?.min(max_limit),
        };
        let direction = match arguments.get("sort_dir") {
            None | Some("asc") => Direction::Ascending,
            Some("desc") => Direction::Descending,
            Some(other) => {
                return Err(Fault::new(
                    Exception::Invalid,
                    format!("Invalid sort direction: {other}. Acceptable values are 'asc' or 'desc'"),
                ));
            }
        };
        Ok(Self {
            marker,
            limit,
            sort_key: arguments
                .get("sort_key")
                .filter(|key| !key.is_empty())
                .unwrap_or("id")
                .to_owned(),
            direction,
        })
    }
}

fn uuid(name: &str, text: &str) -> Result<String, Fault> {
    uuid::Uuid::try_parse(text)
        .map(|uuid| uuid.to_string())
        .map_err(|_| {
            let reason = format!("unable to convert to uuid. Error: Expected a uuid but received {text}.");
            invalid(name, &Value::String(text.to_owned()), &reason)
        })
}

fn integer(name: &str, text: &str) -> Result<i128, Fault> {
    text.trim().parse().map_err(|_| {
        let value = Value::String(text.to_owned());
        let reason = format!("unable to convert to int. Error: {}", no_whole_number(&value));
        invalid(name, &value, &reason)
    })
}

fn limit(number: i128) -> Result<u32, Fault> {
    if number <= 0 {
        return Err(Fault::new(Exception::Invalid, "Limit must be positive"));
    }
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The refusal of a `sort_key` that is no column.
pub fn bad_sort_key(key: &str) -> Fault {
    Fault::new(
        Exception::InvalidParameterValue,
        format!("The sort_key value \"{key}\" is an invalid field for sorting"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLBACK: &[Argument] = &[Argument::new("rollback", Kind::Boolean).since(Version::ROLLBACK)];

    fn paging(query: &str) -> Result<Paging, String> {
        Arguments::parse(Some(query), PAGING, Version::MAX)
            .and_then(|arguments| Paging::from_arguments(&arguments, 1000))
            .map_err(|fault| fault.message)
    }

    #[test]
    fn without_arguments_a_page_is_the_first_thousand_by_id() {
        let page = paging("").unwrap();
        assert_eq!((page.limit, page.sort_key.as_str()), (1000, "id"));
        assert_eq!(page.direction, Direction::Ascending);
        assert_eq!(page.marker, None);
    }

    #[test]
    fn limits_are_positive_and_clamped() {
        assert_eq!(paging("limit=5").unwrap().limit, 5);
        assert_eq!(paging("limit=1000000").unwrap().limit, 1000);
        assert_eq!(paging("limit=99999999999999999999").unwrap().limit, 1000);
        for text in ["0", "-1"] {
            assert_eq!(
                paging(&format!("limit={text}")),
                Err("Limit must be positive".into())
            );
        }
        assert_eq!(
            paging("limit=1&sort_key=x&limit=2"),
            Err(
                "Invalid input for field/attribute limit. Value: '['1', '2']'. unable to convert to int. Error: int() \
                 argument must be a string, a bytes-like object or a real number, not 'list'"
                    .into()
            )
        );
        assert!(
            paging("limit=1.5")
                .unwrap_err()
                .ends_with("invalid literal for int() with base 10: '1.5'")
        );
    }

    #[test]
    fn arguments_are_decoded_and_unknown_ones_refused() {
        assert_eq!(paging("foo=bar"), Err("Unknown argument: \"foo\"".into()));
        assert!(Arguments::parse(Some("rollback=1"), ROLLBACK, Version::ROLLBACK).is_ok());
        assert!(Arguments::parse(Some("rollback=1"), ROLLBACK, Version::MIN).is_err());
        assert_eq!(paging("sort_key=a%20b+c").unwrap().sort_key, "a b c");
        assert!(
            paging("marker=zzz")
                .unwrap_err()
                .contains("Value: 'zzz'. unable to convert to uuid.")
        );
        assert_eq!(
            paging("sort_dir=up"),
            Err("Invalid sort direction: up. Acceptable values are 'asc' or 'desc'".into())
        );
    }

    #[test]
    fn of_a_repeated_text_the_last_counts_and_no_list_is_a_uuid_or_a_boolean() {
        let page = paging("sort_key=uuid&sort_dir=asc&sort_key=name&sort_dir=desc").unwrap();
        assert_eq!(
            (page.sort_key.as_str(), page.direction),
            ("name", Direction::Descending)
        );
        let uuid = "f1b4c2de-7ab1-4c0e-8d43-6b1f7b9c2f10";
        assert_eq!(
            paging(&format!("marker={uuid}&marker={uuid}")),
            Err(format!(
                "Invalid input for field/attribute marker. Value: '['{uuid}', '{uuid}']'. unable to convert to uuid. \
                 Error: Expected a uuid but received ['{uuid}', '{uuid}']."
            ))
        );
        let twice = Arguments::parse(Some("rollback=1&rollback=1"), ROLLBACK, Version::MAX).unwrap();
        let fault = twice.boolean("rollback").unwrap_err();
        assert!(fault.message.contains("'['1', '1']'"), "{}", fault.message);
    }

    #[test]
    fn markers_may_be_numbers() {
        let numbered = |query: &str| {
            Arguments::parse(Some(query), PAGING, Version::MAX)
                .and_then(|arguments| Paging::numbered(&arguments, 1000))
                .map_err(|fault| fault.message)
        };
        assert_eq!(numbered("marker=07").unwrap().marker.as_deref(), Some("7"));
        assert_eq!(numbered("marker=0").unwrap().marker, None);
        assert!(
            numbered("marker=x")
                .unwrap_err()
                .contains("attribute marker. Value: 'x'. unable to convert to int.")
        );
    }

    #[test]
    fn boolean_arguments_take_the_usual_words() {
        let arguments = Arguments::parse(Some("rollback=True"), ROLLBACK, Version::MAX).unwrap();
        assert_eq!(arguments.boolean("rollback"), Ok(Some(true)));
        let arguments = Arguments::parse(Some("rollback=x"), ROLLBACK, Version::MAX).unwrap();
        assert!(arguments.boolean("rollback").is_err());
    }
}
