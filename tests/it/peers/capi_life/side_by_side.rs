//! Both kinds of conductors at once, with one queue and one cluster: ours with our driver, Python's with magnum-capi-helm.

use anyhow::{Result, ensure};
use magnum_tests::capi_deployment::Origin;

use super::tenant::Tenant;
use super::{OLDER, create};

/// The broker hands requests to them in turn.
const MOST_RESIZES: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn our_conductor_and_pythons_take_turns_with_one_cluster() -> Result<()> {
    let mut tenant = Tenant::new(Origin::Shipped).await?;
    create(&mut tenant).await?;
    let (uuid, stack) = tenant.identity().await?;
    let credential = tenant.credentials().await?;
    let python = tenant.python_beside().await?;
    let (mut by_ours, mut by_python) = (0, 0);
    for resize in 1..=MOST_RESIZES {
        let known = tenant.operations().await?;
        let workers = resize + 1;
        tenant.run(&format!("cluster resize mine {workers}")).await?;
        let machines = [("control-plane", 1), ("default-worker", workers)];
        tenant.machines(OLDER, &machines).await?;
        tenant.status("UPDATE_COMPLETE").await?;
        tenant
            .node_group("default-worker", "UPDATE_COMPLETE", workers)
            .await?;
        // Python's conductor keeps no journal.
        match tenant.operations().await? - known {
            0 => by_python += 1,
            _ => by_ours += 1,
        }
        let revisions = tenant.release().await?.len();
        ensure!(
            revisions == resize + 1,
            "{revisions} revisions after {resize} resizes"
        );
        if by_ours > 0 && by_python > 0 {
            break;
        }
    }
    ensure!(
        by_ours > 0 && by_python > 0,
        "{by_ours} by ours, {by_python} by Python's"
    );
    ensure!(tenant.credentials().await? == credential);
    tenant.is_healthy().await?;

    tenant.run("cluster delete mine").await?;
    tenant.is_gone().await?;
    drop(python);
    // Python's conductor leaves two of the cluster's four certificates, if it is the one that deletes.
    tenant
        .nothing_is_left_of(&uuid, &stack, &["cluster", "nodegroup"])
        .await
}
