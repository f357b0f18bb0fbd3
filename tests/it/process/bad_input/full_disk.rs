//! A full disk under SQLite: what the broker has confirmed waits there, unacknowledged, and is carried out when
//! there is room again; what the API would have to write itself (a template, a new cluster's place in the quota) is a
//! 503, never a 202.

use anyhow::{Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::full_disk::FullDisk;
use magnum_tests::process::Launch;
use magnum_tests::{Backend, wait};
use serde_json::json;

use super::{SOON, is_unharmed, operations_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_accepted_is_lost_while_the_disk_is_full() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    // The API waits this long for a conductor before it answers.
    deployment.set("api", "accept_wait", 1);
    let file = deployment.database.file()?.display().to_string();
    let disk = FullDisk::new(&file)?;
    let hold = |launch: Launch| disk.hold(launch);
    let mut conductor = hold(deployment.conductor_launch("c1").await?).start().await?;
    let mut api = deployment.api_on(hold).await?;
    let rest = api.rest.clone();
    let template = rest.create_template("t").await?;
    let before = rest.create_cluster(&template, "before", json!({})).await?;
    rest.wait_status(&before, "CREATE_COMPLETE", SOON).await?;
    let (one, two, three) = tokio::try_join!(
        rest.create_cluster(&template, "one", json!({})),
        rest.create_cluster(&template, "two", json!({})),
        rest.create_cluster(&template, "three", json!({})),
    )?;
    for cluster in [&one, &two, &three] {
        rest.wait_status(cluster, "CREATE_COMPLETE", SOON).await?;
    }

    // One driver is at work when the disk fills up; its result has to wait for room.
    let during = rest
        .create_cluster(&template, "during", json!({"scripted_create": "wait"}))
        .await?;
    wait::until("the driver to begin", SOON, async || {
        ensure!(!deployment.record.begun("create", &during)?.is_empty(), "not yet");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    disk.fill()?;
    deployment.record.let_go(&during)?;

    for answer in tokio::try_join!(rest.resize(&one, 2), rest.resize(&two, 2), rest.resize(&three, 2))
        .map(<[_; 3]>::from)?
    {
        answer.expect(202)?;
    }
    conductor.wait_log("requests cannot be recorded", SOON).await?;
    let no_room = json!({
        "name": "no-room", "image_id": magnum_tests::rest::IMAGE, "coe": "kubernetes", "driver": "scripted",
        "external_network_id": "public", "keypair_id": "key",
    });
    for refused in [
        rest.post("/clustertemplates", &no_room).await?,
        rest.ask_for_cluster(&template, "no-room", json!({})).await?,
    ] {
        ensure!(refused.status.as_u16() == 503, "{refused:?}");
        ensure!(
            refused.detail().contains("database is not available"),
            "{refused:?}"
        );
    }
    ensure!(
        api.program.log().contains("disk is full"),
        "the operator is told why"
    );
    // Reading is not asked for here: opening another connection can need room of its own, in `-shm`.
    for waiting in [&one, &two, &three] {
        ensure!(
            operations_of(&deployment, waiting).await?.len() == 1,
            "its create"
        );
        ensure!(
            deployment.record.begun("update", waiting)?.is_empty(),
            "no driver before the journal"
        );
    }
    is_unharmed(&mut conductor)?;

    disk.free()?;
    rest.wait_status(&during, "CREATE_COMPLETE", SOON).await?;
    for cluster in [&one, &two, &three] {
        rest.wait_status(cluster, "UPDATE_COMPLETE", SOON).await?;
    }
    let operations = deployment.settled(SOON).await?;
    ensure!(operations.len() == 8, "{operations:?}");
    ensure!(
        operations.iter().all(|one| one["state"] == "succeeded"),
        "{operations:?}"
    );
    rest.create_template("room").await?;
    is_unharmed(&mut conductor)?;
    is_unharmed(&mut api.program)
}
