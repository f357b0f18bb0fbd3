//! How often services are asked.

use std::collections::BTreeMap;

use anyhow::Result;
use magnum_tests::cloud_services::{CloudServices, Service};
use magnum_tests::http_trap::HttpTrap;
use serde_json::json;

use super::world::{World, settings, unique, uuid, via};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_thing_is_asked_for_once_by_a_filter_and_all_lists_are_short() -> Result<()> {
    let cloud = CloudServices::shared().await?;
    let mut settings = settings(cloud);
    let mut lines = Vec::new();
    for service in [Service::Glance, Service::Nova, Service::Neutron, Service::Cinder] {
        let line = HttpTrap::start(cloud.address(service)).await?;
        via(cloud, &mut settings, service, line.address()).await?;
        lines.push(line);
    }
    let world = World::with(cloud, settings).await?;
    let client = world.client(&world.member).await?;
    let mut before = BTreeMap::new();
    let mut since = || {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (what, count) in lines.iter().flat_map(HttpTrap::seen) {
            let what = what.split('?').next().unwrap_or_default().to_owned();
            *seen.entry(what).or_default() += count;
        }
        let asked: BTreeMap<String, usize> = seen
            .iter()
            .map(|(what, count)| (what.clone(), count - before.get(what).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect();
        before = seen;
        asked
    };

    // By name: a flavor's name is tried as an id first, and the list serves both flavors.
    let made = client
        .post("/clustertemplates", &world.template(json!({})))
        .await?
        .expect(201)?;
    let by_name = since();
    assert_eq!(by_name.values().sum::<usize>(), 6, "{by_name:?}");
    assert_eq!(by_name["GET /v2/images"], 1);
    assert_eq!(by_name["GET /v2.1/flavors/detail"], 1);
    assert_eq!(
        (by_name["GET /v2.0/networks"], by_name["GET /v2.0/subnets"]),
        (2, 1)
    );

    let things = &world.things;
    let by_id = json!({
        "image_id": things.image_id, "flavor_id": things.flavor_id, "master_flavor_id": things.flavor_id,
        "external_network_id": things.external_id, "fixed_network": things.network_id, "fixed_subnet": things.subnet_id,
    });
    client
        .post("/clustertemplates", &world.template(by_id))
        .await?
        .expect(201)?;
    let by_id = since();
    assert_eq!(by_id.values().sum::<usize>(), 5, "{by_id:?}");

    // A cluster asks for its key pair besides.
    let key = unique("key");
    cloud.key_pair(&world.member, &key).await?;
    let body = json!({"cluster_template_id": uuid(&made)?, "keypair": key});
    client.post("/clusters", &body).await?.expect(202)?;
    let cluster = since();
    assert_eq!(cluster.values().sum::<usize>(), 7, "{cluster:?}");

    let path = format!("/clustertemplates/{}", uuid(&made)?);
    let rename = json!([{"op": "replace", "path": "/tags", "value": "a"}]);
    client.patch(&path, &rename).await?.expect(200)?;
    assert_eq!(
        since(),
        BTreeMap::new(),
        "what a patch does not change is not asked for"
    );
    world.stop().await;
    Ok(())
}
