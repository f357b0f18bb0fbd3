//! Checks that notifications can be sent: the drivers, their broker, their queues.
//!
//! Nothing here stops a service but options that cannot be used: notifications wait for their broker, up to a few
//! thousand of them.

use magnum_config::Settings;
use magnum_rpc::{Declaration, OptionsError, RpcOptions, TransportError, topology};
use magnum_rpc_server::inspect;

use super::messaging::{CONNECTION_NAME, mismatches, unreachable};
use super::report::Finding;
use crate::notifications::Drivers;
use crate::notifications::message::notification_queues;

const URL: &str = "[oslo_messaging_notifications] transport_url";

/// Checks `[oslo_messaging_notifications]`.
pub(super) async fn check(settings: &Settings) -> Finding {
    let mut finding = Finding::of("Notifications");
    let drivers = Drivers::named(&settings.oslo_messaging_notifications.driver);
    for problem in drivers.problems() {
        finding.warn(problem);
    }
    if !drivers.publishes() {
        return finding;
    }
    let own = match RpcOptions::for_notifications(settings) {
        Ok(own) => own,
        Err(error) => {
            refuse(&mut finding, &error);
            return finding;
        }
    };
    let is_own = own.is_some();
    let options = match own.map_or_else(|| RpcOptions::try_from(settings), Ok) {
        Ok(options) => options,
        // Reported by the check of the messaging options.
        Err(_) => return finding,
    };
    if is_own {
        for problem in options.rabbit.problems() {
            refuse(&mut finding, &problem);
        }
    }
    let exchange = &settings.default.control_exchange;
    let declarations: Vec<Declaration> = settings
        .oslo_messaging_notifications
        .topics
        .iter()
        .flat_map(|topic| notification_queues(topic))
        .flat_map(|queue| topology::notification_queue(exchange, &queue, &options.rabbit))
        .filter(|one| matches!(one, Declaration::Queue(_)))
        .collect();
    match inspect(&options, CONNECTION_NAME, &declarations).await {
        Ok(things) => mismatches(&mut finding, things),
        // The broker of requests has its own check.
        Err(_) if !is_own => {}
        Err(error @ TransportError::Unreachable(_)) => finding.warn(unreachable(URL, &error)),
        Err(error) => finding.fail(format!("{URL}: {error}. Conductors do not start with it.")),
    }
    finding
}

fn refuse(finding: &mut Finding, error: &OptionsError) {
    finding.fail(format!("{URL}: {error}. Conductors do not start with it."));
}
