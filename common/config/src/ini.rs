//! The lines of a configuration file.
//!
//! Reads sections, `key = value` or `key: value` (whichever sign comes first), comments with `#` or `;` at the
//! start of a line, and continuation lines, which are indented and end at a blank line. It knows nothing of
//! options: repeated keys stay repeated, and substitution comes later.
//!
//! A wrong line is reported and skipped, so that one run finds all of them. Messages never quote a line, since
//! it could hold a password.

use std::path::PathBuf;
use std::sync::Arc;

use super::problem::{Place, Problem};

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its section: `DEFAULT`, or the name in small letters (oslo ignores the case of section names).
    pub(super) section: String,
    /// Its key, with `_` for `-`.
    pub(super) name: String,
    /// Its value; continuation lines are joined by line feeds.
    pub(super) value: String,
    /// Which of the files it is from; later files win.
    pub(super) file: usize,
    /// Where it starts.
    pub(super) place: Place,
}

/// The name under which a section is known.
pub(super) fn section_name(written: &str) -> String {
    if written.eq_ignore_ascii_case("DEFAULT") {
        "DEFAULT".to_owned()
    } else {
        written.to_lowercase()
    }
}

/// Reads the text of file number `file`.
pub(super) fn parse(text: &str, path: &Arc<PathBuf>, file: usize) -> (Vec<Entry>, Vec<Problem>) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut problems = Vec::new();
    let mut section: Option<String> = None;
    let mut previous = Previous::None;
    // A byte order mark is what some editors put before the first section.
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let place = Place::Line(Arc::clone(path), index + 1);
        let mut wrong = |message: &str| {
            problems.push(Problem {
                place: place.clone(),
                message: message.to_owned(),
            })
        };
        let line = line.trim_end();
        if line.is_empty() {
            previous = Previous::None;
        } else if line.starts_with([' ', '\t']) {
            match (&previous, entries.last_mut()) {
                (Previous::Entry, Some(entry)) => {
                    entry.value.push('\n');
                    entry.value.push_str(line.trim_start());
                }
                (Previous::Wrong, _) => {}
                _ => wrong(
                    "an indented line continues the option above it, and there is none; remove the indentation",
                ),
            }
        } else if line.starts_with(['#', ';']) {
            previous = Previous::None;
        } else if let Some(header) = line.strip_prefix('[') {
            previous = Previous::None;
            match header.strip_suffix(']') {
                Some("") => wrong("a section needs a name between its brackets"),
                Some(name) => section = Some(section_name(name)),
                None => wrong("a section line must end with `]`"),
            }
        } else {
            previous = Previous::Wrong;
            match (line.split_once(['=', ':']), &section) {
                (None, _) => wrong("no `=` or `:`; write `option = value`"),
                (Some((key, _)), _) if key.trim().is_empty() => wrong("no option name before the `=` or `:`"),
                (_, None) => wrong("an option before the first section; put it under [DEFAULT]"),
                (Some((key, value)), Some(section)) => {
                    previous = Previous::Entry;
                    entries.push(Entry {
                        section: section.clone(),
                        name: key.trim().replace('-', "_"),
                        value: value.trim().to_owned(),
                        file,
                        place,
                    });
                }
            }
        }
    }
    (entries, problems)
}

/// What a continuation line would continue.
enum Previous {
    None,
    Entry,
    /// An assignment already reported: its continuation lines are not reported again.
    Wrong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String, String)>, Vec<String>) {
        let (entries, problems) = parse(text, &Arc::new(PathBuf::from("m.conf")), 0);
        (
            entries
                .into_iter()
                .map(|e| (e.section, e.name, e.value))
                .collect(),
            problems.into_iter().map(|p| p.to_string()).collect(),
        )
    }

    fn entry(section: &str, name: &str, value: &str) -> (String, String, String) {
        (section.into(), name.into(), value.into())
    }

    #[test]
    fn both_signs_assign_and_the_first_one_counts() {
        let (entries, problems) = read("[DEFAULT]\na = b:c\nd: e=f\nempty =\n");
        assert_eq!(
            entries,
            [
                entry("DEFAULT", "a", "b:c"),
                entry("DEFAULT", "d", "e=f"),
                entry("DEFAULT", "empty", "")
            ]
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn indented_lines_continue_until_a_blank_line() {
        let (entries, problems) = read("[a]\nk = 1,\n  2,\n\t# 3\n\n  4\n");
        assert_eq!(entries, [entry("a", "k", "1,\n2,\n# 3")]);
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].starts_with("m.conf:6: an indented line"),
            "{problems:?}"
        );
    }

    #[test]
    fn comments_need_the_first_column_and_dashes_become_underscores() {
        let (entries, _) = read("\u{feff}[Default]\n# c\n; c\nlog-dir = /x # not a comment\n[API]\nport=1");
        assert_eq!(
            entries,
            [
                entry("DEFAULT", "log_dir", "/x # not a comment"),
                entry("api", "port", "1")
            ]
        );
    }

    #[test]
    fn every_wrong_line_is_reported_with_its_number() {
        let (entries, problems) = read("k = 1\n[a\n[]\n[a]\nnothing\n   more\n= 2\nk = 3");
        assert_eq!(entries, [entry("a", "k", "3")]);
        let lines: Vec<_> = problems
            .iter()
            .map(|p| p.split(": ").next().unwrap_or_default())
            .collect();
        assert_eq!(
            lines,
            ["m.conf:1", "m.conf:2", "m.conf:3", "m.conf:5", "m.conf:7"]
        );
    }
}
