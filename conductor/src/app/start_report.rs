//! What a conductor has reached at its start, and as whom.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use magnum_config::{Settings, masked_url};
use magnum_db::DatabaseUrl;
use magnum_db::migrate::HEAD;
use magnum_driver_api::Cloud;
use magnum_drivers::DriverInfo;
use magnum_rpc::Transport;
use magnum_service::StartReport;

use crate::drivers::Registry;

/// A broker or a Keystone that needs longer is reported as away: the person who has started the conductor waits.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What is asked.
pub(super) struct Reached {
    pub(super) settings: Settings,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) cloud: Cloud,
    pub(super) drivers: Registry,
}

impl Reached {
    /// Asks everything at once.
    pub(super) async fn report(self) -> StartReport {
        let mut report = StartReport::default();
        if let Ok(url) = DatabaseUrl::parse(self.settings.database.connection.expose()) {
            report.reached("database", format!("{}, revision {HEAD}", url.shown()));
        }
        let (broker, keystone) = tokio::join!(
            tokio::time::timeout(ANSWER_WITHIN, self.transport.reach()),
            tokio::time::timeout(ANSWER_WITHIN, async {
                match self.cloud.service() {
                    Ok(session) => Some(session.identity().await),
                    // Not configured: drivers that need a cloud say so when they are called.
                    Err(_) => None,
                }
            }),
        );
        let address = masked_url(self.settings.default.transport_url.expose());
        match broker {
            Ok(Ok(())) => report.reached("broker", address),
            Ok(Err(error)) => {
                report.missing("broker", format!("{error}; it is tried again until it answers"))
            }
            Err(_) => report.missing(
                "broker",
                format!("{address} does not answer; it is tried again until it does"),
            ),
        }
        match keystone {
            Ok(None) => {}
            Ok(Some(Ok(user))) => report.reached("Keystone", user),
            Ok(Some(Err(error))) => {
                report.missing("Keystone", format!("{error}; drivers cannot act in the cloud"))
            }
            Err(_) => report.missing("Keystone", "no answer yet; drivers cannot act in the cloud"),
        }
        add_drivers(&mut report, &self.drivers, &self.settings.drivers.driver_path);
        report
    }
}

fn add_drivers(report: &mut StartReport, drivers: &Registry, paths: &[PathBuf]) {
    let loaded = drivers.current();
    let names: Vec<String> = loaded.infos().iter().map(DriverInfo::shown).collect();
    if !names.is_empty() {
        report.reached("drivers", names.join(", "));
        return;
    }
    let folders: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    report.missing(
        "drivers",
        format!(
            "NONE in [drivers] driver_path ({}), so this conductor builds no cluster: `magnum-driver-manage create NAME` \
             makes a driver, `magnum-driver-manage adopt --python VENV` takes over those of a Python environment",
            folders.join(", ")
        ),
    );
}
