//! The handles that the parts of a conductor share, each made once.

use std::sync::Arc;

use magnum_config::Settings;
use tokio::sync::mpsc;

use super::StartError;
use super::open::Resources;
use crate::notifications::Notifier;
use crate::operations::at_work::AtWork;
use crate::operations::breakers::Breakers;
use crate::operations::keeper::LeaseKeeper;
use crate::operations::lease_watch::LeaseWatch;
use crate::operations::monitor::CallMonitors;
use crate::operations::notice::{self, Notice, NoticeQueue};
use crate::operations::replies::{self, Replies, ReplySink};
use crate::operations::{OperationServices, OperationTiming, Signals};
use crate::rpc::TransportSink;
use crate::workflows::choose_driver::LoadedDrivers;

/// Handles, and the two parts that are at the other end of a queue in them.
pub(super) struct Handles {
    /// What every part takes its share of.
    pub(super) services: OperationServices,
    /// Sends what is put into `services.answers`.
    pub(super) replies: Replies,
    /// Sends what is put into `services.notices`; `None` where no notification driver is configured, and the queue is
    /// off.
    pub(super) notifications: Option<Notifications>,
}

/// A notifier, and the end of the queue that it empties.
pub(super) struct Notifications {
    pub(super) notifier: Notifier,
    pub(super) queued: mpsc::Receiver<Notice>,
}

impl Handles {
    pub(super) fn wire(settings: &Settings, resources: &Resources) -> Result<Self, StartError> {
        let (database, me) = (&resources.database, &resources.me);
        let sink: Arc<dyn ReplySink> = Arc::new(TransportSink(Arc::clone(&resources.transport)));
        let (answers, due) = replies::queue();
        let notifier = Notifier::new(settings, database.clone(), Arc::clone(&resources.transport))
            .map_err(StartError::Notifications)?;
        let (notices, notifications) = match notifier {
            Some(notifier) => {
                let (notices, queued) = notice::queue();
                (notices, Some(Notifications { notifier, queued }))
            }
            None => (NoticeQueue::default(), None),
        };
        let drivers = LoadedDrivers::new(resources.drivers.registry.clone(), (&settings.drivers).into());
        let timing = OperationTiming::new(&settings.conductor, settings.default.service_down_time);
        Ok(Self {
            replies: Replies::new(database.clone(), me.clone(), Arc::clone(&sink), due),
            notifications,
            services: OperationServices {
                db: database.clone(),
                keeper: LeaseKeeper::new(database, me.clone(), timing.lease),
                lease_watch: LeaseWatch::new(timing.lease),
                drivers: Arc::new(drivers),
                key: Arc::clone(&resources.key),
                me: me.clone(),
                certificates: resources.certificates.clone(),
                timing: Arc::new(timing),
                signals: Arc::new(Signals::default()),
                answers,
                monitors: CallMonitors::new(database.clone(), sink),
                notices,
                at_work: AtWork::default(),
                breakers: Breakers::default(),
            },
        })
    }
}
