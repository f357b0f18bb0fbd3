//! Clusters, node groups and quotas.

use anyhow::Result;
use serde_json::json;

use super::world::{World, refused, unique, uuid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_needs_its_users_key_pair_and_the_resources_of_its_template() -> Result<()> {
    let world = World::start().await?;
    let cloud = world.cloud;
    let client = world.client(&world.member).await?;
    let key = unique("key");
    cloud.key_pair(&world.member, &key).await?;
    let template = uuid(
        &client
            .post("/clustertemplates", &world.template(json!({})))
            .await?
            .expect(201)?,
    )?;
    let body = |changes: serde_json::Value| {
        let mut body = json!({"cluster_template_id": template, "keypair": key});
        if let (Some(body), Some(changes)) = (body.as_object_mut(), changes.as_object()) {
            body.extend(changes.clone());
        }
        body
    };
    client.post("/clusters", &body(json!({}))).await?.expect(202)?;
    for (changes, status, words) in [
        (
            json!({"keypair": "no-such"}),
            404,
            "Unable to find keypair no-such.",
        ),
        (
            json!({"flavor_id": "no-such"}),
            400,
            "Unable to find flavor no-such.",
        ),
        (
            json!({"master_flavor_id": "no-such"}),
            400,
            "Unable to find flavor no-such.",
        ),
        (
            json!({"fixed_network": "no-such"}),
            400,
            "Unable to find fixed network no-such.",
        ),
        (
            json!({"fixed_subnet": "no-such"}),
            400,
            "Unable to find fixed subnet no-such.",
        ),
        (
            json!({"labels": {"etcd_volume_type": "no-such"}}),
            400,
            "The label etcd_volume_type names 'no-such'",
        ),
    ] {
        refused(&client.post("/clusters", &body(changes)).await?, status, words)?;
    }
    // A colleague has other keys, and sees the rest.
    let colleague = cloud
        .people
        .member_of(
            &world.member.project,
            &world.member.project_id,
            &["member", "reader"],
        )
        .await?;
    let theirs = world.client(&colleague).await?;
    refused(
        &theirs.post("/clusters", &body(json!({}))).await?,
        404,
        "Unable to find keypair",
    )?;
    theirs
        .post("/clusters", &body(json!({"keypair": null})))
        .await?
        .expect(202)?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_group_needs_an_image_and_a_flavor_with_a_disk() -> Result<()> {
    let world = World::start().await?;
    let client = world.client(&world.member).await?;
    let template = uuid(
        &client
            .post("/clustertemplates", &world.template(json!({})))
            .await?
            .expect(201)?,
    )?;
    world
        .sql(&format!(
            "insert into cluster (uuid, name, project_id, user_id, cluster_template_id, status, api_address, flavor_id, \
             labels) values ('f21b26bb-ebb6-4398-ad0e-5a48cd809419', 'c', '{}', '{}', '{template}', 'CREATE_COMPLETE', \
             'https://c', '{}', '{{\"boot_volume_size\": \"10\"}}')",
            world.member.project_id, world.member.id, world.things.flavor
        ))
        .await?;
    let diskless = unique("diskless");
    world.cloud.flavor(&diskless, 0).await?;
    let post = async |changes: serde_json::Value| {
        let mut body = json!({"name": unique("group")});
        if let (Some(body), Some(changes)) = (body.as_object_mut(), changes.as_object()) {
            body.extend(changes.clone());
        }
        client.post("/clusters/c/nodegroups", &body).await
    };
    post(json!({})).await?.expect(202)?;
    post(json!({"image_id": world.things.image_id}))
        .await?
        .expect(202)?;
    // The cluster's label counts where it is inherited, and only there.
    post(json!({"flavor_id": diskless})).await?.expect(202)?;
    refused(
        &post(json!({"flavor_id": diskless, "labels": {}})).await?,
        400,
        "Flavor with zero root volume size",
    )?;
    refused(
        &post(json!({"image_id": "no-such"})).await?,
        400,
        "Image no-such could not be found.",
    )?;
    refused(
        &post(json!({"flavor_id": "no-such"})).await?,
        400,
        "Unable to find flavor no-such.",
    )?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_for_a_project_that_keystone_knows() -> Result<()> {
    let world = World::start().await?;
    let admin = world.cloud.people.person(&["admin", "member", "reader"]).await?;
    let client = world.client(&admin).await?;
    let quota = |project: &str| json!({"project_id": project, "hard_limit": 3});
    let made = client
        .post("/quotas", &quota(&world.member.project_id))
        .await?
        .expect(201)?;
    assert_eq!(made["hard_limit"], 3);
    for project in ["no-such", "..", "a/b"] {
        let words = format!("The project_id {project} could not be found.");
        refused(&client.post("/quotas", &quota(project)).await?, 404, &words)?;
    }
    world.stop().await;
    Ok(())
}
