//! Every command of `openstack coe`, in the order of a life.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::world::{ANNA, CHIEF, PATIENCE, World};

/// The names in a list.
pub fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_succeeds_for_its_user() -> Result<()> {
    let mut world = World::start().await?;
    templates(&mut world).await?;
    quotas(&mut world).await?;
    clusters(&mut world).await?;
    node_groups(&mut world).await?;
    certificates(&mut world).await?;
    end(&mut world).await?;
    let not_done = world.not_done().await?;
    ensure!(not_done.is_empty(), "commands that nobody tried: {not_done:?}");
    world.stack.deployment.settled(PATIENCE).await?;
    Ok(())
}

async fn templates(world: &mut World) -> Result<()> {
    // Without --master-flavor, which Magnum refuses.
    let uuid = world
        .template(ANNA, "small", "--keypair key --flavor m1.small")
        .await?;
    let shown = world.json(ANNA, &format!("cluster template show {uuid}")).await?;
    ensure!(
        shown["name"] == "small" && shown["labels"]["tier"] == "gold" && shown["driver"] == "scripted",
        "{shown}"
    );
    let project = shown["project_id"].as_str().context("a project")?;
    world.call_it("PROJECT", project);
    world.template(ANNA, "newer", "--docker-volume-size 5").await?;
    world.template(ANNA, "spare", "").await?;
    let all = world.json(ANNA, "cluster template list").await?;
    ensure!(names(&all) == ["small", "newer", "spare"], "{all}");
    let some = "cluster template list --limit 2 --sort-key name --sort-dir desc";
    let some = world.json(ANNA, some).await?;
    ensure!(names(&some) == ["spare", "small"], "{some}");
    let change = "cluster template update spare --dns-nameserver 9.9.9.9 --label added=yes --no-label tier \
                  --docker-volume-size 7 --master-lb-enabled";
    world.done(ANNA, change).await?;
    let changed = world.json(ANNA, "cluster template show spare").await?;
    ensure!(
        changed["dns_nameserver"] == "9.9.9.9"
            && changed["docker_volume_size"] == 7
            && changed["master_lb_enabled"] == true
            && changed["labels"] == json!({"added": "yes"}),
        "{changed}"
    );
    world.done(ANNA, "cluster template delete spare").await?;
    let words = "ClusterTemplate spare could not be found";
    world.refused(ANNA, "cluster template show spare", words).await
}

async fn quotas(world: &mut World) -> Result<()> {
    const OF: &str = "--project-id PROJECT --resource Cluster";
    for (word, limit) in [("create", 7), ("update", 9)] {
        let line = format!("quotas {word} {OF} --hard-limit {limit}");
        world.done(CHIEF, &line).await?;
        let shown = world.text(ANNA, &format!("quotas show {OF}")).await?;
        ensure!(shown.contains(&format!("| hard_limit | {limit} ")), "{shown}");
    }
    let listed = world.text(CHIEF, "quotas list --all-tenants").await?;
    ensure!(listed.contains(world.meant("PROJECT")?), "{listed}");
    world.done(CHIEF, &format!("quotas delete {OF}")).await?;
    let listed = world.text(CHIEF, "quotas list --all-tenants").await?;
    ensure!(!listed.contains(world.meant("PROJECT")?), "{listed}");
    let stats = world.text(ANNA, "stats list PROJECT").await?;
    ensure!(stats.contains("| clusters | 0 "), "{stats}");
    let services = world.json(CHIEF, "service list").await?;
    ensure!(
        services[0]["binary"] == "magnum-conductor" && services[0]["state"] == "up",
        "{services}"
    );
    Ok(())
}

async fn clusters(world: &mut World) -> Result<()> {
    let create = "cluster create one --cluster-template small --node-count 2 --timeout 30 --labels own=label --merge-labels";
    world.carried_out(ANNA, create, 1).await?;
    let made = world.json(ANNA, "cluster show one").await?;
    ensure!(
        made["status"] == "CREATE_COMPLETE"
            && made["labels"] == json!({"own": "label", "tier": "gold"})
            && made["node_count"] == 2
            && made["keypair"] == "key",
        "{made}"
    );
    let create = "cluster create two --cluster-template small";
    world.carried_out(ANNA, create, 1).await?;
    let listed = world.json(ANNA, "cluster list").await?;
    ensure!(names(&listed) == ["one", "two"], "{listed}");
    // The client follows the pages.
    let line = "cluster list --limit 1 --sort-key name --sort-dir desc";
    let listed = world.json(ANNA, line).await?;
    ensure!(names(&listed) == ["two"], "{listed}");
    let line = "cluster update one --node-count 3";
    world.carried_out(ANNA, line, 1).await?;
    let changed = world.json(ANNA, "cluster show one").await?;
    ensure!(
        changed["node_count"] == 3 && changed["status"] == "UPDATE_COMPLETE",
        "{changed}"
    );
    let words = "cannot change cluster property(ies) name";
    world.refused(ANNA, "cluster update one --name x", words).await?;
    world.carried_out(ANNA, "cluster resize one 1", 1).await?;
    let line = "cluster upgrade one newer";
    world.carried_out(ANNA, line, 1).await?;
    let upgraded = world.json(ANNA, "cluster show one").await?;
    let newer = world.json(ANNA, "cluster template show newer").await?;
    ensure!(
        upgraded["node_count"] == 1 && upgraded["cluster_template_id"] == newer["uuid"],
        "{upgraded}"
    );
    let stats = world.text(ANNA, "stats list PROJECT").await?;
    ensure!(
        stats.contains("| clusters | 2 ") && stats.contains("| nodes    | 4 "),
        "{stats}"
    );
    Ok(())
}

async fn node_groups(world: &mut World) -> Result<()> {
    let create = "nodegroup create one gpu --node-count 2 --max-nodes 4 --role gpu --flavor m1.large \
                  --node-labels a=b --node-taints k=v:NoSchedule";
    world.carried_out(ANNA, create, 1).await?;
    let listed = world.json(ANNA, "nodegroup list one").await?;
    ensure!(
        names(&listed) == ["default-master", "default-worker", "gpu"],
        "{listed}"
    );
    let listed = world
        .json(ANNA, "nodegroup list one --role gpu --limit 1")
        .await?;
    ensure!(names(&listed) == ["gpu"], "{listed}");
    let line = "nodegroup update one gpu --max-nodes 6 --node-labels c=d";
    world.carried_out(ANNA, line, 1).await?;
    let line = "cluster resize one 3 --nodegroup gpu";
    world.carried_out(ANNA, line, 1).await?;
    let shown = world.json(ANNA, "nodegroup show one gpu").await?;
    ensure!(
        shown["max_node_count"] == 6
            && shown["node_count"] == 3
            && shown["status"] == "UPDATE_COMPLETE"
            && shown["node_labels"] == json!({"c": "d"})
            && shown["node_taints"] == json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]),
        "{shown}"
    );
    let line = "nodegroup delete one gpu";
    world.carried_out(ANNA, line, 1).await?;
    let listed = world.json(ANNA, "nodegroup list one").await?;
    ensure!(names(&listed) == ["default-master", "default-worker"], "{listed}");
    Ok(())
}

async fn certificates(world: &mut World) -> Result<()> {
    const BEGIN: &str = "BEGIN CERTIFICATE";
    let first = world.text(ANNA, "ca show one").await?;
    ensure!(first.contains(BEGIN), "{first}");
    let signed = world.text(ANNA, "ca sign one CSR").await?;
    ensure!(signed.contains(BEGIN) && signed != first, "{signed}");
    let folder = world.stack.deployment.folder.join("kube");
    std::fs::create_dir_all(&folder)?;
    world.call_it("FOLDER", folder.to_str().context("a path")?);
    let line = "cluster config one --dir FOLDER --output-certs";
    world.done(ANNA, line).await?;
    let written = std::fs::read_to_string(folder.join("config"))?;
    ensure!(
        written.contains("https://192.0.2.1:6443") && written.contains("client-certificate-data"),
        "{written}"
    );
    let authority = std::fs::read_to_string(folder.join("ca.pem"))?;
    ensure!(authority.trim() == first.trim(), "{authority}");
    world.carried_out(ANNA, "ca rotate one", 1).await?;
    let second = world.text(ANNA, "ca show one").await?;
    ensure!(second.contains(BEGIN) && second != first, "{second}");
    let line = "credential rotate one";
    let rotated = world.carried_out(ANNA, line, 1).await?;
    ensure!(rotated.to_string().contains("accepted"), "{rotated}");
    Ok(())
}

async fn end(world: &mut World) -> Result<()> {
    let words = "is referenced by one or multiple clusters";
    world
        .refused(ANNA, "cluster template delete newer", words)
        .await?;
    world.carried_out(ANNA, "cluster delete one two", 2).await?;
    for line in ["cluster show one", "cluster show two", "ca show one"] {
        world.refused(ANNA, line, "could not be found").await?;
    }
    world.done(ANNA, "cluster template delete small newer").await?;
    let left = world.json(ANNA, "cluster template list").await?;
    ensure!(left == json!([]), "{left}");
    Ok(())
}
