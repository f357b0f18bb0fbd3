//! Where policy files lie, and when they are read again.
//!
//! As oslo.policy has it: `[oslo_policy] policy_file` and each of `policy_dirs` are looked for beside the
//! configuration files, then in `~/.magnum`, `~`, `/etc/magnum` and `/etc`. Without a file of the usual name the defaults
//! hold; one that an option names has to be there. The files of a directory follow the policy file, sorted by name, hidden
//! ones left out; the last rule of a name holds.
//!
//! Guarantees: a start with files that cannot be read or understood fails and tells all that is wrong; a change of
//! files while the API runs takes effect at once or not at all, and never leaves the API without rules. A file that goes
//! away, or cannot be reached, opens nothing that it closed: an operator has to say that its rules shall go, by a reload
//! or a restart. A request is judged by one state of the rules from its beginning to its end.
//!
//! Differs from oslo.policy, which looks at each request and takes what it finds, also nothing: the files are looked at
//! once a second, and read when they are as they were the last time, so that half of a file is not taken for the whole.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use magnum_config::{OsloPolicySection, Place, Problem, Settings};
use tokio_util::sync::CancellationToken;

use super::file::{self, Entry, LARGEST};
use super::rules::{Choices, RuleSet};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Everything that makes the policy files unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy files have {} problem{}:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, lines(.0))]
pub struct PolicyErrors(pub Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    lines.join("\n")
}

/// Where to look, and what decides besides.
#[derive(Debug, Clone)]
pub struct Source {
    file: Wanted,
    dirs: Vec<Wanted>,
    search: Vec<PathBuf>,
    choices: Choices,
}

/// A file or a directory to be read.
#[derive(Debug, Clone)]
struct Wanted {
    name: PathBuf,
    /// An option names it: then it has to be there.
    is_named: bool,
}

impl Wanted {
    /// What the options say, beside what they say by default.
    fn of(name: &Path, default: &[PathBuf]) -> Self {
        Self {
            name: name.to_owned(),
            is_named: !default.iter().any(|usual| usual == name),
        }
    }
}

/// A file as it was found: enough to see that it changed.
type Stamp = Vec<(PathBuf, Option<SystemTime>, u64)>;

impl Source {
    /// What the settings say.
    pub fn from_settings(settings: &Settings) -> Self {
        let OsloPolicySection {
            policy_file,
            policy_dirs,
            policy_default_rule,
            enforce_new_defaults,
            enforce_scope,
        } = &settings.oslo_policy;
        let default = OsloPolicySection::default();
        let dirs = policy_dirs.iter();
        Self {
            file: Wanted::of(policy_file, &[default.policy_file]),
            dirs: dirs.map(|dir| Wanted::of(dir, &default.policy_dirs)).collect(),
            search: settings.search_path.clone(),
            choices: Choices {
                default_rule: policy_default_rule.clone(),
                enforce_new_defaults: *enforce_new_defaults,
                enforce_scope: *enforce_scope,
            },
        }
    }

    /// One file, wherever the settings look, and no directories.
    pub fn only(mut self, file: &Path) -> Self {
        self.search = vec![PathBuf::new()];
        self.file = Wanted::of(file, &[]);
        self.dirs = Vec::new();
        self
    }

    /// The first place that has it. A path from the root is its own place.
    fn find(&self, wanted: &Wanted) -> Result<Option<PathBuf>, Problem> {
        let name = wanted.name.as_path();
        let places: Vec<PathBuf> = if name.is_absolute() {
            vec![name.to_owned()]
        } else {
            self.search.iter().map(|folder| folder.join(name)).collect()
        };
        for path in places {
            match path.try_exists() {
                Ok(true) => return Ok(Some(path)),
                Ok(false) => {}
                // Whether it is there is not known: it must not count as if it were not.
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
        if wanted.is_named {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(unreadable(name, &missing));
        }
        Ok(None)
    }

    /// The files there are, in the order of their reading.
    fn files(&self) -> Result<Vec<PathBuf>, Vec<Problem>> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        match self.find(&self.file) {
            Ok(found) => files.extend(found),
            Err(problem) => problems.push(problem),
        }
        for dir in &self.dirs {
            match self.find(dir) {
                Ok(None) => {}
                Ok(Some(dir)) => match files_of(&dir) {
                    Ok(found) => files.extend(found),
                    Err(error) => problems.push(unreadable(&dir, &error)),
                },
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(files)
        } else {
            Err(problems)
        }
    }

    fn stamp(&self) -> Stamp {
        let files = self.files().unwrap_or_default();
        let stamp = |path: PathBuf| {
            let found = fs::metadata(&path).ok();
            let changed = found.as_ref().and_then(|found| found.modified().ok());
            (path, changed, found.map_or(0, |found| found.len()))
        };
        files.into_iter().map(stamp).collect()
    }

    /// Reads all files and puts the rules together. Besides: the files that were read, and what to warn about.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn read(&self) -> Result<(RuleSet, Vec<PathBuf>, Vec<Problem>), PolicyErrors> {
        let files = self.files().map_err(PolicyErrors)?;
        let mut problems = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for path in &files {
            let read = text_of(path).map_err(|error| vec![unreadable(path, &error)]);
            match read.and_then(|text| file::read(&Arc::new(path.clone()), &text)) {
                Ok(found) => entries.extend(found),
                Err(wrong) => problems.extend(wrong),
            }
        }
        if !problems.is_empty() {
            return Err(PolicyErrors(problems));
        }
        let (rules, warnings) = RuleSet::build(entries, &self.choices).map_err(PolicyErrors)?;
        Ok((rules, files, warnings))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem {
        place: Place::File(Arc::new(path.to_owned())),
        message: format!("cannot be read: {error}"),
    }
}

fn files_of(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?
        .take(LARGEST + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(std::io::Error::other(format!(
            "it is larger than {LARGEST} bytes"
        )));
    }
    Ok(text)
}

/// The rules that hold now.
#[derive(Debug)]
pub struct Policy {
    source: Source,
    first: Stamp,
    /// The files whose rules hold. Held from reading to replacing: of two who read at the same time, who replaces last has
    /// read last.
    in_force: Mutex<Vec<PathBuf>>,
    current: RwLock<Arc<RuleSet>>,
}

impl Policy {
    /// Reads the files for the first time, and logs what looks wrong.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn load(source: Source) -> Result<Self, PolicyErrors> {
        // Taken first: what changes while it is read is read again.
        let first = source.stamp();
        let (rules, files, warnings) = source.read()?;
        warn(&warnings);
        if files.is_empty() {
            tracing::info!(
                file = %source.file.name.display(),
                "there is no policy file: the default rules hold"
            );
        }
        Ok(Self {
            source,
            first,
            in_force: Mutex::new(files),
            current: RwLock::new(Arc::new(rules)),
        })
    }

    /// The rules as they are now. A request asks once.
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again, since an operator says so. If anything is wrong with them the rules stay as they are, and the
    /// log tells why; rules of files that are gone are gone.
    pub fn reload(&self) {
        self.read_again(true);
    }

    /// Reads the files again, since they have changed. Rules of files that are gone stay.
    fn changed(&self) {
        self.read_again(false);
    }

    fn read_again(&self, may_be_gone: bool) {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        match self.source.read() {
            Ok((rules, files, warnings)) => {
                if let Some(gone) = in_force.iter().find(|file| !files.contains(file)) {
                    tracing::warn!(file = %gone.display(), "a policy file is gone");
                    if !may_be_gone {
                        tracing::error!(
                            "a file that is gone opens nothing: the rules stay as they were; reload the service to go on \
                             without it"
                        );
                        return;
                    }
                }
                warn(&warnings);
                let from_files = rules.from_files().len();
                in_force.clone_from(&files);
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
                tracing::info!(
                    files = files.len(),
                    rules = from_files,
                    "the policy files were read again"
                );
            }
            Err(errors) => {
                tracing::error!(error = %errors, "the policy files cannot be used; the rules stay as they were");
            }
        }
    }

    /// Reads the files again whenever they change, until told to stop.
    pub async fn watch(self: Arc<Self>, shutdown: CancellationToken) {
        let mut loaded = self.first.clone();
        let mut last = loaded.clone();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = self.stamp().await;
            if now == last && now != loaded {
                loaded.clone_from(&now);
                let policy = Arc::clone(&self);
                if tokio::task::spawn_blocking(move || policy.changed())
                    .await
                    .is_err()
                {
                    tracing::error!("reading the policy files panicked; the rules stay as they were");
                }
            }
            last = now;
        }
    }

    async fn stamp(self: &Arc<Self>) -> Stamp {
        let policy = Arc::clone(self);
        tokio::task::spawn_blocking(move || policy.source.stamp())
            .await
            .unwrap_or_default()
    }
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}
