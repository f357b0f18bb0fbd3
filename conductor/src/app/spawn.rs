//! The parts of a conductor as tasks, in the order in which they start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use magnum_config::Settings;
use magnum_rpc::{Addressing, Transport, new_server_id};
use magnum_rpc_server::RpcServer;
use magnum_service::AdminHosts;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::StartError;
use super::open::Resources;
use super::parts::Parts;
use super::wire::Handles;
use crate::handlers::{Acceptor, Answerer, DriverCalls};
use crate::http;
use crate::metric_definitions as metric;
use crate::operations::{Executor, OperationServices, sweep};
use crate::periodic::announce::Announcer;
use crate::periodic::certificate_removal::CertificateRemoval;
use crate::periodic::health::{self, HealthCheck};
use crate::periodic::key_pool::KeyPoolFilling;
use crate::periodic::status_sync::{Pace, StatusSync};
use crate::periodic::trust_removal::TrustRemoval;
use crate::periodic::utilisation::{Utilisation, UtilisationFigures};
use crate::periodic::{driver_lacks, journal_history, journal_metrics, sealing, service_heartbeat};
use crate::rpc::Consumer;
use crate::seal::JournalKey;

/// Starts all parts. The receiver becomes true as soon as messages are taken; its sender is dropped if they never
/// will be.
pub(super) async fn all(
    settings: &Settings,
    resources: &mut Resources,
    handles: Handles,
) -> Result<(Parts, watch::Receiver<bool>), StartError> {
    let mut parts = Parts::default();
    let is_consuming = Arc::new(AtomicBool::new(false));
    let used = UtilisationFigures::default();
    admin_interface(&mut parts, settings, resources, &is_consuming, &used);
    announcements(&mut parts, settings, resources).await?;
    let Handles {
        services,
        replies,
        notifications,
    } = handles;
    if let Some(notifications) = notifications {
        parts.spawn("notifications", |stop| {
            notifications.notifier.run(notifications.queued, stop)
        });
    }
    parts.spawn("answers", |stop| replies.run(stop));
    let (db, key) = (resources.database.clone(), JournalKey::clone(&resources.key));
    parts.spawn("sealing", |stop| sealing::run(db, key, stop));
    periodic_tasks(&mut parts, settings, &services, used);
    let removal = TrustRemoval {
        db: services.db.clone(),
        me: services.me.clone(),
        trusts: resources.trusts.clone(),
    };
    parts.spawn("trust removal", |stop| removal.run(stop));
    let swept = services.clone();
    parts.spawn("sweep", |stop| sweep::run(swept, stop));
    let executor = Executor::new(services.clone());
    parts.spawn("operations", |stop| executor.run(stop));
    let consuming = consumer(&mut parts, settings, resources, services, is_consuming);
    Ok((parts, consuming))
}

fn admin_interface(
    parts: &mut Parts,
    settings: &Settings,
    resources: &mut Resources,
    is_consuming: &Arc<AtomicBool>,
    used: &UtilisationFigures,
) {
    if let Some(listener) = resources.admin.take() {
        let readiness = http::Readiness {
            database: resources.database.clone(),
            transport: Arc::clone(&resources.transport),
            consuming: Arc::clone(is_consuming),
            used: used.clone(),
        };
        let hosts = AdminHosts::new(&settings.default.host, &settings.conductor.admin_hosts);
        parts.spawn("admin interface", |stop| {
            http::serve(listener, hosts, readiness, stop)
        });
    }
}

/// This conductor and its drivers, in the tables that others look at.
async fn announcements(
    parts: &mut Parts,
    settings: &Settings,
    resources: &Resources,
) -> Result<(), StartError> {
    let (host, interval) = (
        settings.default.host.clone(),
        settings.conductor.service_report_interval,
    );
    let announcer = Announcer {
        db: resources.database.clone(),
        me: resources.me.clone(),
        host: host.clone(),
        registry: resources.drivers.registry.clone(),
        interval,
        alive: settings.default.service_down_time,
        keep: settings.default.service_down_time * 2,
        changed: Arc::clone(&resources.drivers.changed),
    };
    // Once before anything else: the API may ask the moment it sees us consuming.
    resources.database.at_start(|| announcer.announce()).await?;
    parts.spawn("driver announcements", |stop| announcer.run(stop));
    let registry = resources.drivers.registry.clone();
    parts.spawn("what drivers lack", |stop| driver_lacks::run(registry, stop));
    let db = resources.database.clone();
    parts.spawn("heartbeat", move |stop| {
        service_heartbeat::run(db, host, interval, stop)
    });
    Ok(())
}

fn periodic_tasks(
    parts: &mut Parts,
    settings: &Settings,
    services: &OperationServices,
    used: UtilisationFigures,
) {
    let options = &settings.conductor;
    if settings.default.periodic_enable {
        let pace = Pace::every(options.status_poll_interval, options);
        let (db, interval) = (services.db.clone(), pace.interval);
        parts.spawn("journal metrics", move |stop| {
            journal_metrics::run(db, interval, stop)
        });
        let sync = StatusSync::new(
            services.db.clone(),
            services.me.clone(),
            Arc::clone(&services.drivers),
            Arc::clone(&services.signals),
            services.notices.clone(),
            pace,
        )
        .with_objects(services.objects());
        parts.spawn("status sync", |stop| sync.run(stop));
        if let Some(interval) = settings.kubernetes.health_polling_interval {
            let pace = Pace::every(interval, options);
            let (utilisation, queue) = Utilisation::new(
                services.db.clone(),
                services.me.clone(),
                pace,
                used,
                settings
                    .drivers
                    .send_cluster_metrics
                    .then(|| services.notices.clone()),
            );
            parts.spawn("utilisation", |stop| utilisation.run(stop));
            let check = HealthCheck::new(
                services.db.clone(),
                services.me.clone(),
                Arc::clone(&services.drivers),
                pace,
                health::Timing::default(),
            )
            .with_objects(services.objects())
            .with_utilisation(queue);
            parts.spawn("health check", |stop| check.run(stop));
        }
    }
    if !options.operation_history.is_zero() {
        let (db, history) = (services.db.clone(), options.operation_history);
        parts.spawn("journal history", move |stop| {
            journal_history::run(db, history, stop)
        });
    }
    let removal = CertificateRemoval {
        db: services.db.clone(),
        me: services.me.clone(),
        certificates: services.certificates.clone(),
    };
    parts.spawn("certificate removal", |stop| removal.run(stop));
    let filling = KeyPoolFilling::new(
        services.certificates.key_pool().clone(),
        Arc::clone(&services.signals),
    );
    parts.spawn("pool of keys", |stop| filling.run(stop));
}

fn consumer(
    parts: &mut Parts,
    settings: &Settings,
    resources: &Resources,
    services: OperationServices,
    is_consuming: Arc<AtomicBool>,
) -> watch::Receiver<bool> {
    let (addressing, batch) = (Addressing::from(settings), settings.conductor.accept_batch);
    let (started, consuming) = watch::channel(false);
    let transport = Arc::clone(&resources.transport);
    let settings = settings.clone();
    parts.spawn("consumer", move |stop| async move {
        let driver_calls = DriverCalls::new(&settings, &services, stop.clone());
        let Some(server) = listen(&transport, addressing, &stop).await else {
            return;
        };
        is_consuming.store(true, Ordering::Relaxed);
        // Nobody may be waiting for it.
        let _ = started.send(true);
        tracing::info!("taking requests");
        let consumer = Consumer {
            server,
            transport,
            answerer: Answerer::new(services.db.clone(), services.certificates)
                .with_objects_rpc(settings.conductor.objects_rpc)
                .with_driver_calls(driver_calls),
            acceptor: Acceptor::new(
                services.db,
                services.drivers,
                services.key,
                services.me,
                services.notices,
            ),
            answers: services.answers,
            monitors: services.monitors,
            signals: services.signals,
            batch,
        };
        consumer.run(stop).await;
        is_consuming.store(false, Ordering::Relaxed);
    });
    consuming
}

/// Waits for the broker; `None`: stopped before it was there, or it refuses us.
async fn listen(
    transport: &Arc<dyn Transport>,
    addressing: Addressing,
    stop: &CancellationToken,
) -> Option<RpcServer> {
    let id = new_server_id();
    let server = tokio::select! {
        server = RpcServer::start(Arc::clone(transport), addressing, &id) => server,
        () = stop.cancelled() => return None,
    };
    let server = server
        .inspect_err(|error| tracing::error!(%error, "cannot take messages from the broker"))
        .ok()?;
    Some(server.on_stranger(|is_refused| {
        let outcome = if is_refused { "refused" } else { "accepted" };
        metrics::counter!(metric::MESSAGES_UNSIGNED, "outcome" => outcome).increment(1);
    }))
}
