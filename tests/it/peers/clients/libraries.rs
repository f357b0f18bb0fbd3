//! python-magnumclient as a library, and openstacksdk.

use anyhow::{Context as _, Result, ensure};
use magnum_tests::rest::IMAGE;
use serde_json::{Value, json};

use super::world::Library::{self, Magnumclient, Sdk};
use super::world::{ANNA, BERT, BOSS, CAROL, CHIEF, PATIENCE, RITA, ROLF, Who, World};

/// Who sees what is of the project `north`.
const SEES: [(Who, bool); 7] = [
    (ANNA, true),
    (CAROL, true),
    (RITA, true),
    (CHIEF, true),
    (BOSS, true),
    (BERT, false),
    (ROLF, false),
];

fn template(name: &str) -> Value {
    json!({
        "name": name, "image_id": IMAGE, "coe": "kubernetes", "external_network_id": "public", "keypair_id": "key",
        "flavor_id": "m1.small", "master_flavor_id": "m1.small", "network_driver": "calico", "labels": {"a": "b"},
    })
}

/// One client of one test.
struct Calls {
    world: World,
    of: Library,
}

impl Calls {
    async fn start(of: Library) -> Result<Self> {
        let world = World::start().await?;
        Ok(Self { world, of })
    }

    async fn call(&mut self, who: Who, call: &str, args: Value, kwargs: Value) -> Result<Value> {
        let told = self.world.call(self.of, who, call, args, kwargs).await;
        told.with_context(|| format!("{who:?} {call}"))
    }

    async fn raises(&mut self, who: Who, call: &str, args: Value, class: &str) -> Result<()> {
        self.world.raises(self.of, who, call, args, class).await
    }

    /// Whether each of them is shown exactly what is of the project.
    async fn lists(&mut self, call: &str, kwargs: &Value) -> Result<()> {
        for (who, sees) in SEES {
            let listed = self.call(who, call, json!([]), kwargs.clone()).await?;
            let count = listed.as_array().context("a list")?.len();
            ensure!(count == usize::from(sees), "{who:?} {call}: {listed}");
        }
        Ok(())
    }
}

fn is_certificate(shown: &Value) -> Result<()> {
    let pem = shown["pem"].as_str().unwrap_or_default();
    ensure!(pem.contains("BEGIN CERTIFICATE"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn magnumclient_as_a_library_works_for_permitted_users() -> Result<()> {
    let mut client = Calls::start(Magnumclient).await?;
    let none = json!({});
    let made = client
        .call(ANNA, "cluster_templates.create", json!([]), template("small"))
        .await?;
    ensure!(made["driver"] == "scripted", "{made}");
    let cluster = json!({"name": "one", "cluster_template_id": "small", "node_count": 2, "master_count": 1});
    client.call(ANNA, "clusters.create", json!([]), cluster).await?;
    client.world.operations(1).await?;
    for call in ["clusters.list", "cluster_templates.list"] {
        client.lists(call, &json!({"detail": true})).await?;
    }
    let one = json!(["one"]);
    for (who, sees) in SEES {
        if sees {
            let seen = client
                .call(who, "clusters.get", one.clone(), none.clone())
                .await?;
            ensure!(
                seen["status"] == "CREATE_COMPLETE" && seen["node_count"] == 2,
                "{seen}"
            );
            let groups = client
                .call(who, "nodegroups.list", one.clone(), none.clone())
                .await?;
            ensure!(groups.as_array().map(Vec::len) == Some(2), "{groups}");
        } else {
            for call in ["clusters.get", "nodegroups.list", "certificates.get"] {
                client.raises(who, call, one.clone(), "NotFound").await?;
            }
        }
    }
    let shown = client
        .call(ANNA, "certificates.get", one.clone(), none.clone())
        .await?;
    is_certificate(&shown)?;
    let change = json!(["one", [{"op": "replace", "path": "/node_count", "value": 3}]]);
    for (who, class) in [(RITA, "Forbidden"), (BERT, "NotFound"), (ROLF, "NotFound")] {
        client
            .raises(who, "clusters.update", change.clone(), class)
            .await?;
        client.raises(who, "clusters.delete", one.clone(), class).await?;
    }
    for who in [RITA, CAROL] {
        client
            .raises(who, "certificates.get", one.clone(), "Forbidden")
            .await?;
    }
    client.call(ANNA, "clusters.update", change, none.clone()).await?;
    client.world.operations(2).await?;
    let changed = client
        .call(CAROL, "clusters.get", one.clone(), none.clone())
        .await?;
    ensure!(changed["node_count"] == 3, "{changed}");
    client.call(ANNA, "clusters.delete", one.clone(), none).await?;
    client.world.operations(3).await?;
    client.raises(ANNA, "clusters.get", one, "NotFound").await?;
    client.world.stack.deployment.settled(PATIENCE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstacksdk_works_for_permitted_users() -> Result<()> {
    let mut client = Calls::start(Sdk).await?;
    let none = json!({});
    let microversions = client
        .call(ANNA, "microversions", json!([]), none.clone())
        .await?;
    ensure!(microversions == json!([[1, 1], [1, 16]]), "{microversions}");
    let found = |kind: &str, name: &str| json!([{"found": kind, "name": name}]);
    client
        .call(ANNA, "create_cluster_template", json!([]), template("small"))
        .await?;
    let change = json!({"dns_nameserver": "9.9.9.9"});
    let of_template = found("find_cluster_template", "small");
    let changed = client
        .call(ANNA, "update_cluster_template", of_template.clone(), change)
        .await?;
    ensure!(changed["dns_nameserver"] == "9.9.9.9", "{changed}");
    let cluster =
        json!({"name": "one", "cluster_template_id": changed["uuid"], "node_count": 1, "master_count": 1});
    let made = client.call(ANNA, "create_cluster", json!([]), cluster).await?;
    client.world.operations(1).await?;
    let id = json!([made["uuid"]]);
    for call in ["clusters", "cluster_templates"] {
        client.lists(call, &none).await?;
    }
    for (who, sees) in SEES {
        let found = client
            .call(who, "find_cluster", json!(["one"]), none.clone())
            .await?;
        ensure!(found.is_null() != sees, "{who:?} {found}");
        if !sees {
            for call in ["get_cluster", "get_cluster_certificate"] {
                client.raises(who, call, id.clone(), "NotFoundException").await?;
            }
        }
    }
    let csr = std::fs::read_to_string(client.world.meant("CSR")?)?;
    let csr = json!({"cluster_uuid": made["uuid"], "csr": csr});
    let signed = client
        .call(ANNA, "create_cluster_certificate", json!([]), csr)
        .await?;
    is_certificate(&signed)?;
    let shown = client
        .call(ANNA, "get_cluster_certificate", id.clone(), none.clone())
        .await?;
    is_certificate(&shown)?;
    for who in [RITA, CAROL] {
        client
            .raises(who, "get_cluster_certificate", id.clone(), "ForbiddenException")
            .await?;
    }
    let services = client.call(CHIEF, "services", json!([]), none.clone()).await?;
    ensure!(services[0]["state"] == "up", "{services}");
    client
        .raises(ANNA, "services", json!([]), "ForbiddenException")
        .await?;
    // Its second argument: whether it keeps silent about a cluster that is not there.
    let told = json!([made["uuid"], false]);
    client
        .raises(RITA, "delete_cluster", told.clone(), "ForbiddenException")
        .await?;
    client
        .raises(BERT, "delete_cluster", told.clone(), "NotFoundException")
        .await?;
    let one = found("find_cluster", "one");
    client
        .call(ANNA, "update_cluster", one, json!({"node_count": 2}))
        .await?;
    client.world.operations(2).await?;
    let changed = client.call(ANNA, "get_cluster", id.clone(), none.clone()).await?;
    ensure!(
        changed["node_count"] == 2 && changed["status"] == "UPDATE_COMPLETE",
        "{changed}"
    );
    client.call(ANNA, "delete_cluster", told, none.clone()).await?;
    client.world.operations(3).await?;
    client
        .call(ANNA, "delete_cluster_template", of_template, none)
        .await?;
    for call in ["clusters", "cluster_templates"] {
        let left = client.call(ANNA, call, json!([]), json!({})).await?;
        ensure!(left == json!([]), "{call}: {left}");
    }
    Ok(())
}
