//! Python's way of writing values, where the REST contract shows it.
//!
//! Magnum's error texts quote values as Python prints them, and labels are kept as Python's `str` makes texts of them. What a
//! client writes so is read by [`parse_literal`].

mod integer;
mod literal;

use std::fmt::Write as _;

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use serde_json::{Number, Value};

pub use self::integer::{dictionary, integer, is_reserved, large_integer, whole_number};
pub use self::literal::parse_literal;

/// `str(value)`: what an error text shows between its quotes.
pub fn str_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// What Python's `int()` says of a text that is none: of a long one it shows the first 200 characters.
pub fn no_whole_number(value: &Value) -> String {
    let shown: String = repr(value).chars().take(200).collect();
    format!("invalid literal for int() with base 10: {shown}")
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
    if let Some(digits) = large_integer(value) {
        return digits.to_owned();
    }
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(repr).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", quoted(key), repr(value)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

/// `type(value)` as Python names it for a JSON value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        _ if large_integer(value).is_some() => "<class 'int'>",
        Value::Null => "<class 'NoneType'>",
        Value::Bool(_) => "<class 'bool'>",
        Value::Number(number) if number.is_f64() => "<class 'float'>",
        Value::Number(_) => "<class 'int'>",
        Value::String(_) => "<class 'str'>",
        Value::Array(_) => "<class 'list'>",
        Value::Object(_) => "<class 'dict'>",
    }
}

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// The shortest digits that mean it, with an exponent where Python's `repr` has one.
fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent @ ..-4) => format!("{digits}e-{:02}", -exponent),
        Ok(exponent @ 16..) => format!("{digits}e+{exponent}"),
        _ if float.fract() == 0.0 => format!("{float:.1}"),
        _ => float.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push(quote);
    out
}

/// As `str.isprintable` has it.
fn is_printable(c: char) -> bool {
    use GeneralCategory as Category;
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    !matches!(
        CodePointMapData::<Category>::new().get(c),
        Category::Control
            | Category::Format
            | Category::Surrogate
            | Category::PrivateUse
            | Category::Unassigned
            | Category::LineSeparator
            | Category::ParagraphSeparator
            | Category::SpaceSeparator
    )
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _infallible = match code {
        ..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_python_prints_them() {
        let value = json!({"a": "it's", "n": [1, 1.5, 2.0], "t": true, "x": null, "q": "\"'\\\n"});
        assert_eq!(
            repr(&value),
            r#"{'a': "it's", 'n': [1, 1.5, 2.0], 't': True, 'x': None, 'q': '"\'\\\n'}"#
        );
        assert_eq!(str_of(&json!("plain")), "plain");
        let long = no_whole_number(&json!("x".repeat(300)));
        assert!(
            long.ends_with(&format!("base 10: '{}", "x".repeat(199))),
            "{long}"
        );
        assert_eq!(str_of(&json!(null)), "None");
    }

    #[test]
    fn floats_print_as_pythons_repr_has_them() {
        for (written, printed) in [
            ("1e-7", "1e-07"),
            ("1e-5", "1e-05"),
            ("0.0001", "0.0001"),
            ("1.5e-10", "1.5e-10"),
            ("9007199254740993.0", "9007199254740992.0"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("5e-324", "5e-324"),
            ("-0.0", "-0.0"),
            ("2.50", "2.5"),
        ] {
            let value: Value = serde_json::from_str(written).unwrap();
            assert_eq!(repr(&value), printed, "{written}");
        }
    }

    #[test]
    fn texts_print_as_pythons_repr_has_them() {
        for (text, printed) in [
            ("\u{7f}\u{a0}\u{ad}", r"'\x7f\xa0\xad'"),
            ("\u{2028}\u{e000}\u{378}", r"'\u2028\ue000\u0378'"),
            ("\u{1f600}\u{e0001}", "'\u{1f600}\\U000e0001'"),
            ("ü ٣", "'ü ٣'"),
            ("\0\u{1b}", r"'\x00\x1b'"),
        ] {
            assert_eq!(repr(&json!(text)), printed);
        }
    }
}
