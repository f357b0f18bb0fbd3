//! `$name`, `${name}` and `${group.name}` in values.
//!
//! A plain name is looked up in the option's own section, then in `[DEFAULT]`; what it refers to is substituted
//! in its turn, whatever the order in the file. `$$` and `\$` are a literal dollar sign, and so is a `$` that no
//! name follows. An unset option gives nothing; a name that no option has is an error.
//!
//! Options that refer to each other twice each would double a text with every step; work and memory are bounded by
//! [`MOST`] and [`LONGEST`].
//!
//! Differs from oslo.config: `$a.b` where no option `b` exists in section `a` reads as `$a` and the text `.b`.

/// Most substitutions for one value, those within what is substituted included.
const MOST: usize = 1000;

/// Longest text, in bytes, that may come of substitutions; one without any may be longer.
const LONGEST: usize = 64 * 1024;

/// Finds the text of an option, not substituted yet.
pub(super) trait Lookup {
    /// The text, empty when it is known but not set; `None` when there is no such option.
    fn text(&self, section: &str, name: &str) -> Option<String>;
}

/// Why a value could not be substituted; holds a piece of the value, so it must not be shown for secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// No option has the name.
    Unknown(String),
    /// The options refer to each other in a circle.
    Circle(String),
    /// More than [`MOST`] substitutions, or more than [`LONGEST`] bytes, when it came to this name.
    TooMuch(String),
}

impl Unresolved {
    /// The message for the operator; `secret` leaves out the piece.
    pub(super) fn message(&self, secret: bool) -> String {
        let advice = "write $$ for a literal dollar sign";
        match self {
            _ if secret => format!("has a `$` whose name cannot be resolved; {advice}"),
            Self::Unknown(name) => format!("`${name}` names no option; {advice}"),
            Self::Circle(name) => format!("`${name}` refers back to itself"),
            Self::TooMuch(name) => format!(
                "grows beyond {MOST} substitutions or {LONGEST} bytes at `${name}`; name fewer options, or {advice}"
            ),
        }
    }
}

/// Substitutes everything in a text that stands in `section`.
pub(super) fn expand(text: &str, section: &str, lookup: &dyn Lookup) -> Result<String, Unresolved> {
    expand_within(text, section, lookup, &mut State::default())
}

/// How far the substitution of one value has come.
#[derive(Default)]
struct State {
    /// The options within which it is.
    open: Vec<(String, String)>,
    /// Substitutions so far.
    made: usize,
}

fn expand_within(
    text: &str,
    section: &str,
    lookup: &dyn Lookup,
    state: &mut State,
) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        if let Some(before) = before.strip_suffix('\\') {
            out.push_str(before);
            out.push('$');
            rest = after;
            continue;
        }
        out.push_str(before);
        rest = match reference(after) {
            Reference::Literal(skip) => {
                out.push('$');
                &after[skip..]
            }
            Reference::Braced(name, end) => {
                let (section, name) =
                    resolve(name, section, lookup).ok_or_else(|| Unresolved::Unknown(name.into()))?;
                append(&mut out, &section, &name, lookup, state)?;
                &after[end..]
            }
            Reference::Plain(name) => {
                let short = name.split('.').next().unwrap_or(name);
                let (found, end) = match resolve(name, section, lookup) {
                    Some(found) => (found, name.len()),
                    None => (
                        resolve(short, section, lookup).ok_or_else(|| Unresolved::Unknown(name.into()))?,
                        short.len(),
                    ),
                };
                append(&mut out, &found.0, &found.1, lookup, state)?;
                &after[end..]
            }
        };
    }
    out.push_str(rest);
    Ok(out)
}

/// Appends the value of an option that exists, substituted in its own section.
fn append(
    out: &mut String,
    section: &str,
    name: &str,
    lookup: &dyn Lookup,
    state: &mut State,
) -> Result<(), Unresolved> {
    let key = (section.to_owned(), name.to_owned());
    if state.open.contains(&key) {
        return Err(Unresolved::Circle(name.to_owned()));
    }
    state.made += 1;
    let text = lookup.text(section, name).unwrap_or_default();
    if state.made > MOST || text.len() > LONGEST {
        return Err(Unresolved::TooMuch(name.to_owned()));
    }
    state.open.push(key);
    let expanded = expand_within(&text, section, lookup, state)?;
    state.open.pop();
    if out.len() + expanded.len() > LONGEST {
        return Err(Unresolved::TooMuch(name.to_owned()));
    }
    out.push_str(&expanded);
    Ok(())
}

/// Which option a written name means.
fn resolve(written: &str, section: &str, lookup: &dyn Lookup) -> Option<(String, String)> {
    let candidates = match written.split_once('.') {
        Some((group, name)) => vec![(group, name)],
        None => vec![(section, written), ("DEFAULT", written)],
    };
    let exists = |(section, name): &(&str, &str)| lookup.text(section, name).is_some();
    candidates
        .into_iter()
        .find(exists)
        .map(|(section, name)| (section.to_owned(), name.to_owned()))
}

/// What follows a dollar sign.
enum Reference<'a> {
    /// No reference: a literal dollar sign, and that many more bytes belong to it.
    Literal(usize),
    /// `{name}`, and where it ends.
    Braced(&'a str, usize),
    /// `name`.
    Plain(&'a str),
}

fn reference(after: &str) -> Reference<'_> {
    if after.starts_with('$') {
        return Reference::Literal(1);
    }
    if let Some(inner) = after.strip_prefix('{') {
        let name = identifier(inner);
        return match inner[name.len()..].starts_with('}') && !name.is_empty() {
            true => Reference::Braced(name, name.len() + 2),
            false => Reference::Literal(0),
        };
    }
    match identifier(after) {
        "" => Reference::Literal(0),
        name => Reference::Plain(name),
    }
}

/// The longest identifier at the start of the text: a letter or `_`, then also digits and dots.
fn identifier(text: &str) -> &str {
    let part = |(index, c): &(usize, char)| {
        c.is_ascii_alphabetic() || *c == '_' || (*index > 0 && (c.is_ascii_digit() || *c == '.'))
    };
    let length = text
        .char_indices()
        .take_while(part)
        .map(|(index, c)| index + c.len_utf8())
        .last();
    &text[..length.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Options(&'static [(&'static str, &'static str, &'static str)]);

    impl Lookup for Options {
        fn text(&self, section: &str, name: &str) -> Option<String> {
            self.0
                .iter()
                .find(|(s, n, _)| *s == section && *n == name)
                .map(|(_, _, text)| (*text).to_owned())
        }
    }

    const OPTIONS: Options = Options(&[
        ("DEFAULT", "state_path", "/var/lib/magnum"),
        ("DEFAULT", "a", "$b"),
        ("DEFAULT", "b", "x$a"),
        ("DEFAULT", "empty", ""),
        ("conductor", "topic", "magnum-conductor"),
        ("conductor", "nested", "$state_path/$topic"),
    ]);

    fn expanded(text: &str) -> Result<String, Unresolved> {
        expand(text, "conductor", &OPTIONS)
    }

    #[test]
    fn names_resolve_in_the_own_section_then_in_default() {
        assert_eq!(
            expanded("$topic:$state_path").unwrap(),
            "magnum-conductor:/var/lib/magnum"
        );
        assert_eq!(
            expand("${conductor.nested}/x", "api", &OPTIONS).unwrap(),
            "/var/lib/magnum/magnum-conductor/x"
        );
        assert_eq!(expanded("[${empty}]").unwrap(), "[]");
    }

    #[test]
    fn a_dotted_name_that_is_no_option_ends_at_the_dot() {
        assert_eq!(
            expanded("$topic.dead and ${topic}.x").unwrap(),
            "magnum-conductor.dead and magnum-conductor.x"
        );
    }

    #[test]
    fn dollars_can_be_escaped_or_stand_alone() {
        assert_eq!(
            expanded(r"a$$b \$c $ 5$ ${ $1 ä$").unwrap(),
            "a$b $c $ 5$ ${ $1 ä$"
        );
    }

    #[test]
    fn unknown_names_and_circles_are_errors_that_hide_secrets() {
        let error = expanded("pa$word").unwrap_err();
        assert!(error.message(false).contains("`$word` names no option"));
        assert!(!error.message(true).contains("word`"));
        assert_eq!(expanded("$a"), Err(Unresolved::Circle("a".into())));
    }

    /// A hundred options in a row, each naming the one before twice.
    struct Doubling(&'static str);

    impl Lookup for Doubling {
        fn text(&self, _: &str, name: &str) -> Option<String> {
            match name.strip_prefix('o')?.parse::<u32>().ok()? {
                0 => Some(self.0.to_owned()),
                number @ 1..100 => Some(format!("$o{0}$o{0}", number - 1)),
                _ => None,
            }
        }
    }

    #[test]
    fn options_that_double_a_text_are_stopped_and_the_last_one_is_named() {
        // An empty text does not grow, but the work does.
        for text in ["0123456789", ""] {
            assert!(matches!(
                expand("$o99", "x", &Doubling(text)),
                Err(Unresolved::TooMuch(_))
            ));
        }
        assert_eq!(expand("$o3", "x", &Doubling("ab")).unwrap(), "ab".repeat(8));
        let long: &'static str = "x".repeat(LONGEST).leak();
        assert_eq!(expand("$o0", "x", &Doubling(long)).unwrap().len(), LONGEST);
        let error = expand("$o1", "x", &Doubling(long)).unwrap_err();
        assert!(error.message(false).contains("`$o0`"), "{error:?}");
        assert!(!error.message(true).contains("o0"));
    }
}
