//! Sections that other crates declare: engines of drivers have options of their own in the same `magnum.conf`.
//!
//! Such a section is declared by [`crate::config_section`] and read where it is needed, from what was found when
//! [`Settings`] were loaded: the same files, precedence, substitutions and messages as for ours.

use std::fmt;
use std::sync::Arc;

use super::option_spec::{Key, OptionSpec};
use super::problem::{ConfigErrors, Place, Problem};
use super::reader::{Reader, Sources};
use super::schema::Section;
use super::{Settings, specs};

/// What the files and the environment say. Never printed: it has every secret as it was written.
#[derive(Clone, Default)]
pub struct Written(pub(super) Arc<Sources>);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written(***)")
    }
}

/// Settings are equal when their values are, wherever these were written.
impl PartialEq for Written {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// A declared section, and what to tell the operator about where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionRead<S> {
    /// The section.
    pub section: S,
    /// Options of it that do not exist, and deprecated ones.
    pub warnings: Vec<Problem>,
    places: Vec<Place>,
}

impl Settings {
    /// Reads a section that another crate declares.
    ///
    /// # Errors
    /// Every value in it that cannot be used, with its file and line.
    pub fn section<S: Section>(&self) -> Result<SectionRead<S>, ConfigErrors> {
        let own = S::specs();
        let key = |spec: &OptionSpec| -> Key { (spec.section.to_owned(), spec.name.to_owned()) };
        // Values may refer to every other option.
        let mut all = specs().clone();
        all.extend(own.iter().map(|spec| (key(spec), spec.clone())));
        let mut reader = Reader::new(&self.written.0, &all);
        let section = S::read(&mut reader);
        let findings = reader.finish(|section| section == S::NAME);
        if !findings.problems.is_empty() {
            return Err(ConfigErrors(findings.problems));
        }
        let place = |spec| findings.places.get(&key(spec)).cloned().unwrap_or(Place::Default);
        Ok(SectionRead {
            section,
            places: own.iter().map(place).collect(),
            warnings: findings.warnings,
        })
    }
}

/// A value in effect as people see it, `None` where it is not set, and where it was written.
pub(super) type Shown = (Option<String>, Place);

/// A section as documents and operators see it.
#[derive(Clone)]
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Its options, in the order of their declaration.
    pub options: Vec<OptionSpec>,
    shown: fn(&Settings) -> Result<Vec<Shown>, ConfigErrors>,
    warnings: fn(&Settings) -> Vec<Problem>,
}

impl Declared {
    /// The section `S`.
    pub fn of<S: Section>() -> Self {
        Self {
            name: S::NAME,
            help: S::HELP,
            options: S::specs(),
            shown: |settings| {
                let read = settings.section::<S>()?;
                Ok(read.section.shown().into_iter().zip(read.places).collect())
            },
            warnings: |settings| {
                settings
                    .section::<S>()
                    .map(|read| read.warnings)
                    .unwrap_or_default()
            },
        }
    }

    /// What looks wrong in it but is harmless. A section with errors has no warnings: see [`Settings::section`].
    pub fn warnings(&self, settings: &Settings) -> Vec<Problem> {
        (self.warnings)(settings)
    }

    pub(super) fn shown(&self, settings: &Settings) -> Result<Vec<Shown>, ConfigErrors> {
        (self.shown)(settings)
    }
}
