//! Drivers that are not here, or cannot be started here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::Result;
use diesel::prelude::*;
use magnum_db::schema::conductor_driver::dsl;
use nix::sys::signal::Signal;

use super::{Effect, last};
use crate::nemesis::plan::Planned;
use crate::nemesis::world::World;

/// Seen by what it announces.
pub(super) async fn missing(world: &World, fault: &Planned) -> Result<Effect> {
    let host = world.conductor(fault.place)?;
    let away = host.drivers().with_extension("away");
    fs::rename(host.drivers(), &away)?;
    host.signal(Signal::SIGHUP)?;
    last(fault).await;
    let name = host.name.clone();
    let ask = world.direct.run(move |conn| {
        let announced = dsl::conductor_driver
            .filter(dsl::host.eq(name))
            .filter(dsl::error.is_null());
        let count: i64 = announced.count().get_result(conn)?;
        Ok(count)
    });
    let announced = tokio::time::timeout(Duration::from_secs(5), ask).await;
    fs::rename(&away, host.drivers())?;
    host.signal(Signal::SIGHUP)?;
    let is_gone = matches!(announced, Ok(Ok(0)));
    Ok(Effect::of(
        is_gone,
        "it announced none".into(),
        "it was away, or the database was",
    ))
}

/// Seen by what it logs, once for each time that it gives up.
pub(super) async fn broken(world: &World, fault: &Planned) -> Result<Effect> {
    const GIVES_UP: &str = "cannot run the driver";
    let host = world.conductor(fault.place)?;
    let before = host.log().matches(GIVES_UP).count();
    set_modes(host.driver_programs()?, 0o644)?;
    last(fault).await;
    set_modes(host.driver_programs()?, 0o755)?;
    let given_up = host.log().matches(GIVES_UP).count() - before;
    let seen = format!("{given_up} operations were left to others");
    Ok(Effect::of(given_up > 0, seen, "it claimed nothing"))
}

fn set_modes(programs: Vec<std::path::PathBuf>, mode: u32) -> Result<()> {
    for program in programs {
        fs::set_permissions(program, Permissions::from_mode(mode))?;
    }
    Ok(())
}
