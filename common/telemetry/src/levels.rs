//! Which events are logged: `debug` and `default_log_levels`, on top of what libraries may say at all.

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

use super::spans::is_ours;
use magnum_config::{DefaultSection, log_level};

/// Libraries whose ordinary messages help nobody who runs a cloud.
const QUIET: &[(&str, LevelFilter)] = &[
    // What fails is returned to us, and logged once, where it is handled.
    ("lapin", LevelFilter::OFF),
    ("lapin::thread", LevelFilter::ERROR),
    ("amq_protocol", LevelFilter::WARN),
    ("async_rs", LevelFilter::WARN),
    ("hyper", LevelFilter::INFO),
    ("hyper_util", LevelFilter::INFO),
    ("h2", LevelFilter::INFO),
    ("kube_client", LevelFilter::OFF),
    ("kube_runtime", LevelFilter::OFF),
    ("reqwest", LevelFilter::INFO),
    ("rustls", LevelFilter::WARN),
    ("tower", LevelFilter::INFO),
    ("tower_http", LevelFilter::INFO),
    ("r2d2", LevelFilter::WARN),
    ("mio", LevelFilter::INFO),
];

/// Targets that print whole messages from this level on. Messages hold users' tokens, so no option lowers the
/// level below: every frame is printed at TRACE, and a message that no queue takes as a warning; so is an answer of a management
/// cluster that is no JSON.
const NEVER_MORE: &[(&str, LevelFilter)] = &[
    ("lapin", LevelFilter::DEBUG),
    ("amq_protocol", LevelFilter::DEBUG),
    ("async_rs", LevelFilter::DEBUG),
    ("kube_client", LevelFilter::OFF),
    ("kube_runtime", LevelFilter::OFF),
    ("lapin::returned_messages", LevelFilter::OFF),
];

/// Events by level and target, and all spans of this project: a warning names its request whatever the levels are.
#[derive(Debug)]
pub(super) struct Levels(Targets);

impl Levels {
    /// As the options say.
    pub(super) fn of(options: &DefaultSection) -> Self {
        Self(targets(options))
    }
}

impl<S: Subscriber> Filter<S> for Levels {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        if metadata.is_span() {
            is_ours(metadata)
        } else {
            Filter::enabled(&self.0, metadata, context)
        }
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !metadata.is_span() {
            Filter::<S>::callsite_enabled(&self.0, metadata)
        } else if is_ours(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Our spans are of this level.
        Filter::<S>::max_level_hint(&self.0).map(|level| level.max(LevelFilter::INFO))
    }
}

/// What a person at a terminal is shown: warnings, and of libraries no more than a log has.
pub(super) fn at_terminal() -> Targets {
    let quiet = QUIET
        .iter()
        .map(|(target, level)| (*target, (*level).min(LevelFilter::WARN)));
    Targets::new().with_default(LevelFilter::WARN).with_targets(quiet)
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
    fn a_terminal_shows_warnings_and_nothing_of_libraries_that_return_their_failures() {
        let filter = at_terminal();
        assert!(filter.would_enable("magnum_rpc::rabbit", &Level::WARN));
        assert!(!filter.would_enable("magnum_rpc::rabbit", &Level::INFO));
        assert!(!filter.would_enable("lapin::channel", &Level::ERROR));
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
}
