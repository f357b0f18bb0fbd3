//! Starts again what has ended with an error, as `Restart=on-failure` in our units does: a program that comes up while it may open
//! no file, or while a line is cut, may say so and end. What died of a signal or ended well is not started again: that would be a
//! fault of ours, and is to be seen.

use std::convert::Infallible;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;

use super::world::World;

/// As in `deploy/systemd`.
const RESTART_AFTER: Duration = Duration::from_secs(2);

/// Whether a service manager starts again what ended so.
pub(super) fn is_restarted(ended: ExitStatus) -> bool {
    ended.code().is_some_and(|code| code != 0)
}

/// Works until it is dropped.
///
/// # Errors
/// A program cannot be started at all.
pub async fn work(world: &World) -> Result<Infallible> {
    loop {
        tokio::time::sleep(RESTART_AFTER).await;
        for host in &world.conductors {
            if let Some(status) = host.set_aside_if_failed()? {
                eprintln!(
                    "the conductor of {} ended with {status} and is started again",
                    host.name
                );
                host.start(&world.deployment, world.disk.as_ref()).await?;
            }
        }
        for number in 0..world.apis.len() {
            if let Some(status) = world.apis[number].set_aside_if_failed()? {
                eprintln!("API {number} ended with {status} and is started again");
                world.start_api(number)?;
            }
        }
    }
}
