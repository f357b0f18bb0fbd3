//! How each kind of fault is done, undone, and seen to have happened.
//!
//! A fault is one function: it does harm, waits, undoes it, and tells its effect. It returns an error only when the harness
//! itself has failed. What it wants for itself is taken before: see [`World::take`].

mod broker;
mod clocks;
mod database;
mod drivers;
mod limits;
mod lines;
mod processes;

use std::time::Duration;

use anyhow::Result;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::kind::Kind;
use super::plan::Planned;
use super::world::World;

/// What a fault has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// This was seen.
    Seen(String),
    /// It met nothing that it could have harmed, which may happen; not each time.
    None(String),
}

impl Effect {
    /// `seen` if it is so.
    fn of(is_so: bool, seen: String, none: &str) -> Self {
        if is_so {
            Self::Seen(seen)
        } else {
            Self::None(none.to_owned())
        }
    }
}

/// Does one fault, from its begin to its end.
pub async fn strike(world: &World, fault: &Planned) -> Result<Effect> {
    let _taken = world.take(fault.place, fault.kind.resource()).await?;
    match fault.kind {
        Kind::KillConductor => processes::kill_conductor(world, fault).await,
        Kind::FreezeConductor => processes::freeze_conductor(world, fault).await,
        Kind::LeaveConductor => processes::leave_conductor(world, fault).await,
        Kind::JoinConductor => processes::join_conductor(world, fault).await,
        Kind::KillApi => processes::kill_api(world, fault).await,
        Kind::SlowDatabase => lines::slow_database(world, fault).await,
        Kind::CutDatabase => lines::cut_database(world, fault).await,
        Kind::BlackHoleDatabase => lines::black_hole_database(world, fault).await,
        Kind::CutAfterCommit => lines::cut_after_commit(world, fault).await,
        Kind::CutBroker => lines::cut_broker(world, fault).await,
        Kind::BlackHoleBroker => lines::black_hole_broker(world, fault).await,
        Kind::RestartDatabase => database::restart(world, fault).await,
        Kind::KillDatabase => database::kill(world, fault).await,
        Kind::FreezeDatabase => database::freeze(world, fault).await,
        Kind::HeldRow => database::hold_row(world, fault).await,
        Kind::RestartBroker => broker::restart(world, fault).await,
        Kind::KillBroker => broker::kill(world, fault).await,
        Kind::MemoryAlarm => broker::memory_alarm(world, fault).await,
        Kind::ConsumerTimeout => broker::consumer_timeout(world, fault).await,
        Kind::ConductorClock => clocks::step_conductor(world, fault).await,
        Kind::DatabaseClock => clocks::step_database(world, fault).await,
        Kind::MissingDriver => drivers::missing(world, fault).await,
        Kind::BrokenDriver => drivers::broken(world, fault).await,
        Kind::NoDescriptors => limits::no_descriptors(world, fault).await,
        Kind::NoProcesses => limits::no_processes(world, fault).await,
        Kind::FullDisk => limits::full_disk(world, fault).await,
    }
}

/// As long as it is to last.
async fn last(fault: &Planned) {
    tokio::time::sleep(Duration::from_millis(fault.lasts_ms)).await;
}

/// What else is left to chance.
fn chance(fault: &Planned) -> StdRng {
    StdRng::seed_from_u64(fault.dice)
}
