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
//! Fields of log lines use the names in [`field`], so that a search for a cluster finds all of them. Every line shows
//! the fields of the spans that it lies in, whatever the levels are.

pub mod field;
mod levels;
mod lines;
mod log_file;
pub mod metric;
mod spans;
pub mod trace;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use levels::Levels;
use lines::{Lines, NothingInAdvance};
use log_file::LogFile;
use magnum_config::{DefaultSection, Loaded, Settings};
use spans::{SpanFields, is_ours};
use trace::Export;

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

/// Sets up the log of this process, and the export of its spans. `program` names the file if only `log_dir` is set.
///
/// # Errors
/// The log file cannot be opened, or the log was set up before.
pub fn init(settings: &Settings, program: &str, export: Option<Export>) -> Result<(), TelemetryError> {
    let options = &settings.default;
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = vec![SpanFields.boxed()];
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
    let (levels, handle) = reload::Layer::new(Levels::of(options));
    let mut all = vec![layers.with_filter(levels).boxed()];
    let recorder = export.map(|Export { layer, recorder }| {
        let spans = filter_fn(is_ours).with_max_level_hint(LevelFilter::INFO);
        all.push(layer.with_filter(spans).boxed());
        recorder
    });
    let subscriber = tracing_subscriber::registry().with(all);
    subscriber.try_init().map_err(|_| TelemetryError::Repeated)?;
    if settings.otlp.endpoint.is_some() && recorder.is_none() {
        tracing::warn!("[otlp] endpoint has no effect: the program was built without the feature otlp");
    }
    if let Some(recorder) = recorder {
        trace::record_with(recorder);
    }
    // A process gets here once: a second subscriber is refused.
    let _ = LEVELS.set(handle);
    log_panics();
    Ok(())
}

/// Where the levels of this process's log can be changed.
static LEVELS: OnceLock<reload::Handle<Levels, Registry>> = OnceLock::new();

/// Takes over `debug` and `default_log_levels`. Where the log goes, and in which form, stays.
pub fn reload_levels(settings: &Settings) {
    if let Some(levels) = LEVELS.get()
        && let Err(error) = levels.reload(Levels::of(&settings.default))
    {
        tracing::error!(%error, "the levels of the log stay as they were");
    }
}

/// For commands at a terminal: warnings go to standard error as plain lines (a server that does not answer yet, say),
/// whatever the configuration says about the log of the services.
pub fn warnings_on_terminal() {
    let lines = fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(io::stderr)
        .with_filter(levels::at_terminal());
    // A process that has a log already shows them there.
    let _has_one = Registry::default().with(lines).try_init();
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

fn lines(writer: BoxMakeWriter, json: bool) -> Box<dyn Layer<Registry> + Send + Sync> {
    fmt::layer()
        .event_format(if json { Lines::Json } else { Lines::Text })
        .fmt_fields(NothingInAdvance)
        // Colours would put control characters into files and collectors.
        .with_ansi(false)
        .with_writer(writer)
        .boxed()
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
    use super::*;

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

    /// What `log` writes, in both forms.
    fn logged(log: impl Fn()) -> (String, serde_json::Value) {
        let dir = tempfile::tempdir().unwrap();
        let [text, json] = [false, true].map(|json| {
            let path = dir.path().join(json.to_string());
            let layers = vec![
                SpanFields.boxed(),
                lines(BoxMakeWriter::new(LogFile::open(&path, false).unwrap()), json),
            ];
            let levels = Levels::of(&DefaultSection::default());
            let subscriber = tracing_subscriber::registry().with(layers.with_filter(levels));
            tracing::subscriber::with_default(subscriber, &log);
            std::fs::read_to_string(&path).unwrap()
        });
        assert_eq!(
            (text.lines().count(), json.lines().count()),
            (1, 1),
            "{text}{json}"
        );
        (text, serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn text_and_json_lines_reach_their_writer() {
        let (text, json) = logged(|| tracing::info!({ field::CLUSTER } = "c1", attempt = 2, "accepted"));
        assert!(
            text.ends_with(" INFO magnum_telemetry::tests: accepted magnum.cluster.uuid=c1 attempt=2\n"),
            "{text}"
        );
        assert_eq!(json["message"], "accepted");
        assert_eq!(json["magnum.cluster.uuid"], "c1");
        assert_eq!(json["attempt"], 2);
        assert_eq!(json["level"], "INFO");
    }

    #[test]
    fn a_line_has_the_fields_of_its_spans_each_once() {
        let (text, json) = logged(|| {
            let outer = tracing::info_span!(
                "request",
                { field::REQUEST } = "req-1",
                { field::PROJECT } = tracing::field::Empty,
                { field::CLUSTER } = "outer",
                { field::SPAN_KIND } = "server",
            );
            outer.record(field::PROJECT, "p1");
            let _outer = outer.enter();
            let _inner =
                tracing::info_span!("step", { field::CLUSTER } = "inner", { field::STEP } = "create")
                    .entered();
            tracing::info!({ field::STEP } = "own", "moved");
        });
        assert_eq!(
            text.split_once("moved ").unwrap().1.trim_end(),
            "magnum.operation.step=own magnum.cluster.uuid=inner request.id=req-1 project.id=p1"
        );
        let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "timestamp",
                "level",
                "target",
                "message",
                field::STEP,
                field::CLUSTER,
                field::REQUEST,
                field::PROJECT
            ]
        );
    }

    #[test]
    fn a_value_cannot_add_a_line_or_a_field() {
        let (text, json) = logged(|| tracing::info!(reason = "a\nb c=d", "one\ntwo \u{1b}[31m"));
        assert!(
            text.contains(r#"one\ntwo \u{1b}[31m reason="a\nb c=d""#),
            "{text}"
        );
        assert_eq!(json["reason"], "a\nb c=d");
    }
}
