//! A conductor that is gone in the middle of a driver's call: no process of its goes on, the next conductor brings the
//! operation to its end in spite of what the call has left locked, and nothing is left of both.

use anyhow::{Result, ensure};
use magnum_tests::capi_deployment::Origin;
use nix::sys::signal::Signal;

use super::tenant::Tenant;
use super::{CREATE, OLDER, is_made, templates};

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_whose_conductor_was_killed_in_the_middle_of_helm_is_brought_to_its_end() -> Result<()> {
    killed_in_the_middle_of_helm(Origin::CapiHelm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn our_driver_brings_an_operation_to_its_end_whose_conductor_was_killed_in_the_middle_of_helm()
-> Result<()> {
    killed_in_the_middle_of_helm(Origin::Shipped).await
}

async fn killed_in_the_middle_of_helm(origin: Origin) -> Result<()> {
    let mut tenant = Tenant::new(origin).await?;
    templates(&mut tenant).await?;
    tenant.hold_helm()?;
    tenant.run(CREATE).await?;
    let helm = tenant.helm_holds().await?;
    match origin {
        Origin::Shipped => tenant.crash_machine(helm).await?,
        Origin::CapiHelm | Origin::ClusterApi => tenant.kill_conductor().await?,
    }
    let release = tenant.release().await?;
    ensure!(release == ["1 pending-install"], "{release:?}");
    tenant.let_helm_go()?;
    drop(tenant.start_conductor("heir").await?);
    let made = tenant.reaches(CREATE, "CREATE_COMPLETE").await?;
    // Helm goes on from a failed first revision, and has replaced it then.
    let release = tenant.release().await?;
    ensure!(release == ["1 superseded", "2 deployed"], "{release:?}");
    is_made(&mut tenant, &made).await?;
    let credentials = tenant.credentials().await?;
    ensure!(credentials.len() == 1, "{credentials:?}");

    let resize = "cluster resize mine 2";
    tenant.hold_helm()?;
    tenant.run(resize).await?;
    tenant.helm_holds().await?;
    tenant.kill_conductor().await?;
    let release = tenant.release().await?;
    let interrupted = match origin {
        // Its guard tells helm, which writes it down.
        Origin::Shipped => "3 failed",
        Origin::CapiHelm | Origin::ClusterApi => "3 pending-upgrade",
    };
    ensure!(
        release.last().is_some_and(|last| last == interrupted),
        "{release:?}"
    );
    tenant.let_helm_go()?;
    drop(tenant.start_conductor("second-heir").await?);
    tenant.reaches(resize, "UPDATE_COMPLETE").await?;
    let release = tenant.release().await?;
    ensure!(
        release.ends_with(&["3 failed".to_owned(), "4 deployed".to_owned()]),
        "{release:?}"
    );
    let machines = [("control-plane", 1), ("default-worker", 2)];
    tenant.machines(OLDER, &machines).await?;

    let (uuid, stack) = tenant.identity().await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

/// Its lease ends while it stands still, another conductor takes the operation over; then it goes on, and must not write.
async fn stood_still_in_the_middle_of_helm(origin: Origin) -> Result<()> {
    let mut tenant = Tenant::new(origin).await?;
    templates(&mut tenant).await?;
    tenant.hold_helm()?;
    tenant.run(CREATE).await?;
    let held = tenant.helm_holds().await?;
    tenant.stop_conductor()?;
    // Its guard hears nothing from it, and ends the call before the lease does.
    tenant.has_ended(held).await?;
    let release = tenant.release().await?;
    let interrupted = match origin {
        Origin::Shipped => "1 failed",
        Origin::CapiHelm | Origin::ClusterApi => "1 pending-install",
    };
    ensure!(release == [interrupted], "{release:?}");
    tenant.let_helm_go()?;
    let mut still = tenant.start_conductor("heir").await?;
    let made = tenant.reaches(CREATE, "CREATE_COMPLETE").await?;
    still.signal(Signal::SIGCONT)?;
    is_made(&mut tenant, &made).await?;
    // Helm goes on from a failed first revision, and has replaced it then.
    let release = tenant.release().await?;
    ensure!(release == ["1 superseded", "2 deployed"], "{release:?}");
    let credentials = tenant.credentials().await?;
    ensure!(credentials.len() == 1, "{credentials:?}");

    let (uuid, stack) = tenant.identity().await?;
    tenant.delete().await?;
    still.terminate(super::tenant::PATIENCE).await?;
    tenant.nothing_is_left(&uuid, &stack).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_that_stood_still_in_the_middle_of_helm_does_not_go_on_with_what_it_has_lost()
-> Result<()> {
    stood_still_in_the_middle_of_helm(Origin::CapiHelm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn our_driver_does_not_go_on_in_a_conductor_that_stood_still_in_the_middle_of_helm() -> Result<()> {
    stood_still_in_the_middle_of_helm(Origin::Shipped).await
}

/// The package locks a cluster in Kubernetes, for a minute at a time. A call that is killed leaves the lock.
#[tokio::test(flavor = "multi_thread")]
async fn an_operation_whose_conductor_was_killed_while_the_cluster_was_locked_waits_for_the_lock()
-> Result<()> {
    let mut tenant = Tenant::new(Origin::ClusterApi).await?;
    templates(&mut tenant).await?;
    tenant.hold_new_credentials().await?;
    tenant.run(CREATE).await?;
    tenant.cloud_holds().await?;
    tenant.kill_conductor().await?;
    // The request was on its way: its credential is made, and nobody hears of it.
    tenant.let_cloud_go().await?;
    drop(tenant.start_conductor("heir").await?);
    tenant
        .is_tried_again_for("while trying to acquiring lock")
        .await?;
    tenant.expire_lock().await?;
    let made = tenant.reaches(CREATE, "CREATE_COMPLETE").await?;
    is_made(&mut tenant, &made).await?;
    let credentials = tenant.credentials().await?;
    ensure!(credentials.len() == 1, "{credentials:?}");

    let (uuid, stack) = tenant.identity().await?;
    tenant.delete().await?;
    tenant.nothing_is_left(&uuid, &stack).await
}
