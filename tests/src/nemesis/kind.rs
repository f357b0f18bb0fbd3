//! Every kind of fault: whom it meets, what of them it takes for itself, and how long it lasts.

use std::ops::RangeInclusive;

use crate::Backend;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `kill -9` of a conductor, which comes back.
    KillConductor,
    /// A conductor stands still for longer than a lease, and goes on.
    FreezeConductor,
    /// A conductor is stopped in good order, and comes back.
    LeaveConductor,
    /// One more conductor, for a while.
    JoinConductor,
    /// `kill -9` of an API, which comes back.
    KillApi,
    /// Every piece on a line to the database is late.
    SlowDatabase,
    /// A line to the database is cut.
    CutDatabase,
    /// A line to the database swallows everything and says nothing.
    BlackHoleDatabase,
    /// Lines to the database are cut after `COMMIT` was sent, before its answer.
    CutAfterCommit,
    /// The database server is stopped in good order, and comes back.
    RestartDatabase,
    /// `kill -9` of the database server, which comes back.
    KillDatabase,
    /// The database server stands still.
    FreezeDatabase,
    /// Somebody holds the row of a cluster.
    HeldRow,
    /// A line to the broker is cut.
    CutBroker,
    /// A line to the broker swallows everything and says nothing.
    BlackHoleBroker,
    /// The broker is stopped in good order, and comes back.
    RestartBroker,
    /// `kill -9` of the broker, which comes back.
    KillBroker,
    /// The broker is short of memory, and takes nothing.
    MemoryAlarm,
    /// The broker takes deliveries back that are not acknowledged soon.
    ConsumerTimeout,
    /// The wall clock of a conductor's host steps, and steps back.
    ConductorClock,
    /// The wall clock of the database's host steps, and steps back.
    DatabaseClock,
    /// A conductor has not the driver.
    MissingDriver,
    /// A conductor cannot start the driver's program.
    BrokenDriver,
    /// A conductor cannot open anything more.
    NoDescriptors,
    /// A conductor cannot start anything more.
    NoProcesses,
    /// There is no room for what a conductor writes.
    FullDisk,
}

/// On whose account a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A conductor's host.
    Conductor(usize),
    /// An API's host.
    Api(usize),
    /// The servers that all share.
    Servers,
}

/// What one fault has for itself: two faults that want the same are not at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The process there.
    Process,
    /// The line from there to the database.
    DatabaseLine,
    /// The line from there to the broker.
    BrokerLine,
    /// The database server.
    Database,
    /// The broker.
    Broker,
    /// The rows.
    Rows,
    /// The clock there.
    Clock,
    /// The drivers there.
    Drivers,
    /// What the process there may use.
    Limits,
    /// The place of one more conductor.
    Guest,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::KillConductor,
        Self::FreezeConductor,
        Self::LeaveConductor,
        Self::JoinConductor,
        Self::KillApi,
        Self::SlowDatabase,
        Self::CutDatabase,
        Self::BlackHoleDatabase,
        Self::CutAfterCommit,
        Self::RestartDatabase,
        Self::KillDatabase,
        Self::FreezeDatabase,
        Self::HeldRow,
        Self::CutBroker,
        Self::BlackHoleBroker,
        Self::RestartBroker,
        Self::KillBroker,
        Self::MemoryAlarm,
        Self::ConsumerTimeout,
        Self::ConductorClock,
        Self::DatabaseClock,
        Self::MissingDriver,
        Self::BrokenDriver,
        Self::NoDescriptors,
        Self::NoProcesses,
        Self::FullDisk,
    ];

    /// Whether there is such a fault with this database. SQLite is a file: it has no server, no lines and no locks of rows, and
    /// its clock is that of whoever asks. A delivery is late because its conductor's line to the server stands still. Where a server
    /// keeps the rows, a conductor writes nothing that a full disk would harm.
    pub fn exists_with(self, backend: Backend) -> bool {
        use Kind::{
            BlackHoleDatabase, ConductorClock, ConsumerTimeout, CutAfterCommit, CutDatabase, DatabaseClock,
            FreezeDatabase, FullDisk, HeldRow, KillDatabase, RestartDatabase, SlowDatabase,
        };
        let is_of_a_server = matches!(
            self,
            SlowDatabase
                | CutDatabase
                | BlackHoleDatabase
                | CutAfterCommit
                | RestartDatabase
                | KillDatabase
                | FreezeDatabase
                | HeldRow
                | ConductorClock
                | DatabaseClock
                | ConsumerTimeout
        );
        match backend {
            Backend::Sqlite => !is_of_a_server,
            Backend::Mariadb | Backend::Postgres => self != FullDisk,
        }
    }

    /// What it takes for itself.
    pub fn resource(self) -> Resource {
        match self {
            Self::KillConductor | Self::FreezeConductor | Self::LeaveConductor | Self::KillApi => {
                Resource::Process
            }
            Self::JoinConductor => Resource::Guest,
            Self::SlowDatabase | Self::CutDatabase | Self::BlackHoleDatabase | Self::CutAfterCommit => {
                Resource::DatabaseLine
            }
            Self::RestartDatabase | Self::KillDatabase | Self::FreezeDatabase => Resource::Database,
            Self::HeldRow => Resource::Rows,
            Self::CutBroker | Self::BlackHoleBroker => Resource::BrokerLine,
            Self::RestartBroker | Self::KillBroker | Self::MemoryAlarm | Self::ConsumerTimeout => {
                Resource::Broker
            }
            Self::ConductorClock | Self::DatabaseClock => Resource::Clock,
            Self::MissingDriver | Self::BrokenDriver => Resource::Drivers,
            Self::NoDescriptors | Self::NoProcesses | Self::FullDisk => Resource::Limits,
        }
    }

    /// Where it can be, with so many conductors and APIs. Drivers of the first conductor stay: what a version has built is left
    /// to who has it.
    pub fn places(self, conductors: usize, apis: usize) -> Vec<Place> {
        let of_conductors = (0..conductors).map(Place::Conductor);
        let of_apis = (0..apis).map(Place::Api);
        match self {
            Self::KillConductor
            | Self::FreezeConductor
            | Self::LeaveConductor
            | Self::ConductorClock
            | Self::NoDescriptors
            | Self::NoProcesses => of_conductors.collect(),
            Self::MissingDriver | Self::BrokenDriver => of_conductors.skip(1).collect(),
            Self::KillApi => of_apis.collect(),
            Self::SlowDatabase
            | Self::CutDatabase
            | Self::BlackHoleDatabase
            | Self::CutAfterCommit
            | Self::CutBroker
            | Self::BlackHoleBroker => of_conductors.chain(of_apis).collect(),
            Self::JoinConductor
            | Self::RestartDatabase
            | Self::KillDatabase
            | Self::FreezeDatabase
            | Self::HeldRow
            | Self::RestartBroker
            | Self::KillBroker
            | Self::MemoryAlarm
            | Self::ConsumerTimeout
            | Self::DatabaseClock
            | Self::FullDisk => vec![Place::Servers],
        }
    }

    /// Whether a conductor that it meets carries nothing out meanwhile. At least one is always spared that.
    pub fn disables(self) -> bool {
        !matches!(
            self,
            Self::SlowDatabase | Self::CutAfterCommit | Self::ConductorClock | Self::JoinConductor
        )
    }

    /// How long it may last, in milliseconds. Several are longer than the lease of three seconds.
    pub fn lasts(self) -> RangeInclusive<u64> {
        match self {
            Self::KillConductor | Self::LeaveConductor | Self::KillApi | Self::CutDatabase => 200..=4000,
            Self::KillDatabase | Self::RestartDatabase | Self::KillBroker | Self::RestartBroker => 200..=3000,
            Self::FreezeConductor | Self::FreezeDatabase => 4000..=8000,
            Self::SlowDatabase | Self::BlackHoleDatabase | Self::HeldRow | Self::CutAfterCommit => {
                3000..=10_000
            }
            Self::CutBroker | Self::MemoryAlarm => 1000..=8000,
            Self::BlackHoleBroker | Self::ConsumerTimeout => 5000..=12_000,
            Self::ConductorClock | Self::DatabaseClock => 4000..=12_000,
            Self::MissingDriver | Self::BrokenDriver | Self::JoinConductor => 6000..=15_000,
            Self::NoDescriptors | Self::NoProcesses | Self::FullDisk => 2000..=8000,
        }
    }
}
