//! Who may not: readers, colleagues, and everybody of the other project. Each with the command `openstack coe`.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::commands::names;
use super::world::{ANNA, BERT, BOSS, CAROL, CHIEF, RITA, ROLF, Who, World};

/// What somebody is told.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// What they asked for.
    Shown,
    /// That a rule forbids it.
    Denied(&'static str),
    /// That there is nothing of this name.
    Missing,
    /// That it is another project's.
    NotTheirs,
}

use Answer::{Denied, Missing, NotTheirs, Shown};

/// Commands about a cluster and a template of `north`, and what they tell a reader of `north`, and a member and a reader
/// of `south`.
const ANSWERS: &[(&str, [Answer; 3])] = &[
    ("cluster show CLUSTER", [Shown, Missing, Missing]),
    ("cluster show one", [Shown, Missing, Missing]),
    ("nodegroup list CLUSTER", [Shown, Missing, Missing]),
    ("nodegroup show CLUSTER default-worker", [Shown, Missing, Missing]),
    ("cluster template show TEMPLATE", [Shown, Missing, Missing]),
    ("cluster template show small", [Shown, Missing, Missing]),
    ("stats list PROJECT", [Shown, NotTheirs, NotTheirs]),
    (
        "quotas show --project-id PROJECT --resource Cluster",
        [Shown, NotTheirs, NotTheirs],
    ),
    ("ca show CLUSTER", [Denied("certificate:get"), Missing, Missing]),
    ("ca show one", [Denied("certificate:get"), Missing, Missing]),
    (
        "ca sign CLUSTER CSR",
        [Denied("certificate:create"), Missing, Missing],
    ),
    (
        "cluster config CLUSTER",
        [Denied("certificate:get"), Missing, Missing],
    ),
    (
        "cluster update CLUSTER --node-count 2",
        [Denied("cluster:update"), Missing, Missing],
    ),
    (
        "cluster resize CLUSTER 2",
        [Denied("cluster:resize"), Missing, Missing],
    ),
    (
        "cluster upgrade CLUSTER TEMPLATE",
        [Denied("cluster:upgrade"), Missing, Missing],
    ),
    (
        "cluster delete CLUSTER",
        [Denied("cluster:delete"), Missing, Missing],
    ),
    ("cluster delete one", [Denied("cluster:delete"), Missing, Missing]),
    // The rule comes first: a reader is told that, not what is there.
    (
        "nodegroup create CLUSTER x",
        [Denied("nodegroup:create"), Missing, Denied("nodegroup:create")],
    ),
    (
        "nodegroup update CLUSTER default-worker --max-nodes 5",
        [Denied("nodegroup:update"), Missing, Denied("nodegroup:update")],
    ),
    (
        "nodegroup delete CLUSTER default-worker",
        [Denied("nodegroup:delete"), Missing, Denied("nodegroup:delete")],
    ),
    (
        "credential rotate CLUSTER",
        [Denied("credential:rotate"), Missing, Denied("credential:rotate")],
    ),
    (
        "ca rotate CLUSTER",
        [Denied("certificate:rotate_ca"), Missing, Missing],
    ),
    (
        "cluster template update TEMPLATE --dns-nameserver 1.1.1.1",
        [Denied("clustertemplate:update"), Missing, Missing],
    ),
    (
        "cluster template update TEMPLATE --public",
        [Denied("clustertemplate:update"), Missing, Missing],
    ),
    (
        "cluster template delete TEMPLATE",
        [Denied("clustertemplate:delete"), Missing, Missing],
    ),
    (
        "cluster create x --cluster-template TEMPLATE",
        [Denied("cluster:create"), Missing, Denied("cluster:create")],
    ),
    ("service list", [Denied("magnum-service:get_all"); 3]),
    ("quotas list --all-tenants", [Denied("quota:get_all"); 3]),
    (
        "quotas create --project-id PROJECT --resource Cluster --hard-limit 1",
        [Denied("quota:create"); 3],
    ),
    (
        "quotas update --project-id PROJECT --resource Cluster --hard-limit 1",
        [Denied("quota:update"); 3],
    ),
    (
        "quotas delete --project-id PROJECT --resource Cluster",
        [Denied("quota:delete"); 3],
    ),
];

async fn check_answer(world: &mut World, who: Who, line: &str, answer: Answer) -> Result<()> {
    match answer {
        Shown => world.done(who, line).await.map(drop),
        Denied(rule) => {
            let words = format!("Policy doesn't allow {rule} to be performed");
            world.refused(who, line, &words).await
        }
        Missing => world.refused(who, line, "could not be found").await,
        NotTheirs => world.refused(who, line, "Not authorized").await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_of_other_projects_are_neither_visible_nor_changeable() -> Result<()> {
    let mut world = World::start().await?;
    let template = world.template(ANNA, "small", "").await?;
    let create = "cluster create one --cluster-template small --keypair key";
    world.carried_out(ANNA, create, 1).await?;
    let made = world.json(ANNA, "cluster show one").await?;
    world.call_it("TEMPLATE", &template);
    for (word, field) in [("CLUSTER", "uuid"), ("PROJECT", "project_id")] {
        world.call_it(word, made[field].as_str().context("a text")?);
    }
    for (line, answers) in ANSWERS {
        for (who, answer) in [RITA, BERT, ROLF].into_iter().zip(answers) {
            check_answer(&mut world, who, line, *answer).await?;
        }
    }
    lists_hold_only_resources_of_the_own_project(&mut world).await?;
    colleagues_share_all_but_certificates(&mut world).await?;
    administrators_see_everything(&mut world).await?;
    // Nothing of all that reached the conductor.
    world.operations(1).await?;
    let left = world.json(ANNA, "cluster show one").await?;
    ensure!(left == made, "{left} instead of {made}");
    public_templates_are_for_all(&mut world).await
}

async fn lists_hold_only_resources_of_the_own_project(world: &mut World) -> Result<()> {
    for line in ["cluster list", "cluster template list"] {
        for who in [ANNA, CAROL, RITA] {
            let listed = world.json(who, line).await?;
            ensure!(names(&listed).len() == 1, "{who:?} {line}: {listed}");
        }
        for who in [BERT, ROLF] {
            let listed = world.json(who, line).await?;
            ensure!(listed == json!([]), "{who:?} {line}: {listed}");
        }
    }
    Ok(())
}

async fn colleagues_share_all_but_certificates(world: &mut World) -> Result<()> {
    for (line, answers) in ANSWERS {
        if matches!(answers[0], Shown) {
            check_answer(world, CAROL, line, Shown).await?;
        }
    }
    for (line, rule) in [
        ("ca show one", "certificate:get"),
        ("ca sign one CSR", "certificate:create"),
        ("cluster config one", "certificate:get"),
    ] {
        check_answer(world, CAROL, line, Denied(rule)).await?;
    }
    // One that no cluster uses: only such can be changed.
    world.template(ANNA, "spare", "").await?;
    let words = "Not authorized to set public or hidden flag";
    world
        .refused(CAROL, "cluster template update spare --public", words)
        .await?;
    for line in [
        "cluster template update spare --dns-nameserver 1.1.1.1",
        "cluster template delete spare",
    ] {
        world.done(CAROL, line).await?;
    }
    Ok(())
}

async fn administrators_see_everything(world: &mut World) -> Result<()> {
    for who in [CHIEF, BOSS] {
        for (line, answers) in ANSWERS {
            if matches!(answers[0], Shown) {
                check_answer(world, who, line, Shown).await?;
            }
        }
        for line in ["ca show CLUSTER", "service list", "quotas list --all-tenants"] {
            check_answer(world, who, line, Shown).await?;
        }
        let listed = world.json(who, "cluster list").await?;
        ensure!(names(&listed) == ["one"], "{who:?} {listed}");
    }
    Ok(())
}

async fn public_templates_are_for_all(world: &mut World) -> Result<()> {
    world
        .done(CHIEF, "cluster template update TEMPLATE --public")
        .await?;
    for who in [BERT, ROLF] {
        check_answer(world, who, "cluster template show small", Shown).await?;
        let listed = world.json(who, "cluster template list").await?;
        ensure!(names(&listed) == ["small"], "{who:?} {listed}");
        for (line, rule) in [
            (
                "cluster template update TEMPLATE --dns-nameserver 2.2.2.2",
                "clustertemplate:update",
            ),
            ("cluster template delete TEMPLATE", "clustertemplate:delete"),
        ] {
            check_answer(world, who, line, Denied(rule)).await?;
        }
    }
    let create = "cluster create mine --cluster-template small --keypair key";
    world.carried_out(BERT, create, 1).await?;
    for who in [ANNA, CAROL, RITA] {
        for line in ["cluster show mine", "ca show mine", "nodegroup list mine"] {
            check_answer(world, who, line, Missing).await?;
        }
        let listed = world.json(who, "cluster list").await?;
        ensure!(names(&listed) == ["one"], "{who:?} {listed}");
    }
    check_answer(world, ANNA, "cluster delete mine", Missing).await
}
