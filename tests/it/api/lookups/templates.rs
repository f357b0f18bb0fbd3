//! Cluster templates.

use anyhow::Result;
use magnum_tests::cloud_services::Service;
use serde_json::{Value, json};

use super::world::{World, refused, unique, uuid};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_names_things_by_id_or_by_name() -> Result<()> {
    let world = World::start().await?;
    let client = world.client(&world.member).await?;
    let made = client
        .post("/clustertemplates", &world.template(json!({})))
        .await?
        .expect(201)?;
    assert_eq!(made["image_id"], json!(world.things.image));
    assert_eq!(made["cluster_distro"], "ubuntu");
    let things = &world.things;
    let by_id = json!({
        "image_id": things.image_id, "flavor_id": things.flavor_id, "master_flavor_id": null,
        "external_network_id": things.external_id, "fixed_network": things.network_id, "fixed_subnet": things.subnet_id,
    });
    client
        .post("/clustertemplates", &world.template(by_id))
        .await?
        .expect(201)?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_ambiguous_or_foreign_resource_is_refused() -> Result<()> {
    let world = World::start().await?;
    let cloud = world.cloud;
    let client = world.client(&world.member).await?;
    let (twin, private, plain) = (unique("twin"), unique("private"), unique("plain"));
    for _ in 0..2 {
        cloud.image(&twin, "public", &[("os_distro", "ubuntu")]).await?;
        cloud.network(&world.member, &twin).await?;
    }
    let private_id = cloud
        .image(&private, "private", &[("os_distro", "ubuntu")])
        .await?;
    cloud.image(&plain, "public", &[]).await?;
    let stranger = cloud.people.person(&["member", "reader"]).await?;
    let theirs = unique("theirs");
    let theirs_id = cloud.network(&stranger, &theirs).await?;
    let elsewhere = unique("elsewhere");
    let other = cloud.network(&world.member, &unique("other")).await?;
    cloud.subnet(&world.member, &other, &elsewhere).await?;
    let diskless = unique("diskless");
    cloud.flavor(&diskless, 0).await?;
    let fast = unique("fast");
    cloud.volume_type(&fast).await?;

    let none = "00000000-dead-4bad-8bad-000000000000";
    for (attribute, value, status, words) in [
        ("image_id", "no-such", 400, "Image no-such could not be found."),
        ("image_id", none, 400, "could not be found."),
        (
            "image_id",
            twin.as_str(),
            409,
            "Multiple images exist with same name",
        ),
        ("image_id", private.as_str(), 400, "could not be found."),
        ("image_id", private_id.as_str(), 400, "could not be found."),
        (
            "image_id",
            plain.as_str(),
            400,
            "doesn't contain os_distro field.",
        ),
        ("flavor_id", "no-such", 400, "Unable to find flavor no-such."),
        (
            "master_flavor_id",
            "../servers",
            400,
            "Unable to find flavor ../servers.",
        ),
        (
            "flavor_id",
            diskless.as_str(),
            400,
            "Flavor with zero root volume size",
        ),
        (
            "external_network_id",
            "no-such",
            400,
            "Unable to find external network no-such.",
        ),
        (
            "external_network_id",
            world.things.network.as_str(),
            400,
            "Unable to find external network",
        ),
        ("fixed_network", none, 400, "Unable to find fixed network"),
        (
            "fixed_network",
            twin.as_str(),
            409,
            "Multiple networks exist with same name",
        ),
        (
            "fixed_network",
            theirs.as_str(),
            400,
            "Unable to find fixed network",
        ),
        (
            "fixed_network",
            theirs_id.as_str(),
            400,
            "Unable to find fixed network",
        ),
        (
            "fixed_subnet",
            "no-such",
            400,
            "Unable to find fixed subnet no-such.",
        ),
        (
            "fixed_subnet",
            elsewhere.as_str(),
            400,
            "is not one of the fixed network",
        ),
    ] {
        let body = world.template(json!({attribute: value}));
        refused(&client.post("/clustertemplates", &body).await?, status, words)?;
    }
    let labels = |name: &str| json!({"labels": {"boot_volume_type": name, "boot_volume_size": "10"}, "flavor_id": diskless});
    let answer = client
        .post("/clustertemplates", &world.template(labels("no-such")))
        .await?;
    refused(&answer, 400, "Valid volume type could not be found.")?;
    client
        .post("/clustertemplates", &world.template(labels(&fast)))
        .await?
        .expect(201)?;
    // Each sees what is theirs.
    let theirs = json!({"fixed_network": theirs, "fixed_subnet": null});
    let client = world.client(&stranger).await?;
    client
        .post("/clustertemplates", &world.template(theirs))
        .await?
        .expect(201)?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patch_checks_the_changed_fields_and_resolves_the_driver_again() -> Result<()> {
    let world = World::start().await?;
    let client = world.client(&world.member).await?;
    let flavor = unique("flavor");
    let flavor_id = world.cloud.flavor(&flavor, 20).await?;
    let body = world.template(json!({"flavor_id": flavor, "fixed_subnet": null, "fixed_network": null}));
    let template = uuid(&client.post("/clustertemplates", &body).await?.expect(201)?)?;
    let path = format!("/clustertemplates/{template}");
    let replace = |attribute: &str, value: Value| json!([{"op": "replace", "path": format!("/{attribute}"), "value": value}]);

    let unknown = client
        .patch(&path, &replace("master_flavor_id", json!("no-such")))
        .await?;
    refused(&unknown, 400, "Unable to find flavor no-such.")?;
    let network = client
        .patch(
            &path,
            &json!([{"op": "add", "path": "/fixed_network", "value": "no-such"}]),
        )
        .await?;
    refused(&network, 400, "Unable to find fixed network no-such.")?;
    let unknown = unique("unknown");
    world
        .cloud
        .image(
            &unknown,
            "public",
            &[("magnum_distro", "ubuntu"), ("magnum_driver", "no_such_driver")],
        )
        .await?;
    // A new image's choice goes before the driver that the old one got.
    let answer = client.patch(&path, &replace("image_id", json!(unknown))).await?;
    refused(&answer, 400, "Cluster driver (no_such_driver) not supported.")?;
    let both = json!([
        {"op": "replace", "path": "/image_id", "value": world.things.image_id},
        {"op": "remove", "path": "/driver"},
    ]);
    let patched = client.patch(&path, &both).await?.expect(200)?;
    assert_eq!(patched["driver"], "scripted");
    // What was taken away meanwhile does not stop a new name.
    let admin = world.cloud.openstack.log_in("admin", "admin").await?;
    let nova = world.cloud.address(Service::Nova);
    let url = format!("http://{nova}/v2.1/flavors/{flavor_id}");
    admin.ask(reqwest::Method::DELETE, url, Value::Null).await?;
    client
        .patch(&path, &replace("name", json!("renamed")))
        .await?
        .expect(200)?;
    world.stop().await;
    Ok(())
}
