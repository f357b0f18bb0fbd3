//! Python literals, as `ast.literal_eval` reads them, where JSON has a place for what they say.
//!
//! A JSON patch may replace a whole dictionary or list by a *text* that holds such a literal. Clients write what Python prints,
//! and what older ones print has a `u` before each text. Read by the parser of ruff. Before that, its tokens are looked at:
//! only those of literals are let through and only so deep, so that no text can make the parser's recursion use up
//! the stack.
//!
//! Besides, the JSON that looks like a literal is read (`true`, `false`, `null`). Bytes are read as UTF-8. Sets, `...`, complex
//! numbers and keys that are no texts are refused, since no attribute takes them; half a surrogate pair, since no JSON has it.

use std::collections::HashMap;

use num_bigint::BigInt;
use rustpython_ruff_python_ast::token::TokenKind;
use rustpython_ruff_python_ast::{
    Expr, ExprBytesLiteral, ExprDict, ExprStringLiteral, ExprUnaryOp, Int, Number as Numeral, StringLiteral,
    UnaryOp,
};
use rustpython_ruff_python_parser::lexer::lex;
use rustpython_ruff_python_parser::{Mode, parse_expression};
use serde_json::{Number, Value};

use super::integer::{integer, is_reserved, large_integer};

/// Deeper nesting than any attribute has.
const MAX_DEPTH: usize = 32;
/// Python's own bound for the digits of a decimal number.
const MAX_DIGITS: usize = 4300;

/// Reads one.
///
/// # Errors
/// What is wrong, for an error text: it is no such literal, or one that has no place in JSON, or it is nested too deeply.
pub fn parse_literal(text: &str) -> Result<Value, String> {
    // As Python: blanks before it would indent it.
    let text = text.trim_start_matches([' ', '\t']);
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains('\0') {
        return Err("it has a NUL character".to_owned());
    }
    // As Python, before it looks at anything: so in quotes, too.
    let text = &*text.replace("\r\n", "\n").replace('\r', "\n");
    check_tokens(text)?;
    let parsed = parse_expression(text).map_err(|error| error.error.to_string())?;
    Reader { text }.value(parsed.expr())
}

/// Whether these are tokens of a literal, nested as deeply as is allowed.
fn check_tokens(text: &str) -> Result<(), String> {
    let mut lexer = lex(text, Mode::Expression);
    let (mut depth, mut signs) = (0_usize, 0_usize);
    loop {
        let token = lexer.next_token();
        signs = match token {
            TokenKind::Plus | TokenKind::Minus => signs + 1,
            TokenKind::NonLogicalNewline | TokenKind::Comment => signs,
            _ => 0,
        };
        match token {
            TokenKind::EndOfFile => return Ok(()),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => depth += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => depth = depth.saturating_sub(1),
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::Comment
            | TokenKind::Newline
            | TokenKind::NonLogicalNewline
            | TokenKind::Colon
            | TokenKind::Comma
            | TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::True
            | TokenKind::False
            | TokenKind::None => {}
            TokenKind::Unknown => {
                let error = lexer.finish().pop().map(|error| error.error().to_string());
                return Err(error.unwrap_or_else(|| "it is no Python literal".to_owned()));
            }
            other => return Err(format!("{other} is no part of a literal")),
        }
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        if signs > 1 {
            return Err("a number has one sign".to_owned());
        }
    }
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn value(&self, expression: &Expr) -> Result<Value, String> {
        match expression {
            Expr::StringLiteral(text) => self.string(text).map(Value::String),
            Expr::BytesLiteral(bytes) => utf8(bytes).map(Value::String),
            Expr::NumberLiteral(number) => numeral(&number.value, false),
            Expr::UnaryOp(signed) => sign(signed),
            Expr::BooleanLiteral(boolean) => Ok(Value::Bool(boolean.value)),
            Expr::NoneLiteral(_) => Ok(Value::Null),
            Expr::Name(name) => match name.id.as_str() {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                "null" => Ok(Value::Null),
                word => Err(format!("'{word}' is neither a value nor quoted")),
            },
            Expr::List(list) => self.all(&list.elts),
            Expr::Tuple(tuple) => self.all(&tuple.elts),
            Expr::Dict(dictionary) => self.dictionary(dictionary),
            _ => Err("it is no literal that JSON has a place for".to_owned()),
        }
    }

    fn all(&self, values: &[Expr]) -> Result<Value, String> {
        let values: Result<Vec<Value>, String> = values.iter().map(|value| self.value(value)).collect();
        values.map(Value::Array)
    }

    fn dictionary(&self, dictionary: &ExprDict) -> Result<Value, String> {
        // For Python a text and bytes are two keys, each where it was first. Of those that become one here, the later counts.
        let mut places = HashMap::new();
        let mut items: Vec<(String, Value)> = Vec::new();
        for item in &dictionary.items {
            let (key, is_bytes) = match &item.key {
                Some(Expr::StringLiteral(key)) => (self.string(key)?, false),
                Some(Expr::BytesLiteral(key)) => (utf8(key)?, true),
                _ => return Err("a key must be a text".to_owned()),
            };
            if is_reserved(&key) {
                return Err("a key has a NUL character".to_owned());
            }
            let value = self.value(&item.value)?;
            let place = *places.entry((key.clone(), is_bytes)).or_insert(items.len());
            match items.get_mut(place) {
                Some((_, before)) => *before = value,
                None => items.push((key, value)),
            }
        }
        Ok(Value::Object(items.into_iter().collect()))
    }

    fn string(&self, literal: &ExprStringLiteral) -> Result<String, String> {
        // The parser makes U+FFFD of half a surrogate pair. A text may also have that character itself.
        let is_halved = |part: &StringLiteral| {
            let written = self.text.get(part.range.to_std_range());
            part.value.contains(char::REPLACEMENT_CHARACTER)
                && !part.flags.prefix().is_raw()
                && written.is_some_and(has_surrogate_escape)
        };
        if literal.value.iter().any(is_halved) {
            return Err("half a surrogate pair is no character".to_owned());
        }
        Ok(literal.value.to_str().to_owned())
    }
}

/// Whether some `\uD8xx` to `\uDFxx`, or the long form of it, is written in a text that is not raw.
fn has_surrogate_escape(written: &str) -> bool {
    let mut rest = written;
    while let Some((_, escape)) = rest.split_once('\\') {
        let mut following = escape.chars();
        let digits = match following.next() {
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        rest = following.as_str();
        let code = rest
            .get(..digits)
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        if code.is_some_and(|code| (0xd800..=0xdfff).contains(&code)) {
            return true;
        }
    }
    false
}

fn utf8(literal: &ExprBytesLiteral) -> Result<String, String> {
    String::from_utf8(literal.value.bytes().collect()).map_err(|_| "the bytes are no UTF-8".to_owned())
}

/// A number with its sign; nothing else can have one.
fn sign(signed: &ExprUnaryOp) -> Result<Value, String> {
    match (signed.op, &*signed.operand) {
        (UnaryOp::USub, Expr::NumberLiteral(number)) => numeral(&number.value, true),
        (UnaryOp::UAdd, Expr::NumberLiteral(number)) => numeral(&number.value, false),
        _ => Err("only a number has a sign".to_owned()),
    }
}

fn numeral(number: &Numeral, is_negative: bool) -> Result<Value, String> {
    match number {
        Numeral::Int(written) => whole(written, is_negative),
        Numeral::Float(float) => {
            let float = if is_negative { -float } else { *float };
            let number = Number::from_f64(float).map(Value::Number);
            number.ok_or_else(|| "a number is too large".to_owned())
        }
        Numeral::Complex { .. } => Err("a complex number has no place in JSON".to_owned()),
    }
}

fn whole(written: &Int, is_negative: bool) -> Result<Value, String> {
    let too_many = || format!("a number has more than {MAX_DIGITS} digits");
    // As it was written, where it has more than 64 bits.
    let written = written.to_string().replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match written.as_bytes() {
        [b'0', b'x', ..] => (&written[2..], 16),
        [b'0', b'o', ..] => (&written[2..], 8),
        [b'0', b'b', ..] => (&written[2..], 2),
        _ => (written.as_str(), 10),
    };
    if digits.len() > 4 * MAX_DIGITS {
        return Err(too_many());
    }
    let number =
        BigInt::parse_bytes(digits.as_bytes(), radix).ok_or_else(|| format!("'{written}' is no number"))?;
    let value = integer(&if is_negative { -number } else { number });
    match large_integer(&value) {
        Some(digits) if digits.trim_start_matches('-').len() > MAX_DIGITS => Err(too_many()),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_python_and_older_pythons_print_is_read() {
        for (text, value) in [
            ("{'a': 'b', 'n': 1,}", json!({"a": "b", "n": 1})),
            ("{u'a': u'b'}", json!({"a": "b"})),
            (r"{b'caf\xc3\xa9': 1}", json!({"café": 1})),
            (
                r#"{"a": true, "b": None, 'c': null}"#,
                json!({"a": true, "b": null, "c": null}),
            ),
            (r"(1, -2.5, 'x\'y')", json!([1, -2.5, "x'y"])),
            (" {} ", json!({})),
            ("()", json!([])),
            (r"{'a': '\q'}", json!({"a": r"\q"})),
            (r"'\101\U0001F600\N{BULLET}'", json!("A\u{1f600}\u{2022}")),
            ("'a\\\nb'", json!("ab")),
            (r"r'\n'", json!(r"\n")),
            ("r'\\ud800\u{fffd}'", json!("\\ud800\u{fffd}")),
            ("'\\\\ud800\u{fffd}'", json!("\\ud800\u{fffd}")),
            (r"b'caf\xc3\xa9'", json!("café")),
            ("'b' 'c'", json!("bc")),
            ("('b'\n 'c')", json!("bc")),
            (
                "[0x10, 0o17, 0b11, 1_0, .5, - 1, +1]",
                json!([16, 15, 3, 10, 0.5, -1, 1]),
            ),
            ("[1, # one\n 2]", json!([1, 2])),
            ("\"\"\"a\nb\"\"\"", json!("a\nb")),
            ("[rb\"\"\"a\r\nb\"\"\",\r'''c\rd''']", json!(["a\nb", "c\nd"])),
            ("{'a': 1, b'a': 2, 'a': 3}", json!({"a": 2})),
            ("{b'a': 1, 'b': 2, 'a': 3, b'a': 4}", json!({"a": 3, "b": 2})),
        ] {
            assert_eq!(parse_literal(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_python_refuses_is_refused_without_a_panic() {
        for text in [
            "",
            "boom(",
            "{'a'",
            "{'a': }",
            "[1",
            "'open",
            "1 2",
            "{1: 2}",
            r"'\x",
            r"'\uzzzz'",
            "--1",
            "007",
            "'a\nb'",
            r"'\ud800'",
            "'\\U0000d800\u{fffd}'",
            "{'a', 'b'}",
            "1j",
            "...",
            "f'{x}'",
            "a.b",
            "1 + 2",
            "'a\0b'",
        ] {
            assert!(parse_literal(text).is_err(), "{text}");
        }
        assert!(parse_literal(&"[".repeat(10_000)).is_err());
        assert!(parse_literal(&"- ".repeat(10_000)).is_err());
        assert!(parse_literal(&"9".repeat(4301)).is_err());
    }
}
