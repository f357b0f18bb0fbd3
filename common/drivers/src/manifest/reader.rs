//! Reads typed values out of a parsed TOML table and collects what is wrong, with lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Problem;

/// The mistakes found so far, and the text they are in.
pub(super) struct Problems<'a> {
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    /// The line, from 1, of an offset into the text.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    pub(super) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let line = Some(self.line(offset));
        self.found.push(Problem {
            line,
            message: message.into(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them, by line; those of one line in the order they were found.
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| problem.line);
        self.found.dedup();
        self.found
    }
}

/// A value and where it stands.
pub(super) struct At<T> {
    pub(super) offset: usize,
    pub(super) value: T,
}

/// One table of the file.
pub(super) struct Section<'t> {
    /// As an author would write it: `[driver]`, `[[provides]]`.
    pub(super) title: String,
    /// Where it begins, for what is missing in it.
    pub(super) offset: usize,
    pub(super) table: &'t DeTable<'t>,
}

impl<'t> Section<'t> {
    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Reports keys that are not in `known`.
    pub(super) fn only(&self, known: &[&str], problems: &mut Problems<'_>) {
        for key in self.table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                problems.add(
                    key.span().start,
                    format!(
                        "unknown key '{}' in {}, use: {}",
                        key.get_ref(),
                        self.title,
                        known.join(", ")
                    ),
                );
            }
        }
    }

    fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'t DeValue<'t>) -> Option<T>,
        problems: &mut Problems<'_>,
    ) -> Option<At<T>> {
        let found = self.get(key)?;
        let offset = found.span().start;
        match read(found.get_ref()) {
            Some(value) => Some(At { offset, value }),
            None => {
                let given = found.get_ref().type_str();
                problems.add(
                    offset,
                    format!(
                        "'{key}' in {} must be {wanted}, not {}",
                        self.title,
                        article(given)
                    ),
                );
                None
            }
        }
    }

    /// Reports a key that is not there.
    pub(super) fn require(&self, key: &str, example: &str, problems: &mut Problems<'_>) {
        if self.get(key).is_none() {
            problems.add(
                self.offset,
                format!("'{key}' is missing in {}, for example: {example}", self.title),
            );
        }
    }

    pub(super) fn text(&self, key: &str, problems: &mut Problems<'_>) -> Option<At<String>> {
        let read = |value: &'t DeValue<'t>| value.as_str().map(str::to_owned);
        self.typed(key, "a string", read, problems)
    }

    pub(super) fn flag(&self, key: &str, problems: &mut Problems<'_>) -> Option<bool> {
        let read = |value: &'t DeValue<'t>| value.as_bool();
        self.typed(key, "true or false", read, problems)
            .map(|at| at.value)
    }

    /// A whole number of something, 1 or more; its name in singular and plural.
    pub(super) fn count(
        &self,
        key: &str,
        (one, many): (&str, &str),
        problems: &mut Problems<'_>,
    ) -> Option<u64> {
        let read = |value: &'t DeValue<'t>| {
            let number = value.as_integer()?;
            i64::from_str_radix(number.as_str(), number.radix()).ok()
        };
        let at = self.typed(key, &format!("a whole number of {many}"), read, problems)?;
        match u64::try_from(at.value) {
            Ok(count) if count >= 1 => Some(count),
            _ => {
                problems.add(
                    at.offset,
                    format!("'{key}' in {} must be 1 {one} or more", self.title),
                );
                None
            }
        }
    }

    pub(super) fn texts(&self, key: &str, problems: &mut Problems<'_>) -> Option<Vec<At<String>>> {
        let read = |value: &'t DeValue<'t>| {
            let items = value.as_array()?.iter();
            items
                .map(|item| {
                    let value = item.get_ref().as_str()?.to_owned();
                    let offset = item.span().start;
                    Some(At { offset, value })
                })
                .collect()
        };
        self.typed(key, "a list of strings", read, problems)
            .map(|at: At<Vec<At<String>>>| at.value)
    }

    /// A section `[key]` of the file.
    pub(super) fn table(&self, key: &str, problems: &mut Problems<'_>) -> Option<Section<'t>> {
        let read = |value: &'t DeValue<'t>| value.as_table();
        let at = self.typed(key, &format!("a section [{key}]"), read, problems)?;
        Some(Section {
            title: format!("[{key}]"),
            offset: self.key_offset(key).unwrap_or(at.offset),
            table: at.value,
        })
    }

    /// The sections `[[key]]` of the file.
    pub(super) fn tables(&self, key: &str, problems: &mut Problems<'_>) -> Option<Vec<Section<'t>>> {
        let read = |value: &'t DeValue<'t>| {
            let items = value.as_array()?.iter();
            items
                .map(|item| {
                    Some(Section {
                        title: format!("[[{key}]]"),
                        offset: item.span().start,
                        table: item.get_ref().as_table()?,
                    })
                })
                .collect()
        };
        self.typed(key, &format!("one or more sections [[{key}]]"), read, problems)
            .map(|at: At<Vec<Section<'t>>>| at.value)
    }

    /// Where a key stands.
    pub(super) fn key_offset(&self, key: &str) -> Option<usize> {
        self.table.get_key_value(key).map(|(key, _)| key.span().start)
    }
}

fn article(kind: &str) -> String {
    match kind.chars().next() {
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
