//! A policy file's text, read into rules with the lines they stand on.
//!
//! YAML, of which JSON is a part: one mapping from rule names to texts, or to lists in the old form. Whatever else
//! YAML can say (tags, anchors, several documents) is refused: a rule has to be read the same way by everybody. So is
//! a rule without a value, and `!` without quotes, which YAML takes for an empty text: both mean "everybody" to
//! oslo.policy, and nobody writes them to say that.

use std::path::PathBuf;
use std::sync::Arc;

use magnum_config::{Place, Problem};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::check::Check;
use super::parse;

/// One rule of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The parsed check.
    pub check: Check,
    /// File and line.
    pub place: Place,
}

/// Largest file that is read, in bytes. Nobody's rules are as long.
pub const LARGEST: u64 = 4 << 20;

/// Reads a file's text. All rules that are wrong are told at once; of a file that is no YAML, the first mistake.
///
/// # Errors
/// What is wrong, each with its line.
pub fn read(path: &Arc<PathBuf>, text: &str) -> Result<Vec<Entry>, Vec<Problem>> {
    let mut reader = Reader {
        path: Arc::clone(path),
        events: Parser::new_from_str(text),
        entries: Vec::new(),
        problems: Vec::new(),
    };
    if let Err(problem) = reader.document() {
        reader.problems.push(problem);
    }
    if reader.problems.is_empty() {
        Ok(reader.entries)
    } else {
        Err(reader.problems)
    }
}

struct Reader<'t> {
    path: Arc<PathBuf>,
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
}

/// A rule's value.
enum Written {
    Text(String),
    Rows(Vec<Vec<String>>),
}

impl<'t> Reader<'t> {
    fn problem(&self, line: usize, message: impl Into<String>) -> Problem {
        Problem {
            place: Place::Line(Arc::clone(&self.path), line),
            message: message.into(),
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, usize), Problem> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                let line = line_of(&span);
                self.refuse_extras(&event, line)?;
                Ok((event, line))
            }
            Some(Err(error)) => {
                let line = error.marker().line();
                Err(self.problem(line, format!("is not valid YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    fn refuse_extras(&self, event: &Event<'_>, line: usize) -> Result<(), Problem> {
        let (anchor, tagged) = match event {
            Event::Alias(_) => {
                return Err(self.problem(line, "an alias (*name) cannot be used in a policy file"));
            }
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            return Err(self.problem(line, "an anchor (&name) cannot be used in a policy file"));
        }
        if tagged {
            return Err(self.problem(
                line,
                "an exclamation mark outside of quotes is a YAML tag; a rule that nobody passes is written \"!\"",
            ));
        }
        Ok(())
    }

    fn document(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                // Nothing but comments.
                (Event::StreamEnd, _) => return Ok(()),
                (Event::Scalar(text, ScalarStyle::Plain, ..), _) if matches!(&*text, "" | "~" | "null") => {
                    return self.end();
                }
                (Event::MappingStart(..), _) => {
                    self.mapping()?;
                    return self.end();
                }
                (_, line) => {
                    return Err(self.problem(line, "must be a mapping from rule names to rules"));
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), line) => {
                    return Err(
                        self.problem(line, "a policy file is one YAML document, without a second '---'")
                    );
                }
                _ => {}
            }
        }
    }

    fn mapping(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                (Event::MappingEnd, _) => return Ok(()),
                (Event::Scalar(name, ..), line) => {
                    let name = name.into_owned();
                    match self.value(&name)? {
                        Ok(check) => {
                            let place = Place::Line(Arc::clone(&self.path), line);
                            self.entries.push(Entry { name, check, place });
                        }
                        Err(why) => {
                            let problem = self.problem(line, format!("rule \"{name}\": {why}"));
                            self.problems.push(problem);
                        }
                    }
                }
                (_, line) => return Err(self.problem(line, "a rule's name must be a text")),
            }
        }
    }

    /// The value of a rule: outside what stops the reading, inside what is wrong with the rule.
    fn value(&mut self, name: &str) -> Result<Result<Check, String>, Problem> {
        let written = match self.next()? {
            (Event::Scalar(text, ScalarStyle::Plain, ..), _) if matches!(&*text, "" | "~" | "null") => {
                return Ok(Err(
                    "has no value; a rule that everybody passes is written \"@\"".to_owned()
                ));
            }
            (Event::Scalar(text, ..), _) => Written::Text(text.into_owned()),
            (Event::SequenceStart(..), _) => Written::Rows(self.rows(name)?),
            (_, line) => {
                return Err(self.problem(line, format!("rule \"{name}\" must be a text or a list of lists")));
            }
        };
        Ok(match written {
            Written::Text(text) => parse::rule(&text),
            Written::Rows(rows) => parse::list_rule(&rows),
        })
    }

    fn rows(&mut self, name: &str) -> Result<Vec<Vec<String>>, Problem> {
        let mut rows = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(rows),
                // oslo.policy passes over an empty text as over an empty list.
                (Event::Scalar(text, ..), _) if text.is_empty() => rows.push(Vec::new()),
                (Event::Scalar(text, ..), _) => rows.push(vec![text.into_owned()]),
                (Event::SequenceStart(..), _) => rows.push(self.row(name)?),
                (_, line) => return Err(self.not_a_list(name, line)),
            }
        }
    }

    fn row(&mut self, name: &str) -> Result<Vec<String>, Problem> {
        let mut row = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(row),
                (Event::Scalar(text, ..), _) => row.push(text.into_owned()),
                (_, line) => return Err(self.not_a_list(name, line)),
            }
        }
    }

    fn not_a_list(&self, name: &str, line: usize) -> Problem {
        self.problem(
            line,
            format!("rule \"{name}\": a list holds checks, or lists of checks, and nothing else"),
        )
    }
}

fn line_of(span: &Span) -> usize {
    span.start.line()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(String, String, usize)> {
        read(&Arc::new("policy.yaml".into()), text)
            .unwrap()
            .into_iter()
            .map(|entry| {
                let Place::Line(_, line) = entry.place else {
                    unreachable!()
                };
                (entry.name, entry.check.to_string(), line)
            })
            .collect()
    }

    fn told(text: &str) -> String {
        let problems = read(&Arc::new("policy.yaml".into()), text).unwrap_err();
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "# mine\n\"cluster:get\": role:reader  # note\nmine: >\n  role:a\n  or role:b\n'cluster:delete': \"!\"\n";
        let json = "{\n\t\"cluster:get\": \"role:reader\",\n \"mine\": \"role:a or role:b\",\n \"cluster:delete\": \"!\"}";
        let names = |text| {
            entries(text)
                .into_iter()
                .map(|(name, check, _)| (name, check))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(yaml), names(json));
        assert_eq!(entries(yaml)[2], ("cluster:delete".to_owned(), "!".to_owned(), 6));
    }

    #[test]
    fn the_old_form_is_read() {
        let text = "a: [[role:x, role:y], [], \"\", role:z]\nb: []\nc: [[]]\nd: \"\"\n";
        let checks: Vec<String> = entries(text).into_iter().map(|(_, check, _)| check).collect();
        assert_eq!(checks, ["((role:x and role:y) or role:z)", "@", "!", "@"]);
    }

    #[test]
    fn a_file_of_comments_changes_nothing() {
        for text in ["", "# a\n", "---\n", "{}", "null\n", "# x\n---\n# y\n"] {
            assert_eq!(entries(text), [], "{text:?}");
        }
    }

    #[test]
    fn mistake_is_reported_by_file_line_and_rule() {
        for (text, wanted) in [
            (
                "a: role:b\nb: role:c or\n",
                "policy.yaml:2: rule \"b\": a check is missing at its end",
            ),
            ("a: yes\n", "policy.yaml:1: rule \"a\": 'yes' is no check"),
            ("a:\n", "policy.yaml:1: rule \"a\": has no value"),
            ("a: null\n", "has no value"),
            (
                "\n\na: !\n",
                "policy.yaml:3: an exclamation mark outside of quotes",
            ),
            ("a: @\n", "policy.yaml:1: is not valid YAML"),
            ("- a\n", "must be a mapping"),
            ("a\n", "must be a mapping"),
            ("a: {b: c}\n", "rule \"a\" must be a text or a list"),
            ("a: [{b: c}]\n", "rule \"a\": a list holds checks"),
            ("a: &x role:b\n", "an anchor"),
            ("a: *x\n", "policy.yaml:1: "),
            (
                "a: role:b\n---\nb: role:c\n",
                "policy.yaml:2: a policy file is one YAML document",
            ),
            ("[a]: b\n", "a rule's name must be a text"),
        ] {
            assert!(told(text).contains(wanted), "{text:?}: {}", told(text));
        }
    }

    #[test]
    fn all_wrong_rules_are_reported_at_once() {
        let told = told("a: x\nb: role:c\nc: y\n");
        assert_eq!(told.lines().count(), 2, "{told}");
    }

    #[test]
    fn deep_lists_are_refused_and_not_followed() {
        let told = told(&format!("a: {}", "[".repeat(100_000)));
        assert!(told.contains("policy.yaml:1: "), "{told}");
    }
}
