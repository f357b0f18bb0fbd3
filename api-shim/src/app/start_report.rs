//! What an API has reached at its start, and as whom.

use std::sync::Arc;
use std::time::Duration;

use magnum_config::{Settings, masked_url};
use magnum_db::DatabaseUrl;
use magnum_db::migrate::HEAD;
use magnum_service::StartReport;

use crate::state::App;

/// A broker or a Keystone that needs longer is reported as away: the person who has started the API waits.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Asks everything at once.
pub(super) async fn of(app: Arc<App>, settings: Settings) -> StartReport {
    let mut report = StartReport::default();
    if let Ok(url) = DatabaseUrl::parse(settings.database.connection.expose()) {
        report.reached("database", format!("{}, revision {HEAD}", url.shown()));
    }
    let (broker, keystone, drivers) = tokio::join!(
        tokio::time::timeout(ANSWER_WITHIN, app.transport.reach()),
        tokio::time::timeout(ANSWER_WITHIN, app.authenticator.service_user()),
        app.drivers.names(),
    );
    let address = masked_url(settings.default.transport_url.expose());
    match broker {
        Ok(Ok(())) => report.reached("broker", address),
        Ok(Err(error)) => report.missing("broker", format!("{error}; it is tried again with each request")),
        Err(_) => report.missing(
            "broker",
            format!("{address} does not answer; it is tried again with each request"),
        ),
    }
    match keystone {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(user))) => report.reached("Keystone", user),
        Ok(Err(error)) => report.missing("Keystone", format!("{error}; clients get 503 until it answers")),
        Err(_) => report.missing("Keystone", "no answer yet; clients get 503 until it answers"),
    }
    match drivers {
        Ok(drivers) if drivers.is_empty() => report.missing(
            "drivers",
            "no conductor has announced one, so no template and no cluster can be made: start a magnum-conductor that has \
             one (`magnum-driver-manage create` and `adopt` make one)",
        ),
        Ok(drivers) => report.reached("drivers", drivers.join(", ")),
        Err(error) => report.missing("drivers", error.to_string()),
    }
    report
}
