//! oslo.policy's check language.
//!
//! ```text
//! rule   = "" | any
//! any    = all { "or" all }
//! all    = one { "and" one }
//! one    = "not" one | "(" any ")" | check
//! check  = "@" | "!" | kind ":" value
//! ```
//!
//! Words are separated by white space; parentheses may touch a word; `and`, `or` and `not` in any case. A check has
//! no white space in it, not even between quotes. Besides, a list means "or" and a list inside of it "and": the old
//! form.
//!
//! What oslo.policy logs and then counts as "nobody" (text that does not parse, a word without a colon), or raises an
//! exception for at the first request (`%(x` without its end, a kind that Python cannot read), is an error here: a
//! rule that its author did not mean must not be found out by the users. Two things that it does have no place here:
//! remote checks (`http:`, `https:`) and checks of installed Python packages.

use super::check::{Check, Part, Template};

/// How deep parentheses and negations may nest.
const DEPTH: usize = 64;

/// Reads a rule in words.
///
/// # Errors
/// What is wrong, as a sentence for the operator.
pub fn rule(text: &str) -> Result<Check, String> {
    if text.is_empty() {
        return Ok(Check::Always);
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    let check = parser.any()?;
    match parser.tokens.get(parser.next) {
        None => Ok(check),
        Some(Token::Close) => Err("a ')' has no '('".to_owned()),
        Some(token) => Err(format!("'and' or 'or' is missing before {}", token.shown())),
    }
}

/// Reads a rule in the form of lists: each a list of checks that must all hold, or one check.
///
/// # Errors
/// What is wrong, as a sentence for the operator.
pub fn list_rule(rows: &[Vec<String>]) -> Result<Check, String> {
    if rows.is_empty() {
        return Ok(Check::Always);
    }
    let mut any = Vec::new();
    for row in rows.iter().filter(|row| !row.is_empty()) {
        let checks: Vec<Check> = row.iter().map(|text| listed(text)).collect::<Result<_, _>>()?;
        any.push(joined(checks, Check::All));
    }
    Ok(if any.is_empty() {
        Check::Never
    } else {
        joined(any, Check::Any)
    })
}

fn listed(text: &str) -> Result<Check, String> {
    if text.contains(char::is_whitespace) {
        return Err(format!(
            "{text:?} in a list must be a single check; 'and' and 'or' belong into a rule that is one text"
        ));
    }
    check(text)
}

fn joined(mut checks: Vec<Check>, join: fn(Vec<Check>) -> Check) -> Check {
    match (checks.pop(), checks.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            checks.push(last);
            join(checks)
        }
        (None, _) => join(checks),
    }
}

#[derive(Debug)]
enum Token {
    And,
    Or,
    Not,
    Open,
    Close,
    Check(Check),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::And => "'and'".to_owned(),
            Self::Or => "'or'".to_owned(),
            Self::Not => "'not'".to_owned(),
            Self::Open => "'('".to_owned(),
            Self::Close => "')'".to_owned(),
            Self::Check(check) => format!("'{check}'"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let opened = word.trim_start_matches('(');
        found.extend((opened.len()..word.len()).map(|_| Token::Open));
        let bare = opened.trim_end_matches(')');
        if !bare.is_empty() {
            found.push(match bare.to_ascii_lowercase().as_str() {
                "and" => Token::And,
                "or" => Token::Or,
                "not" => Token::Not,
                _ => Token::Check(check(bare)?),
            });
        }
        found.extend((bare.len()..opened.len()).map(|_| Token::Close));
    }
    Ok(found)
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn eat(&mut self, wanted: fn(&Token) -> bool) -> bool {
        let is_next = self.tokens.get(self.next).is_some_and(wanted);
        self.next += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<Check, String> {
        let mut checks = vec![self.all()?];
        while self.eat(|token| matches!(token, Token::Or)) {
            checks.push(self.all()?);
        }
        Ok(joined(checks, Check::Any))
    }

    fn all(&mut self) -> Result<Check, String> {
        let mut checks = vec![self.one()?];
        while self.eat(|token| matches!(token, Token::And)) {
            checks.push(self.one()?);
        }
        Ok(joined(checks, Check::All))
    }

    fn one(&mut self) -> Result<Check, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("is nested more than {DEPTH} levels deep"));
        }
        let at = self.next;
        self.next += 1;
        let check = match self.tokens.get(at) {
            Some(Token::Not) => Check::Not(Box::new(self.one()?)),
            Some(Token::Open) => {
                let inside = self.any()?;
                if !self.eat(|token| matches!(token, Token::Close)) {
                    return Err("a ')' is missing".to_owned());
                }
                inside
            }
            Some(Token::Check(check)) => check.clone(),
            Some(token) => return Err(format!("a check is missing before {}", token.shown())),
            None => return Err("a check is missing at its end".to_owned()),
        };
        self.depth -= 1;
        Ok(check)
    }
}

/// One check, without white space in it.
fn check(text: &str) -> Result<Check, String> {
    match text {
        "@" => return Ok(Check::Always),
        "!" => return Ok(Check::Never),
        _ => {}
    }
    let Some((kind, value)) = text.split_once(':') else {
        return Err(format!(
            "'{text}' is no check: it has no ':' (a check is kind:value, '@' or '!')"
        ));
    };
    match kind {
        "rule" => Ok(Check::Rule(value.to_owned())),
        "role" => Ok(Check::Role(template(value)?)),
        "http" | "https" => Err(format!(
            "'{text}' asks a remote server, which is not supported: decide by roles and attributes"
        )),
        _ => {
            let value = template(value)?;
            match literal(kind)? {
                Some(literal) => Ok(Check::Literal(literal, value)),
                None => Ok(Check::Attribute(attribute(kind, text)?, value)),
            }
        }
    }
}

/// A kind that is a value of its own: a quoted text, a whole number, or a word for a constant of Python's.
fn literal(kind: &str) -> Result<Option<String>, String> {
    if matches!(kind, "True" | "False" | "None") {
        return Ok(Some(kind.to_owned()));
    }
    if let Some(quote @ ('\'' | '"')) = kind.chars().next() {
        let inside = kind.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        return match inside {
            Some(inside) if !inside.contains([quote, '\\']) => Ok(Some(inside.to_owned())),
            _ => Err(format!(
                "{kind} is no text between two quotes without escapes in it"
            )),
        };
    }
    if kind.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '+') {
        return match kind.parse::<i64>() {
            Ok(number) if number.to_string() == kind => Ok(Some(kind.to_owned())),
            _ => Err(format!("{kind} is no whole number in its usual form")),
        };
    }
    Ok(None)
}

/// The path of an attribute of the caller.
fn attribute(kind: &str, text: &str) -> Result<Vec<String>, String> {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && name
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
    };
    let path: Vec<String> = kind.split('.').map(str::to_owned).collect();
    if path.iter().all(|name| is_name(name)) {
        return Ok(path);
    }
    Err(format!(
        "'{kind}' in '{text}' is neither an attribute of the caller (user_id, project_id, a.b …) nor a literal \
         ('text', 1, True)"
    ))
}

/// The right side of a check.
fn template(text: &str) -> Result<Template, String> {
    let wrong = || {
        format!("'{text}' has a '%' that does not begin %(attribute)s; a percent sign itself is written %%")
    };
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            plain.push('%');
            rest = after;
            continue;
        }
        let (name, after) = after
            .strip_prefix('(')
            .and_then(|after| after.split_once(")s"))
            .filter(|(name, _)| !name.contains(['(', ')', '%']))
            .ok_or_else(wrong)?;
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(Part::Attribute(name.to_owned()));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() || parts.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(Template(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match rule(text) {
            Ok(check) => check.to_string(),
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn not_binds_closer_than_and_and_and_closer_than_or() {
        for (text, means) in [
            ("", "@"),
            ("@", "@"),
            ("! and ! or @ and @", "((! and !) or (@ and @))"),
            ("not @ or not ! and !", "(not @ or (not ! and !))"),
            ("not (@ or !)", "not (@ or !)"),
            ("(role:a OR (rule:b)) And NOT !", "((role:a or rule:b) and not !)"),
            ("((@))", "@"),
            ("not not @", "not not @"),
            ("a.b:%(c)s-%(d)s%%", "a.b:%(c)s-%(d)s%%"),
            ("'x':%(y)s and True:%(z)s", "('x':%(y)s and True:%(z)s)"),
        ] {
            assert_eq!(shown(text), means, "{text}");
        }
    }

    #[test]
    fn the_old_form_is_a_list_of_lists() {
        let row = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["role:a", "role:b"]), row(&[]), row(&["@"])];
        assert_eq!(
            list_rule(&rows).map(|check| check.to_string()),
            Ok("((role:a and role:b) or @)".to_owned())
        );
        assert_eq!(list_rule(&[]), Ok(Check::Always));
        assert_eq!(list_rule(&[row(&[])]), Ok(Check::Never));
        assert!(list_rule(&[row(&["role:a or role:b"])]).is_err());
    }

    #[test]
    fn ambiguous_rule_is_an_error() {
        for (text, told) in [
            ("member", "'member' is no check: it has no ':'"),
            ("@ @", "'and' or 'or' is missing before '@'"),
            ("@ or", "a check is missing at its end"),
            ("and @", "a check is missing before 'and'"),
            ("(@", "a ')' is missing"),
            ("@)", "a ')' has no '('"),
            ("  ", "a check is missing at its end"),
            ("http://policy/x", "asks a remote server"),
            ("user_id:%(user_id)", "a '%' that does not begin"),
            ("user_id:%s", "a '%' that does not begin"),
            ("1a:x", "no whole number"),
            (":x", "neither an attribute"),
            ("'a:x", "no text between two quotes"),
        ] {
            assert!(shown(text).contains(told), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn endless_nesting_is_refused_and_not_followed() {
        assert!(rule(&format!("{}@{}", "(".repeat(60), ")".repeat(60))).is_ok());
        for text in ["(".repeat(100_000), "not ".repeat(100_000)] {
            assert!(shown(&text).contains("nested more than"), "{}", &text[..9]);
        }
    }
}
