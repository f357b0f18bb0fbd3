//! Calls that change something: with the cluster to themselves, and at most once.

use anyhow::{Context as _, Result, ensure};
use magnum_tests::{Backend, wait};
use reqwest::Method;
use serde_json::{Value, json};

use super::world::{PATIENCE, World};

fn note(text: &str) -> Value {
    json!({"text": text})
}

#[tokio::test(flavor = "multi_thread")]
async fn change_is_made_and_recorded_in_the_journal_without_its_body() -> Result<()> {
    let world = World::start(Backend::Postgres, |_| {}).await?;
    let cluster = world.cluster("c", json!({})).await?;
    world
        .ask(Method::PUT, &cluster, "notes", Some(&note("top secret")))
        .await?
        .expect(204)?;
    let usage = world
        .ask(Method::GET, &cluster, "disk/usage", None)
        .await?
        .expect(200)?;
    ensure!(usage["notes"] == "top secret", "{usage}");

    // The reading left nothing there.
    let path = format!("/clusters/{cluster}/operations");
    let operations = world.rest().get(&path).await?.expect(200)?;
    let entries: Vec<&Value> = operations["operations"]
        .as_array()
        .context("operations")?
        .iter()
        .filter(|one| one["kind"] == "cluster_driver_call")
        .collect();
    let [entry] = entries[..] else {
        anyhow::bail!("{operations}");
    };
    ensure!(entry["state"] == "succeeded", "{entry}");
    ensure!(entry["reason"] == "The driver replied 204.", "{entry}");
    let events = entry["events"].to_string();
    ensure!(
        events.contains("PUT notes") || !events.contains("detail"),
        "{events}"
    );
    ensure!(!operations.to_string().contains("top secret"), "{operations}");
    ensure!(!world.conductor.log().contains("top secret"));
    ensure!(!world.api.program.log().contains("top secret"));
    let status = world.rest().status(&cluster).await?;
    ensure!(status.as_deref() == Some("CREATE_COMPLETE"), "{status:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_at_work_is_read_but_not_changed() -> Result<()> {
    let world = World::start(Backend::Mariadb, |_| {}).await?;
    let labels = json!({"disk_delay_ms": "3000"});
    let cluster = world.cluster("c", labels).await?;
    world.rest().resize(&cluster, 3).await?.expect(202)?;
    world
        .ask(Method::GET, &cluster, "disk/usage", None)
        .await?
        .expect(200)?;
    let refused = world
        .ask(Method::PUT, &cluster, "notes", Some(&note("x")))
        .await?;
    ensure!(
        refused.status.as_u16() == 409 && refused.detail().contains("needs it to itself"),
        "{refused:?}"
    );
    let rest = world.rest();
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    world.deployment.settled(PATIENCE).await?;
    ensure!(
        world.entries().await?.is_empty(),
        "nothing is left of a refused call"
    );
    world
        .ask(Method::PUT, &cluster, "notes", Some(&note("x")))
        .await?
        .expect(204)?;
    // A status that somebody else has written counts as well: a Python conductor keeps no journal.
    world
        .deployment
        .database
        .execute("UPDATE cluster SET status = 'DELETE_IN_PROGRESS'")
        .await?;
    let refused = world
        .ask(Method::PUT, &cluster, "notes", Some(&note("y")))
        .await?;
    ensure!(
        refused.status.as_u16() == 409 && refused.detail().contains("DELETE_IN_PROGRESS"),
        "{refused:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_and_other_changes_wait_for_the_end_of_a_change() -> Result<()> {
    let world = World::start(Backend::Mariadb, |_| {}).await?;
    let _two = world.deployment.conductor("two").await?;
    let cluster = world.cluster("c", json!({"disk_delay_ms": "3000"})).await?;
    let body = note("first");
    let first = world.ask(Method::PUT, &cluster, "notes", Some(&body));
    let meanwhile = async {
        wait::until("the first call to begin", PATIENCE, async || {
            let begun = world.own_api_calls()?.len();
            ensure!(begun == 1, "{begun}");
            Ok(())
        })
        .await?;
        let second = world
            .ask(Method::PUT, &cluster, "notes", Some(&note("second")))
            .await?;
        ensure!(second.status.as_u16() == 409, "{second:?}");
        world.rest().resize(&cluster, 2).await?.expect(202)
    };
    let (first, meanwhile) = tokio::join!(first, meanwhile);
    first?.expect(204)?;
    meanwhile?;
    world
        .rest()
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    world.deployment.settled(PATIENCE).await?;
    ensure!(world.driver_journal("overlap")?.is_empty(), "two calls at once");
    let usage = world
        .ask(Method::GET, &cluster, "disk/usage", None)
        .await?
        .expect(200)?;
    ensure!(usage["notes"] == "first", "{usage}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_killed_conductor_is_not_repeated_and_frees_the_cluster() -> Result<()> {
    let world = World::start(Backend::Mariadb, |deployment| {
        deployment.set("conductor", "operation_lease", 3);
    })
    .await?;
    let labels = json!({"disk_fail": "hang", "disk_fail_on": "api", "disk_fail_times": "1"});
    let cluster = world.cluster("c", labels).await?;
    let body = note("lost");
    let call = world.ask(Method::PUT, &cluster, "notes", Some(&body));
    let killed = async {
        wait::until("the call to begin", PATIENCE, async || {
            let begun = world.own_api_calls()?.len();
            ensure!(begun == 1, "{begun}");
            Ok(())
        })
        .await
    };
    let mut call = std::pin::pin!(call);
    tokio::select! {
        answer = &mut call => anyhow::bail!("answered: {answer:?}"),
        begun = killed => begun?,
    }
    kill(world.conductor.pid())?;
    let _two = world.deployment.conductor("two").await?;
    let answer = call.await?;
    ensure!([409, 504].contains(&answer.status.as_u16()), "{answer:?}");
    ensure!(answer.detail().contains("not known"), "{answer:?}");
    wait::until("the entry to end", PATIENCE, async || {
        let entries = world.entries().await?;
        ensure!(
            entries.len() == 1 && entries[0]["state"] == "failed",
            "{entries:?}"
        );
        Ok(())
    })
    .await?;
    ensure!(world.own_api_calls()?.len() == 1, "the call was repeated");
    for pid in world.own_api_calls()? {
        ensure!(
            !magnum_tests::process::works(pid),
            "the program outlived its conductor"
        );
    }
    // The cluster is free again, and an operator cannot bring the call back.
    world
        .ask(Method::PUT, &cluster, "notes", Some(&note("new")))
        .await?
        .expect(204)?;
    Ok(())
}

fn kill(pid: u32) -> Result<()> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid)?);
    Ok(nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL)?)
}
