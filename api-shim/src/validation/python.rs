//! Python's way of writing values, where the REST contract shows it.
//!
//! Magnum's error texts quote values as Python prints them, and a JSON patch may replace a whole dictionary by
//! a *string* that holds a Python literal. Clients rely on both, so
//! this file writes the one and reads the other. It is no Python parser: names, calls and operators are refused.

use serde_json::{Map, Number, Value};

/// `str(value)`: what an error text shows between its quotes.
pub fn str_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
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
        Some(float) if number.is_f64() => {
            if float.fract() == 0.0 && float.abs() < 1e16 {
                format!("{float:.1}")
            } else {
                number.to_string()
            }
        }
        _ => number.to_string(),
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
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Reads a Python literal (dictionary, list, tuple, text, number, `True`, `False`, `None`), or the JSON that
/// looks like one (`true`, `false`, `null` besides).
///
/// # Errors
/// What is wrong, for an error text: it is no such literal, goes on after its end, or is nested too deeply.
pub fn parse_literal(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        depth: 0,
    };
    let value = reader.value()?;
    reader.skip_blank();
    if reader.at < reader.chars.len() {
        return Err(reader.unexpected());
    }
    Ok(value)
}

/// Deeper nesting than any label has; keeps hostile input from exhausting the stack.
const MAX_DEPTH: usize = 32;

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blank();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += 1;
        }
        found
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            Some(c) => format!("unexpected '{c}' at character {}", self.at + 1),
            None => "the value ends too early".to_owned(),
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        self.skip_blank();
        match self.peek() {
            Some('{') => self.nested(Self::dictionary),
            Some('[') => self.nested(|reader| reader.sequence(']')),
            Some('(') => self.nested(|reader| reader.sequence(')')),
            Some('\'' | '"') => self.text().map(Value::String),
            Some(c) if c.is_ascii_digit() || c == '-' || c == '+' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.word(),
            _ => Err(self.unexpected()),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn dictionary(&mut self) -> Result<Value, String> {
        let mut map = Map::new();
        while !self.take('}') {
            let key = match self.value()? {
                Value::String(key) => key,
                other => return Err(format!("a key must be a text, not {}", repr(&other))),
            };
            if !self.take(':') {
                return Err(self.unexpected());
            }
            let value = self.value()?;
            map.insert(key, value);
            if !self.take(',') {
                if self.take('}') {
                    break;
                }
                return Err(self.unexpected());
            }
        }
        Ok(Value::Object(map))
    }

    fn sequence(&mut self, end: char) -> Result<Value, String> {
        let mut items = Vec::new();
        while !self.take(end) {
            items.push(self.value()?);
            if !self.take(',') {
                if self.take(end) {
                    break;
                }
                return Err(self.unexpected());
            }
        }
        Ok(Value::Array(items))
    }

    fn text(&mut self) -> Result<String, String> {
        let quote = self.peek();
        self.at += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if Some(c) == quote {
                return Ok(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            let Some(escaped) = self.peek() else { break };
            self.at += 1;
            match escaped {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'x' => out.push(self.code_point(2)?),
                'u' => out.push(self.code_point(4)?),
                other => out.push(other),
            }
        }
        Err("a text is never closed".to_owned())
    }

    fn code_point(&mut self, digits: usize) -> Result<char, String> {
        let digits: String = self.chars.iter().skip(self.at).take(digits).collect();
        self.at += digits.chars().count();
        u32::from_str_radix(&digits, 16)
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| format!("'{digits}' is no character code"))
    }

    fn number(&mut self) -> Result<Value, String> {
        let text = self.run(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let text = text.strip_prefix('+').unwrap_or(&text);
        if let Ok(integer) = text.parse::<i64>() {
            return Ok(integer.into());
        }
        text.parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("'{text}' is no number"))
    }

    fn word(&mut self) -> Result<Value, String> {
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        match word.as_str() {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" | "null" => Ok(Value::Null),
            _ => Err(format!("'{word}' is neither a value nor quoted")),
        }
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }
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
        assert_eq!(str_of(&json!(null)), "None");
    }

    #[test]
    fn literals_of_python_and_of_json_are_read() {
        assert_eq!(
            parse_literal("{'a': 'b', 'n': 1,}"),
            Ok(json!({"a": "b", "n": 1}))
        );
        assert_eq!(
            parse_literal(r#"{"a": true, "b": None}"#),
            Ok(json!({"a": true, "b": null}))
        );
        assert_eq!(parse_literal("(1, -2.5, 'x\\'y')"), Ok(json!([1, -2.5, "x'y"])));
        assert_eq!(parse_literal(" {} "), Ok(json!({})));
    }

    #[test]
    fn invalid_literal_is_refused_without_a_panic() {
        for text in [
            "",
            "boom(",
            "{'a'",
            "{'a': }",
            "[1",
            "'open",
            "1 2",
            "{1: 2}",
            "'\\x",
            "'\\uzzzz'",
            "--1",
        ] {
            assert!(parse_literal(text).is_err(), "{text}");
        }
        assert!(parse_literal(&"[".repeat(10_000)).is_err());
    }
}
