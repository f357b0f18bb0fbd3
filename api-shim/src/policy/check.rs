//! One rule's expression as a tree, and its evaluation.
//!
//! Guarantees: evaluating never fails and never panics. What a rule asks for and the caller or the target does not
//! have makes that check false, as in oslo.policy. How deep references between rules may go is decided when the rules
//! are put together ([`super::rules`]), so evaluation needs no limit of its own.

use std::borrow::Cow;
use std::fmt;

use magnum_common::context::RequestContext;
use serde_json::Value;

use super::target::Target;
use crate::validation::python::str_of;

/// A rule's expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// `@`, or an empty rule.
    Always,
    /// `!`
    Never,
    /// `not …`
    Not(Box<Self>),
    /// `… and …`: two or more.
    All(Vec<Self>),
    /// `… or …`: two or more.
    Any(Vec<Self>),
    /// `rule:name`: what another rule says.
    Rule(String),
    /// `role:name`: the caller has the role, in any case of letters.
    Role(Template),
    /// `attribute:value`, or `a.b:value` for what is inside of an attribute of the caller.
    Attribute(Vec<String>, Template),
    /// `'literal':value`, where `value` is of the target; the literal as Python prints it.
    Literal(String, Template),
}

/// The right side of a check: text with `%(attribute)s` of the target in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(pub(super) Vec<Part>);

/// A piece of a [`Template`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// A literal text.
    Text(String),
    /// The target's attribute of this name.
    Attribute(String),
}

impl Template {
    /// The text for this target; `None` when the target lacks an attribute.
    fn fill<'s>(&'s self, target: &'s Target<'_>) -> Option<Cow<'s, str>> {
        if let [part] = self.0.as_slice() {
            return part.fill(target);
        }
        let mut filled = String::new();
        for part in &self.0 {
            filled.push_str(&part.fill(target)?);
        }
        Some(Cow::Owned(filled))
    }
}

impl Part {
    fn fill<'s>(&'s self, target: &'s Target<'_>) -> Option<Cow<'s, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Attribute(name) => target.attribute(name),
        }
    }
}

/// Resolves `rule:name`.
pub(super) trait Rules {
    /// The rule of this name, or what holds in its place; `None` refuses.
    fn find(&self, name: &str) -> Option<&Check>;
}

impl Check {
    /// Whether the caller passes.
    pub(super) fn holds(&self, caller: &RequestContext, target: &Target<'_>, rules: &impl Rules) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Not(check) => !check.holds(caller, target, rules),
            Self::All(checks) => checks.iter().all(|check| check.holds(caller, target, rules)),
            Self::Any(checks) => checks.iter().any(|check| check.holds(caller, target, rules)),
            Self::Rule(name) => rules
                .find(name)
                .is_some_and(|check| check.holds(caller, target, rules)),
            Self::Role(name) => name.fill(target).is_some_and(|name| has_role(caller, &name)),
            Self::Literal(text, value) => value.fill(target).is_some_and(|value| value == *text),
            Self::Attribute(path, value) => value.fill(target).is_some_and(|value| {
                let (name, inside) = path
                    .split_first()
                    .map_or(("", path.as_slice()), |(name, rest)| (name.as_str(), rest));
                caller
                    .get(name)
                    .is_some_and(|found| any_holds(&found, inside, &value))
            }),
        }
    }

    /// The rules that this one refers to.
    pub(super) fn references(&self) -> Vec<&str> {
        match self {
            Self::Rule(name) => vec![name],
            Self::Not(check) => check.references(),
            Self::All(checks) | Self::Any(checks) => checks.iter().flat_map(Self::references).collect(),
            _ => Vec::new(),
        }
    }
}

fn has_role(caller: &RequestContext, wanted: &str) -> bool {
    // Most names are ASCII; the others compare as Python's `lower()` has them.
    if wanted.is_ascii() {
        caller.roles().any(|role| role.eq_ignore_ascii_case(wanted))
    } else {
        let wanted = wanted.to_lowercase();
        caller.roles().any(|role| role.to_lowercase() == wanted)
    }
}

/// A value, or any of a list of them.
fn any_holds(value: &Value, inside: &[String], wanted: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| holds_inside(item, inside, wanted)),
        other => holds_inside(other, inside, wanted),
    }
}

fn holds_inside(value: &Value, inside: &[String], wanted: &str) -> bool {
    match (inside.split_first(), value) {
        (None, Value::String(text)) => text == wanted,
        (None, other) => str_of(other) == wanted,
        (Some((name, rest)), _) => value
            .get(name)
            .is_some_and(|found| any_holds(found, rest, wanted)),
    }
}

/// As oslo.policy prints a rule: the same text for rules that mean the same by their form.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, checks: &[Self], word: &str| {
            f.write_str("(")?;
            for (number, check) in checks.iter().enumerate() {
                if number > 0 {
                    write!(f, " {word} ")?;
                }
                check.fmt(f)?;
            }
            f.write_str(")")
        };
        match self {
            Self::Always => f.write_str("@"),
            Self::Never => f.write_str("!"),
            Self::Not(check) => write!(f, "not {check}"),
            Self::All(checks) => joined(f, checks, "and"),
            Self::Any(checks) => joined(f, checks, "or"),
            Self::Rule(name) => write!(f, "rule:{name}"),
            Self::Role(name) => write!(f, "role:{name}"),
            Self::Attribute(path, value) => write!(f, "{}:{value}", path.join(".")),
            Self::Literal(text, value) if is_bare(text) => write!(f, "{text}:{value}"),
            Self::Literal(text, value) => write!(f, "'{text}':{value}"),
        }
    }
}

/// Whether a literal is written without quotes.
fn is_bare(text: &str) -> bool {
    matches!(text, "True" | "False" | "None") || text.parse::<i64>().is_ok()
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(&text.replace('%', "%%"))?,
                Part::Attribute(name) => write!(f, "%({name})s")?,
            }
        }
        Ok(())
    }
}
