//! Which recorded cases run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::differences::Difference;

/// Which cases run: `all`, or a part of their titles (`file/name`). Unset: a sample.
const WHICH: &str = "MAGNUM_TESTS_PLUGIN_RUN";

/// One case in so many is in the sample.
const SAMPLE: usize = 9;

/// A recorded case.
pub trait Recorded {
    /// Its name with that of its file.
    fn title(&self) -> String;
}

/// The recordings of one replay.
pub struct Suite {
    /// Their folder in the checkout, below `tests`.
    pub folder: &'static str,
    /// Whether a file of this name is one.
    pub has: fn(&str) -> bool,
    /// The environment variable that names other recordings: a file, or a folder of files.
    pub elsewhere: &'static str,
}

/// What is to be run.
pub struct Selection<C> {
    /// The cases.
    pub cases: Vec<C>,
    /// Whether these are all cases of the checkout.
    pub is_complete: bool,
}

impl Suite {
    /// The files in the checkout.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        self.files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder))
    }

    /// The cases that the environment asks for, of those in the files; the sample has one for each difference as well.
    pub fn select<C: Recorded, E>(
        &self,
        read: impl Fn(&[PathBuf]) -> Result<Vec<C>>,
        differences: &[Difference<C, E>],
    ) -> Result<Selection<C>> {
        let elsewhere = std::env::var_os(self.elsewhere).map(PathBuf::from);
        let cases = match &elsewhere {
            Some(place) => read(&self.files_of(place)?)?,
            None => read(&self.files()?)?,
        };
        let which = std::env::var(WHICH).unwrap_or_default();
        let cases: Vec<C> = match which.as_str() {
            "all" => cases,
            "" if elsewhere.is_some() => cases,
            "" => sample(cases, differences),
            part => cases
                .into_iter()
                .filter(|case| case.title().contains(part))
                .collect(),
        };
        ensure!(!cases.is_empty(), "no recorded case is called {which:?}");
        Ok(Selection {
            cases,
            is_complete: which == "all" && elsewhere.is_none(),
        })
    }

    /// The files of a folder, or that one.
    fn files_of(&self, place: &Path) -> Result<Vec<PathBuf>> {
        if !place.is_dir() {
            return Ok(vec![place.to_path_buf()]);
        }
        let entries = fs::read_dir(place)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| {
            let name = path.file_name().unwrap_or_default();
            (self.has)(&name.to_string_lossy())
        });
        files.sort();
        Ok(files)
    }
}

/// One of so many, and one for each difference from the recordings.
fn sample<C, E>(cases: Vec<C>, differences: &[Difference<C, E>]) -> Vec<C> {
    let mut unseen: Vec<&Difference<C, E>> = differences.iter().collect();
    let mut is_wanted = |number: usize, case: &C| {
        let before = unseen.len();
        unseen.retain(|difference| !(difference.is_in)(case));
        number.is_multiple_of(SAMPLE) || unseen.len() < before
    };
    let numbered = cases.into_iter().enumerate();
    numbered
        .filter(|(number, case)| is_wanted(*number, case))
        .map(|(_, case)| case)
        .collect()
}
