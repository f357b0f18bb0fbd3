//! What becomes of the tenant's conductor: it moves to Python's or back, is killed or stands still, and ends.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::is_terminal;
use magnum_tests::process::{Launch, Program, works};
use magnum_tests::wait;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};
use serde_json::Value;

use super::tenant::{PATIENCE, Tenant};

impl Tenant {
    /// Ends Python's conductor and starts ours, which has the driver that the cluster needs.
    pub async fn move_to_our_conductor(&mut self) -> Result<()> {
        self.conductor.kill_group().await?;
        let look = Launch::program("magnum-status")?
            .config(&self.capi.deployment.config_file("status")?)
            .args(["upgrade", "check", "--json"]);
        let told: Value = serde_json::from_str(&look.finish().await?.stdout)?;
        let checks = told["checks"].as_array().context("checks")?;
        let of_drivers = checks.iter().find(|one| one["check"] == "Drivers of clusters");
        ensure!(of_drivers.is_some_and(|one| one["result"] == 0), "{told}");
        self.conductor = self.capi.conductor().await?;
        Ok(())
    }

    /// Ends our conductor and starts Python's.
    pub async fn move_to_pythons_conductor(&mut self) -> Result<()> {
        self.conductor.terminate(PATIENCE).await?;
        self.conductor = self.capi.python_conductor().await?;
        Ok(())
    }

    /// Starts Python's conductor beside ours.
    pub async fn python_beside(&self) -> Result<Program> {
        self.capi.python_conductor().await
    }

    /// From now on every helm stops before its first object.
    pub fn hold_helm(&self) -> Result<()> {
        self.capi.helm.hold()
    }

    /// Waits until a helm has stopped there, and returns its process.
    pub async fn helm_holds(&self) -> Result<u32> {
        wait::until("helm to be in the middle", PATIENCE, async || {
            let held = self.capi.helm.held()?.into_iter();
            let mut pids = held.filter_map(|one| u32::try_from(one.pid).ok());
            pids.find(|pid| works(*pid)).context("none")
        })
        .await
    }

    /// Helms go on, and nothing holds the next.
    pub fn let_helm_go(&self) -> Result<()> {
        self.capi.helm.let_go()
    }

    /// From now on nobody gets a new application credential.
    pub async fn hold_new_credentials(&mut self) -> Result<()> {
        self.capi.world.hold_cloud("/application_credentials$").await
    }

    /// Waits until somebody waits for one.
    pub async fn cloud_holds(&mut self) -> Result<()> {
        let world = &mut self.capi.world;
        wait::until("a request to be held", PATIENCE, async || {
            ensure!(world.cloud_holds().await? > 0, "none");
            Ok(())
        })
        .await
    }

    /// The requests that were held go on.
    pub async fn let_cloud_go(&mut self) -> Result<()> {
        self.capi.world.hold_cloud("").await
    }

    /// Waits until the open operation is to be tried again after a failure that has these words in its reason.
    pub async fn is_tried_again_for(&self, words: &str) -> Result<()> {
        wait::until("a failed attempt", PATIENCE, async || {
            let operations = self.capi.deployment.operations().await?;
            let open = operations.iter().find(|one| !is_terminal(one));
            let reason = open.and_then(|one| one["reason"].as_str());
            ensure!(reason.is_some_and(|reason| reason.contains(words)), "{open:?}");
            Ok(())
        })
        .await
    }

    /// The minute is over for which the cluster was locked.
    pub async fn expire_lock(&mut self) -> Result<()> {
        let shown = self.run("cluster show mine -f json").await?;
        let uuid = shown["uuid"].as_str().context("no uuid")?;
        self.capi.management.expire_leases("magnum-system", uuid).await
    }

    /// Kills the conductor alone, and waits until all that it had started has ended.
    pub async fn kill_conductor(&mut self) -> Result<()> {
        self.conductor.kill().await?;
        let helm = &self.capi.helm;
        wait::until("the processes of the conductor to end", PATIENCE, async || {
            let left: Vec<u32> = helm.callers()?.into_iter().filter(|pid| works(*pid)).collect();
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await
    }

    /// Has the conductor's machine crash: the conductor, and what runs beside `helm`, are gone before any of them hears of it.
    pub async fn crash_machine(&mut self, helm: u32) -> Result<()> {
        self.conductor.signal(Signal::SIGSTOP)?;
        let helm = Pid::from_raw(i32::try_from(helm)?);
        killpg(getpgid(Some(helm))?, Signal::SIGKILL)?;
        self.kill_conductor().await
    }

    /// Has the conductor stand still.
    pub fn stop_conductor(&self) -> Result<()> {
        self.conductor.signal(Signal::SIGSTOP)
    }

    /// Waits until a process has ended.
    pub async fn has_ended(&self, pid: u32) -> Result<()> {
        wait::until("the process to end", PATIENCE, async || {
            ensure!(!works(pid), "{pid} works");
            Ok(())
        })
        .await
    }

    /// Starts a conductor called `name`, which is the deployment's from now on. Returns the one before.
    pub async fn start_conductor(&mut self, name: &str) -> Result<Program> {
        let conductor = self.capi.deployment.conductor(name).await?;
        Ok(std::mem::replace(&mut self.conductor, conductor))
    }

    /// The conductor, told to end, leaves no processes and no files.
    pub async fn conductor_leaves_nothing(&mut self) -> Result<()> {
        let (helm, conductor) = (&self.capi.helm, &mut self.conductor);
        let before = helm.callers()?;
        ensure!(before.contains(&conductor.pid()), "{before:?}");
        conductor.terminate(PATIENCE).await?;
        wait::until("the conductor's processes to end", PATIENCE, async || {
            let left = helm.callers()?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
        let folder = fs::read_dir(&self.capi.deployment.folder)?;
        let names = folder.map(|one| Ok(one?.file_name().to_string_lossy().into_owned()));
        let names = names.collect::<Result<Vec<String>>>()?;
        ensure!(
            !names.iter().any(|name| name.starts_with("magnum-python")),
            "{names:?}"
        );
        Ok(())
    }
}
