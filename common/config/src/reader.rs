//! Finding each option's text, with where it was written.
//!
//! For one option the environment wins over the files, a later file over an earlier one, a later line over an
//! earlier one, and within one file the current name over a deprecated one. Repeatable options collect all
//! lines instead. What was looked up is remembered, so that what nobody looked up can be reported.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::ini::Entry;
use super::known;
use super::option_spec::{DefaultText, Key, OptionSpec};
use super::problem::{Place, Problem};
use super::substitute::{self, Lookup};
use super::value::{Codec, unquoted};

/// Where values come from.
#[derive(Default)]
pub(super) struct Sources {
    /// The lines of all files, in the order of precedence.
    pub(super) entries: Vec<Entry>,
    /// The process environment.
    pub(super) environment: BTreeMap<String, String>,
}

/// Reads options from sources, collecting what is wrong.
pub struct Reader<'a> {
    sources: &'a Sources,
    specs: &'a BTreeMap<Key, OptionSpec>,
    places: BTreeMap<Key, Place>,
    problems: Vec<Problem>,
    warnings: BTreeSet<Problem>,
}

/// What a reader leaves behind.
pub(super) struct Findings {
    pub(super) places: BTreeMap<Key, Place>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sources: &'a Sources, specs: &'a BTreeMap<Key, OptionSpec>) -> Self {
        Self {
            sources,
            specs,
            places: BTreeMap::new(),
            problems: Vec::new(),
            warnings: BTreeSet::new(),
        }
    }

    /// Reads one option; a problem with it is noted and its default stands in.
    pub fn option<T, C: Codec<T>>(
        &mut self,
        section: &'static str,
        name: &'static str,
        default: impl Fn() -> T,
    ) -> T {
        let key = (section.to_owned(), name.to_owned());
        let Some(spec) = self.specs.get(&key) else {
            return default();
        };
        let found = self.sources.find(spec);
        for used in &found {
            if let Some(old) = &used.old {
                self.warnings.insert(Problem {
                    place: used.place.clone(),
                    message: format!("{old} is deprecated; use [{section}] {name}"),
                });
            }
        }
        let (texts, place) = match (found.last(), &spec.default) {
            (Some(last), _) => (
                found.iter().map(|used| used.text::<T, C>()).collect(),
                last.place.clone(),
            ),
            (None, DefaultText::Template(text)) => (vec![Cow::Borrowed(*text)], Place::Default),
            (None, _) => (Vec::new(), Place::Default),
        };
        self.places.insert(key, place.clone());
        match self.value::<T, C>(section, &texts) {
            Ok(Some(value)) => value,
            Ok(None) => default(),
            Err(message) => {
                self.problems.push(Problem {
                    place,
                    message: format!("[{section}] {name}: {message}"),
                });
                default()
            }
        }
    }

    /// Substitutes and parses; `None` when the option is not set.
    fn value<T, C: Codec<T>>(&self, section: &str, texts: &[Cow<'_, str>]) -> Result<Option<T>, String> {
        let lookup = Values {
            sources: self.sources,
            specs: self.specs,
        };
        // All but the last occurrence of a key that cannot be repeated are dead text: do not complain of it.
        let texts = if C::MULTI {
            texts
        } else {
            &texts[texts.len().saturating_sub(1)..]
        };
        let expand = |text: &Cow<'_, str>| {
            substitute::expand(text, section, &lookup).map_err(|why| why.message(C::SECRET))
        };
        let texts = texts.iter().map(expand).collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() || (C::EMPTY_IS_UNSET && texts.iter().all(String::is_empty)) {
            return Ok(None);
        }
        C::parse_all(&texts).map(Some)
    }

    /// Notes what nobody looked up in the sections that are ours, of those that are `wanted`; then hands over
    /// everything found.
    pub(super) fn finish(mut self, wanted: impl Fn(&str) -> bool) -> Findings {
        let mut told: BTreeSet<Key> = BTreeSet::new();
        for entry in self.sources.entries.iter().filter(|entry| wanted(&entry.section)) {
            let key = (entry.section.clone(), entry.name.clone());
            if let Some(message) = known::remark(&key, self.specs)
                && told.insert(known::subject(key))
            {
                self.warnings.insert(Problem {
                    place: entry.place.clone(),
                    message,
                });
            }
        }
        Findings {
            places: self.places,
            problems: self.problems,
            warnings: self.warnings.into_iter().collect(),
        }
    }
}

/// One text found for an option.
struct Used {
    text: String,
    place: Place,
    /// The deprecated name it was found under.
    old: Option<String>,
}

impl Sources {
    /// Every text that counts for the option, first to last. Only repeatable options use more than the last.
    fn find(&self, spec: &OptionSpec) -> Vec<Used> {
        let variable = spec.variable();
        if let Some(text) = self.environment.get(&variable) {
            return vec![Used {
                text: text.clone(),
                place: Place::Variable(variable),
                old: None,
            }];
        }
        // Rank 0 is the current name; a lower rank wins within one file.
        let rank = |entry: &Entry| {
            if entry.section == spec.section && entry.name == spec.name {
                return Some(0);
            }
            spec.was
                .iter()
                .position(|(section, name)| entry.section == *section && entry.name == *name)
                .map(|i| i + 1)
        };
        let mut found: Vec<(usize, usize, &Entry)> = self
            .entries
            .iter()
            .filter_map(|entry| rank(entry).map(|rank| (entry.file, rank, entry)))
            .collect();
        // Stable: the order of lines stays within the same file and rank.
        found.sort_by_key(|(file, rank, _)| (*file, std::cmp::Reverse(*rank)));
        found
            .into_iter()
            .map(|(_, rank, entry)| Used {
                text: entry.value.clone(),
                place: entry.place.clone(),
                old: (rank > 0).then(|| format!("[{}] {}", entry.section, entry.name)),
            })
            .collect()
    }
}

impl Used {
    /// The text as the codec wants it.
    fn text<T, C: Codec<T>>(&self) -> Cow<'_, str> {
        match self.place {
            // Quotes are a rule of files; in the environment the shell has dealt with them.
            Place::Line(..) if !C::OWN_QUOTES => unquoted(&self.text),
            _ => Cow::Borrowed(&self.text),
        }
    }
}

/// Values as substitution sees them: as written, or the default's text.
struct Values<'a> {
    sources: &'a Sources,
    specs: &'a BTreeMap<Key, OptionSpec>,
}

impl Lookup for Values<'_> {
    fn text(&self, section: &str, name: &str) -> Option<String> {
        let section = super::ini::section_name(section);
        if let Some(spec) = self.specs.get(&(section.clone(), name.to_owned())) {
            if let Some(used) = self.sources.find(spec).pop() {
                return Some(unquoted(&used.text).into_owned());
            }
            return match &spec.default {
                DefaultText::Value(value) => Some(value.clone().unwrap_or_default()),
                DefaultText::Template(text) => Some((*text).to_owned()),
                DefaultText::Machine(_, value) => Some(value.clone().unwrap_or_default()),
            };
        }
        let written = self
            .sources
            .entries
            .iter()
            .rev()
            .find(|entry| entry.section == section && entry.name == name);
        written.map(|entry| unquoted(&entry.value).into_owned())
    }
}
