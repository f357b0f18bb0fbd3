//! Forms made of other forms: values that may be absent, lists, repeated keys, pairs.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::Codec;

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

/// Removes one pair of quotes around the first line, as oslo.config does with every value.
pub(crate) fn unquoted(text: &str) -> Cow<'_, str> {
    let (first, more) = text.split_at(text.find('\n').unwrap_or(text.len()));
    match stripped(first) {
        Some(inner) if more.is_empty() => inner.into(),
        Some(inner) => format!("{inner}{more}").into(),
        None => text.into(),
    }
}

/// What is between quotes at both ends; a lone quote is both ends of nothing.
fn stripped(line: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|quote| {
        let inner = line.strip_prefix(quote)?;
        if inner.is_empty() {
            Some(inner)
        } else {
            inner.strip_suffix(quote)
        }
    })
}

/// Splits a list. Quotes around the whole list are dropped first, unless they belong to its items.
fn items(text: &str) -> Result<Vec<String>, String> {
    let inner = unquoted(text);
    let text = if inner.contains(['"', '\'']) {
        text
    } else {
        &*inner
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
    use super::super::Text;
    use super::*;

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
    fn quotes_are_dropped_from_the_first_line_only() {
        for (text, expected) in [
            ("\"a b\"", "a b"),
            ("'a'\n'b'", "a\n'b'"),
            ("\"", ""),
            ("\"a'", "\"a'"),
            ("", ""),
        ] {
            assert_eq!(unquoted(text), expected);
        }
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
}
