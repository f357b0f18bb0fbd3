//! The log: set up from oslo.log's options, with one name per field.
//!
//! Called once, first thing after the configuration was read. Lines go to the log file, to standard error, or
//! to both; as text, or with `use_json` as one object per line. A panic is logged like any error.
//!
//! Levels: INFO, or DEBUG with `debug`; single targets differ by `default_log_levels`, on top of a short list
//! that keeps chatty libraries quiet. Names of Python's loggers match nothing and do no harm. What would print
//! users' tokens is off at any level.
//!
//! What it does not do: rotate files (logrotate does; with `watch_log_file` a moved file is noticed, and
//! `copytruncate` works without), write to syslog or the journal by itself, and oslo.log's format strings.
//!
//! Fields of log lines use the names in [`field`], so that a search for a cluster finds all of them.

pub mod field;
mod log_file;
pub mod metric;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use log_file::LogFile;
use magnum_config::{DefaultSection, Loaded, Settings, log_level};

/// Libraries whose ordinary messages help nobody who runs a cloud.
const QUIET: &[(&str, LevelFilter)] = &[
    ("lapin", LevelFilter::ERROR),
    ("amq_protocol", LevelFilter::WARN),
    ("async_rs", LevelFilter::WARN),
    ("hyper", LevelFilter::INFO),
    ("hyper_util", LevelFilter::INFO),
    ("h2", LevelFilter::INFO),
    ("reqwest", LevelFilter::INFO),
    ("rustls", LevelFilter::WARN),
    ("tower_http", LevelFilter::INFO),
    ("r2d2", LevelFilter::WARN),
    ("mio", LevelFilter::INFO),
];

/// Targets that print whole messages from this level on. Messages hold users' tokens, so no option lowers the
/// level below: every frame is printed at TRACE, and a message that no queue takes as a warning.
const NEVER_MORE: &[(&str, LevelFilter)] = &[
    ("lapin", LevelFilter::DEBUG),
    ("amq_protocol", LevelFilter::DEBUG),
    ("async_rs", LevelFilter::DEBUG),
    ("lapin::returned_messages", LevelFilter::OFF),
];

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log file cannot be opened.
    #[error("[DEFAULT] log_file, log_dir: cannot open {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The process has a log already.
    #[error("the log is set up already")]
    Repeated,
}

/// Sets up the log of this process. `program` names the file if only `log_dir` is set.
///
/// # Errors
/// The log file cannot be opened, or the log was set up before.
pub fn init(settings: &Settings, program: &str) -> Result<(), TelemetryError> {
    let options = &settings.default;
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    let file = log_path(options, program);
    if let Some(path) = &file {
        let writer = LogFile::open(path, options.watch_log_file).map_err(|source| TelemetryError::File {
            path: path.clone(),
            source,
        })?;
        layers.push(lines(BoxMakeWriter::new(writer), options.use_json));
    }
    if file.is_none() || options.use_stderr {
        layers.push(lines(BoxMakeWriter::new(io::stderr), options.use_json));
    }
    let (levels, handle) = reload::Layer::new(targets(options));
    let subscriber = tracing_subscriber::registry().with(layers.with_filter(levels));
    subscriber.try_init().map_err(|_| TelemetryError::Repeated)?;
    // A process gets here once: a second subscriber is refused.
    let _ = LEVELS.set(handle);
    log_panics();
    Ok(())
}

/// Where the levels of this process's log can be changed.
static LEVELS: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Takes over `debug` and `default_log_levels`. Where the log goes, and in which form, stays.
pub fn reload_levels(settings: &Settings) {
    if let Some(levels) = LEVELS.get()
        && let Err(error) = levels.reload(targets(&settings.default))
    {
        tracing::error!(%error, "the levels of the log stay as they were");
    }
}

/// For commands at a terminal: warnings go to standard error as plain lines (a server that does not answer yet, say),
/// whatever the configuration says about the log of the services.
pub fn warnings_on_terminal() {
    let lines = fmt()
        .with_max_level(tracing::Level::WARN)
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(io::stderr);
    // A process that has a log already shows them there.
    let _has_one = lines.try_init();
}

/// Logs what the configuration warned about; call after [`init`].
pub fn log_warnings(loaded: &Loaded) {
    for warning in &loaded.warnings {
        tracing::warn!(place = %warning.place, "{}", warning.message);
    }
}

/// The file to log to, if any.
fn log_path(options: &DefaultSection, program: &str) -> Option<PathBuf> {
    let dir = options.log_dir.as_deref();
    match (&options.log_file, dir) {
        (Some(file), Some(dir)) => Some(dir.join(file)),
        (Some(file), None) => Some(file.clone()),
        (None, Some(dir)) => Some(dir.join(Path::new(program)).with_added_extension("log")),
        (None, None) => None,
    }
}

fn targets(options: &DefaultSection) -> Targets {
    let base = if options.debug {
        LevelFilter::DEBUG
    } else {
        LevelFilter::INFO
    };
    let mut targets = Targets::new()
        .with_default(base)
        .with_targets(QUIET.iter().copied());
    for (target, word) in &options.default_log_levels {
        // Words were checked with the configuration.
        if let Some(level) = log_level(word) {
            // `magnum.conductor` may mean a module path or one crate's name; a target may also have dots itself.
            for target in [
                target.clone(),
                target.replace('.', "::"),
                target.replace('.', "_"),
            ] {
                let level = level.min(most(&target));
                targets = targets.with_target(target, level);
            }
        }
    }
    // What stands here is as specific as a target can be.
    targets.with_target("lapin::returned_messages", LevelFilter::OFF)
}

/// The most that may be logged of a target, whatever the options say.
fn most(target: &str) -> LevelFilter {
    NEVER_MORE
        .iter()
        .filter(|(prefix, _)| target.starts_with(prefix))
        .map(|(_, level)| *level)
        .min()
        .unwrap_or(LevelFilter::TRACE)
}

fn lines(writer: BoxMakeWriter, json: bool) -> Box<dyn Layer<Registry> + Send + Sync> {
    if json {
        fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(writer)
            .boxed()
    } else {
        // Colours would put control characters into files and collectors.
        fmt::layer().with_ansi(false).with_writer(writer).boxed()
    }
}

/// A panic ends up in the log, with its place, instead of on a standard error that nobody keeps.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!({ field::PANIC_PLACE } = place, "panic: {message}");
    }));
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn options(levels: &[(&str, &str)], debug: bool) -> DefaultSection {
        let levels = levels
            .iter()
            .map(|(target, level)| ((*target).to_owned(), (*level).to_owned()))
            .collect();
        DefaultSection {
            debug,
            default_log_levels: levels,
            ..DefaultSection::default()
        }
    }

    #[test]
    fn debug_lowers_the_level_but_not_that_of_noisy_libraries() {
        let quiet = targets(&options(&[], false));
        assert!(quiet.would_enable("magnum_rpc", &Level::INFO));
        assert!(!quiet.would_enable("magnum_rpc", &Level::DEBUG));
        let debug = targets(&options(&[], true));
        assert!(debug.would_enable("magnum_rpc", &Level::DEBUG));
        assert!(!debug.would_enable("lapin::channel", &Level::INFO));
    }

    #[test]
    fn levels_by_target_take_dots_and_win_over_the_built_in_list() {
        let filter = targets(&options(
            &[
                ("magnum.common.rpc", "ERROR"),
                ("magnum.conductor", "debug"),
                ("lapin", "DEBUG"),
                ("oslo.messaging.notification", "ERROR"),
            ],
            false,
        ));
        assert!(!filter.would_enable("magnum::common::rpc", &Level::WARN));
        assert!(filter.would_enable("magnum_conductor::app", &Level::DEBUG));
        assert!(filter.would_enable("lapin::channel", &Level::DEBUG));
        let told = "oslo.messaging.notification.magnum.cluster.create";
        assert!(!filter.would_enable(told, &Level::INFO) && filter.would_enable(told, &Level::ERROR));
        assert!(
            !filter.would_enable("lapin::returned_messages", &Level::WARN),
            "it prints bodies"
        );
    }

    #[test]
    fn no_option_makes_a_library_print_messages() {
        for levels in [
            &[("lapin", "TRACE")],
            &[("lapin::returned_messages", "TRACE")],
            &[("lapin.returned.messages", "DEBUG")],
            &[("lapin.channels", "NOTSET")],
            &[("amq_protocol", "TRACE")],
        ] {
            let filter = targets(&options(levels, true));
            for target in ["lapin::channels", "lapin::promise", "amq_protocol::frame"] {
                assert!(!filter.would_enable(target, &Level::TRACE), "{levels:?} {target}");
            }
            assert!(
                !filter.would_enable("lapin::returned_messages", &Level::ERROR),
                "{levels:?}"
            );
        }
    }

    #[test]
    fn the_log_file_follows_oslo_log() {
        let path = |file: Option<&str>, dir: Option<&str>| {
            let options = DefaultSection {
                log_file: file.map(PathBuf::from),
                log_dir: dir.map(PathBuf::from),
                ..DefaultSection::default()
            };
            log_path(&options, "magnum-conductor").map(|path| path.display().to_string())
        };
        assert_eq!(path(None, None), None);
        assert_eq!(
            path(None, Some("/var/log")).as_deref(),
            Some("/var/log/magnum-conductor.log")
        );
        assert_eq!(
            path(Some("m.log"), Some("/var/log")).as_deref(),
            Some("/var/log/m.log")
        );
        assert_eq!(
            path(Some("/x/m.log"), Some("/var/log")).as_deref(),
            Some("/x/m.log")
        );
    }

    #[test]
    fn text_and_json_lines_reach_their_writer() {
        let dir = tempfile::tempdir().unwrap();
        for json in [false, true] {
            let path = dir.path().join(json.to_string());
            let layer = lines(BoxMakeWriter::new(LogFile::open(&path, false).unwrap()), json);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                tracing::info!({ field::CLUSTER } = "c1", "accepted");
            });
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.contains("accepted") && text.contains(field::CLUSTER),
                "{text}"
            );
            if json {
                let line: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
                assert_eq!(line["magnum.cluster.uuid"], "c1");
                assert_eq!(line["level"], "INFO");
            }
        }
    }
}
