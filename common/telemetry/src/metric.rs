//! What a program says about its metrics: each is one row of a table, `metric_definitions.rs` of the program.
//!
//! The row describes the metric to the recorder and to people: `docs/metrics.md` holds the same rows, kept so by a
//! test.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// How a metric moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, until the process ends.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Durations in seconds, as quantiles with their sum and count.
    Seconds,
}

impl Kind {
    /// The word for it in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Seconds => "summary",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// As it is scraped.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it counts or measures, in a sentence without its period.
    pub meaning: &'static str,
}

/// Describes metrics to this process's recorder.
pub fn describe(metrics: &[Metric]) {
    for metric in metrics {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.meaning),
            Kind::Gauge => describe_gauge!(metric.name, metric.meaning),
            Kind::Seconds => describe_histogram!(metric.name, Unit::Seconds, metric.meaning),
        }
    }
}
