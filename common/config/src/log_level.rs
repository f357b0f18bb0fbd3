//! Words for the levels of the log.

use tracing::level_filters::LevelFilter;

/// The level that a word of `default_log_levels` means; also oslo's names.
pub fn log_level(word: &str) -> Option<LevelFilter> {
    Some(match word.to_ascii_uppercase().as_str() {
        "NOTSET" | "TRACE" => LevelFilter::TRACE,
        "DEBUG" => LevelFilter::DEBUG,
        "INFO" => LevelFilter::INFO,
        "WARN" | "WARNING" => LevelFilter::WARN,
        "ERROR" | "CRITICAL" | "FATAL" => LevelFilter::ERROR,
        "OFF" => LevelFilter::OFF,
        _ => return None,
    })
}
