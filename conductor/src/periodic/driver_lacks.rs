//! Asks the loaded drivers what they lack: what an operator has to see to before a driver can do its work, such as kinds and
//! permissions in a management cluster.
//!
//! It is told in the log when it changes, and counted in a metric. Nothing is refused for it: a request that meets what is lacking is
//! tried again until it is there, or until its time limit.

use std::collections::BTreeMap;
use std::time::Duration;

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

/// What each driver lacked when it was asked last.
type Known = BTreeMap<String, Vec<String>>;

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
    known.retain(|name, _| {
        let is_loaded = drivers.iter().any(|driver| driver.info().to_string() == *name);
        if !is_loaded {
            metrics::gauge!(metric::DRIVER_LACKS, "driver" => name.clone()).set(0.0);
        }
        is_loaded
    });
    for driver in drivers {
        let name = driver.info().to_string();
        let Ok(lacks) = timeout(ANSWER_WITHIN, driver.lacks()).await else {
            continue;
        };
        metrics::gauge!(metric::DRIVER_LACKS, "driver" => name.clone()).set(lacks.len() as f64);
        let before = known.insert(name.clone(), lacks.clone()).unwrap_or_default();
        if before == lacks {
            continue;
        }
        if lacks.is_empty() {
            tracing::info!({ field::DRIVER } = name, "the driver has all that it needs again");
        } else {
            let lacks = lacks.join("; ");
            tracing::warn!(
                { field::DRIVER } = name,
                lacks,
                "the driver lacks what it needs: requests that need it wait until it is there"
            );
        }
    }
}
