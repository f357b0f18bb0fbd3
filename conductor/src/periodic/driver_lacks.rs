//! Asks the loaded drivers what they lack: what an operator has to see to before a driver can do its work, such as kinds and
//! permissions in a management cluster.
//!
//! It is told in the log when it changes, and counted in a metric. Nothing is refused for it: a request that meets what is lacking is
//! tried again until it is there, or until its time limit.

use std::collections::BTreeMap;
use std::time::Duration;

use magnum_drivers::DriverInfo;
use magnum_telemetry::field;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Rounds;
use crate::drivers::Registry;
use crate::metric_definitions as metric;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_mins(5);
/// A driver that has not answered by then is asked again in the next round.
const ANSWER_WITHIN: Duration = Duration::from_mins(2);

/// What each driver lacked when it was asked last, by its name and its version.
type Known = BTreeMap<(String, String), Vec<String>>;

/// Asks until `shutdown`.
pub async fn run(registry: Registry, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(INTERVAL, shutdown.clone());
    let mut known = Known::new();
    while rounds.next().await {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = round(&registry, &mut known) => {}
        }
    }
}

async fn round(registry: &Registry, known: &mut Known) {
    let loaded = registry.current();
    let drivers: Vec<_> = loaded
        .infos()
        .iter()
        .filter_map(|info| loaded.get(&info.name, &info.version.to_string()))
        .collect();
    let mut lacking: BTreeMap<String, usize> = known.keys().map(|(name, _)| (name.clone(), 0)).collect();
    known.retain(|known, _| drivers.iter().any(|driver| key(driver.info()) == *known));
    for driver in drivers {
        let info = driver.info();
        if let Ok(lacks) = timeout(ANSWER_WITHIN, driver.lacks()).await {
            let before = known.insert(key(info), lacks.clone()).unwrap_or_default();
            if before != lacks {
                tell(info, &lacks);
            }
        }
    }
    // The versions of a driver together, as in other metrics.
    for ((name, _), lacks) in known {
        *lacking.entry(name.clone()).or_default() += lacks.len();
    }
    for (name, count) in lacking {
        metrics::gauge!(metric::DRIVER_LACKS, "driver" => name).set(count as f64);
    }
}

fn key(info: &DriverInfo) -> (String, String) {
    (info.name.clone(), info.version.to_string())
}

fn tell(info: &DriverInfo, lacks: &[String]) {
    let driver = info.to_string();
    if lacks.is_empty() {
        tracing::info!(
            { field::DRIVER } = driver,
            "the driver has all that it needs again"
        );
    } else {
        let lacks = lacks.join("; ");
        tracing::warn!(
            { field::DRIVER } = driver,
            lacks,
            "the driver lacks what it needs: requests that need it wait until it is there"
        );
    }
}
