//! What every engine has to keep, whatever it builds with.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use magnum_common::ids::OperationId;
use magnum_common::model::{ClusterStatus, HealthStatus};
use magnum_driver_api::{
    ApiStatus, ClusterRef, Driver, DriverError, DriverReport, Progress, ProgressSink, Task, limits,
};
use magnum_drivers::ApiMethod;
use magnum_drivers::api_exchange::NodeNames;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::scene::{Scene, TASKS, TaskCase};
use super::subject::{Fault, LEASE, Subject, check_of, every_engine, every_subject};

/// A playbook takes its time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn operation() -> OperationId {
    OperationId::random()
}

/// One call as the conductor makes it: what may succeed later is tried again, with the same operation.
async fn done(
    scene: &Scene,
    driver: &dyn Driver,
    task: Task<'_>,
    operation: &OperationId,
) -> Result<DriverReport> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match scene.call(driver, task, operation).await {
            Ok(report) => {
                limits::check(&report)?;
                return settled(scene, driver, report, deadline).await;
            }
            Err(DriverError::Transient(_)) if Instant::now() < deadline => {}
            Err(error) => bail!("{}: {error:?}", task.as_str()),
        }
    }
}

/// What a call comes to that only begins the work: it is observed until it ends.
async fn settled(
    scene: &Scene,
    driver: &dyn Driver,
    mut report: DriverReport,
    deadline: Instant,
) -> Result<DriverReport> {
    let mut now = scene.clone();
    while report.cluster.status.is_some_and(ClusterStatus::is_in_progress) {
        ensure!(Instant::now() < deadline, "still {:?}", report.cluster.status);
        now.accept(report.clone());
        let seen = driver.observe(&[now.look().await?]).await?;
        let seen = seen.into_iter().next().context("nothing was seen")?;
        let seen = seen
            .result
            .map_err(|error| anyhow::anyhow!("observe: {error:?}"))?;
        limits::check(&seen)?;
        report.cluster.status = seen.cluster.status.or(report.cluster.status);
        report.cluster.status_reason = seen.cluster.status_reason;
        report.node_groups.extend(seen.node_groups);
    }
    Ok(report)
}

/// A cluster that exists.
async fn built(subject: &dyn Subject) -> Result<Scene> {
    let mut scene = subject.scene();
    let driver = subject.driver()?;
    let report = done(&scene, driver.as_ref(), Task::Create, &operation()).await?;
    scene.accept(report);
    ensure!(scene.cluster.status == Some(ClusterStatus::CreateComplete));
    holds(subject, &scene, "create").await?;
    Ok(scene)
}

/// Exactly the nodes exist that shall.
async fn holds(subject: &dyn Subject, scene: &Scene, after: &str) -> Result<()> {
    let nodes = subject.nodes(&scene.cluster.uuid).await?;
    ensure!(
        nodes == scene.wanted(),
        "{nodes} nodes instead of {} after {after}",
        scene.wanted()
    );
    Ok(())
}

/// Nothing is left of the cluster.
async fn gone(subject: &dyn Subject, scene: &Scene) -> Result<()> {
    let left = subject.effects(&scene.cluster.uuid).await?;
    ensure!(left.is_empty(), "left of a deleted cluster: {left:#?}");
    Ok(())
}

async fn delete(subject: &dyn Subject, scene: &mut Scene) -> Result<()> {
    scene.cluster.status = Some(ClusterStatus::DeleteInProgress);
    done(scene, subject.driver()?.as_ref(), Task::Delete, &operation()).await?;
    gone(subject, scene).await
}

/// The tasks that a driver says it can do, and the others.
fn declared(driver: &dyn Driver) -> (Vec<&'static TaskCase>, Vec<&'static TaskCase>) {
    let capabilities = &driver.info().capabilities;
    TASKS.iter().partition(|case| (case.is_declared)(capabilities))
}

/// Wakes at the first sign of work.
#[derive(Default)]
struct Begun(Notify);

impl ProgressSink for Begun {
    fn report(&self, _progress: Progress) {
        self.0.notify_one();
    }
}

/// Begins a call and drops it in the middle of its work, as a process that dies does. A call that has nothing to do
/// may be done before.
async fn killed(subject: &dyn Subject, scene: &Scene, task: Task<'_>, operation: &OperationId) -> Result<()> {
    let (driver, begun) = (subject.driver()?, Begun::default());
    let never = CancellationToken::new();
    let call = scene.call_until(driver.as_ref(), task, operation, &begun, &never);
    timeout(PATIENCE, async {
        tokio::select! {
            outcome = call => outcome.map(drop),
            () = begun.0.notified() => Ok(()),
        }
    })
    .await
    .context("neither progress nor an end")?
    .with_context(|| task.as_str())
}

every_subject! {
    /// The answer to the first may have been lost: the second has the same effects and says the same.
    async fn each_task_may_come_twice(subject: &dyn Subject) {
        let mut scene = subject.scene();
        let create = operation();
        let first = done(&scene, subject.driver()?.as_ref(), Task::Create, &create).await?;
        let effects = subject.effects(&scene.cluster.uuid).await?;
        let again = done(&scene, subject.driver()?.as_ref(), Task::Create, &create).await?;
        ensure!(first == again, "create: {first:?} then {again:?}");
        ensure!(effects == subject.effects(&scene.cluster.uuid).await?, "create");
        scene.accept(first);
        for case in declared(subject.driver()?.as_ref()).0 {
            (case.change)(&mut scene);
            let operation = operation();
            let first = done(&scene, subject.driver()?.as_ref(), (case.task)(&scene), &operation).await?;
            holds(subject, &scene, case.word).await?;
            let effects = subject.effects(&scene.cluster.uuid).await?;
            let again = done(&scene, subject.driver()?.as_ref(), (case.task)(&scene), &operation).await?;
            ensure!(first == again, "{}: {first:?} then {again:?}", case.word);
            ensure!(effects == subject.effects(&scene.cluster.uuid).await?, "{}", case.word);
            scene.accept(first);
            (case.afterwards)(&mut scene);
        }
        delete(subject, &mut scene).await
    }

    /// Killed in the middle of its work, by a conductor that dies: the next attempt goes on from there.
    async fn each_task_survives_being_killed_half_way(subject: &dyn Subject) {
        let mut scene = subject.scene();
        subject.slow_down(&mut scene)?;
        let create = operation();
        killed(subject, &scene, Task::Create, &create).await?;
        let report = done(&scene, subject.driver()?.as_ref(), Task::Create, &create).await?;
        holds(subject, &scene, "create").await?;
        scene.accept(report);
        for case in declared(subject.driver()?.as_ref()).0 {
            (case.change)(&mut scene);
            let operation = operation();
            killed(subject, &scene, (case.task)(&scene), &operation).await?;
            let report = done(&scene, subject.driver()?.as_ref(), (case.task)(&scene), &operation).await?;
            holds(subject, &scene, case.word).await?;
            scene.accept(report);
            (case.afterwards)(&mut scene);
        }
        scene.cluster.status = Some(ClusterStatus::DeleteInProgress);
        let operation = operation();
        killed(subject, &scene, Task::Delete, &operation).await?;
        done(&scene, subject.driver()?.as_ref(), Task::Delete, &operation).await?;
        gone(subject, &scene).await
    }

    /// Of a create that nobody finished, whose operation was given up: nothing must be left.
    async fn a_half_built_cluster_can_be_deleted(subject: &dyn Subject) {
        let mut scene = subject.scene();
        subject.slow_down(&mut scene)?;
        killed(subject, &scene, Task::Create, &operation()).await?;
        subject.mend(&mut scene)?;
        delete(subject, &mut scene).await
    }

    async fn deleting_a_missing_cluster_or_group_succeeds(subject: &dyn Subject) {
        let mut never_built = subject.scene();
        delete(subject, &mut never_built).await?;
        let mut scene = built(subject).await?;
        delete(subject, &mut scene).await?;
        delete(subject, &mut scene).await?;
        let mut group = built(subject).await?;
        // The group was accepted and never built.
        let case = TASKS.iter().find(|case| case.word == "create_nodegroup").context("the row")?;
        (case.change)(&mut group);
        group.groups[2].status = Some(ClusterStatus::DeleteInProgress);
        let task = Task::DeleteNodeGroup(&group.groups[2].uuid);
        done(&group, subject.driver()?.as_ref(), task, &operation()).await?;
        holds(subject, &group, "delete_nodegroup").await
    }

    /// Stopped within the time that a conductor may take which has lost its lease, and nothing goes on behind it: the
    /// next attempt may begin at once.
    async fn a_cancelled_call_ends_within_its_bound(subject: &dyn Subject) {
        let mut scene = subject.scene();
        subject.slow_down(&mut scene)?;
        let (driver, begun, cancel) = (subject.driver()?, Begun::default(), CancellationToken::new());
        let operation = operation();
        let call = scene.call_until(driver.as_ref(), Task::Create, &operation, &begun, &cancel);
        let cancelled_at = async {
            begun.0.notified().await;
            cancel.cancel();
            Instant::now()
        };
        let both = async { tokio::join!(call, cancelled_at) };
        let (outcome, cancelled_at) = timeout(PATIENCE, both).await.context("it neither began nor ended")?;
        ensure!(outcome == Err(DriverError::Cancelled), "{outcome:?}");
        ensure!(cancelled_at.elapsed() < LEASE * 2 / 3, "took {:?}", cancelled_at.elapsed());
        let before = subject.effects(&scene.cluster.uuid).await?;
        let report = scene.call(driver.as_ref(), Task::Create, &operation).await;
        ensure!(report.is_ok(), "the next attempt at once: {report:?}");
        ensure!(before.len() < subject.effects(&scene.cluster.uuid).await?.len(), "it was stopped half-way");
        holds(subject, &scene, "create").await
    }

    /// It ends the operation with the driver to blame; trying it again would bring the same.
    async fn garbage_is_a_permanent_error_and_leaves_a_cluster_that_can_be_deleted(subject: &dyn Subject) {
        let mut scene = subject.scene();
        subject.break_down(&mut scene, Fault::Garbage)?;
        let outcome = scene.call(subject.driver()?.as_ref(), Task::Create, &operation()).await;
        ensure!(matches!(&outcome, Err(DriverError::Permanent(reason)) if !reason.told().is_empty()), "{outcome:?}");
        subject.mend(&mut scene)?;
        delete(subject, &mut scene).await
    }

    /// Clusters of one driver do not wait for each other, and do not meet.
    async fn clusters_beside_each_other_do_not_mix(subject: &dyn Subject) {
        let driver: Arc<dyn Driver> = subject.driver()?;
        let mut scenes: Vec<Scene> = (0..4).map(|_| subject.scene()).collect();
        for (number, scene) in scenes.iter_mut().enumerate() {
            scene.worker().node_count = i32::try_from(number)?;
        }
        let driver = driver.as_ref();
        let calls = scenes
            .iter()
            .map(async move |scene| done(scene, driver, Task::Create, &operation()).await);
        for report in futures::future::join_all(calls).await {
            report?;
        }
        for scene in &scenes {
            holds(subject, scene, "create").await?;
        }
        delete(subject, &mut scenes[0]).await?;
        for scene in &scenes[1..] {
            holds(subject, scene, "a delete of another cluster").await?;
        }
        Ok(())
    }
}

every_engine! {
    async fn a_report_over_the_limits_is_not_accepted_and_names_its_field(subject: &dyn Subject) {
        let mut scene = subject.scene();
        subject.break_down(&mut scene, Fault::OverLimit)?;
        let driver = subject.driver()?;
        let outcome = scene.call(driver.as_ref(), Task::Create, &operation()).await;
        let accepted = limits::accept(driver.info(), outcome);
        let Err(DriverError::Permanent(reason)) = &accepted else { bail!("{accepted:?}") };
        ensure!(reason.told().contains("cluster.") && reason.told().contains("has 256 characters"), "{reason}");
        subject.mend(&mut scene)?;
        delete(subject, &mut scene).await
    }

    /// The conductor asks the capabilities first; a driver that is asked all the same must not half-do it.
    async fn undeclared_tasks_are_not_supported_and_change_nothing(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let before = subject.effects(&scene.cluster.uuid).await?;
        for case in declared(subject.driver()?.as_ref()).1 {
            let outcome = scene.call(subject.driver()?.as_ref(), (case.task)(&scene), &operation()).await;
            ensure!(matches!(outcome, Err(DriverError::NotSupported(_))), "{}: {outcome:?}", case.word);
            ensure!(before == subject.effects(&scene.cluster.uuid).await?, "{}", case.word);
        }
        delete(subject, &mut scene).await
    }

    /// Nothing new is seen of a cluster that is complete, and nothing is made up about others.
    async fn observation_covers_the_requested_clusters_and_changes_nothing(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let strange = subject.scene();
        let before = subject.effects(&scene.cluster.uuid).await?;
        let refs = [scene.look().await?, strange.look().await?];
        let seen = subject.driver()?.observe(&refs).await?;
        for one in &seen {
            ensure!(refs.iter().any(|asked| asked.cluster.uuid == one.cluster), "{one:?}");
            if let Ok(report) = &one.result {
                limits::check(report)?;
                let complete = report.cluster.status != Some(ClusterStatus::CreateFailed);
                ensure!(complete, "{one:?}");
            }
        }
        ensure!(subject.driver()?.observe(&[]).await?.is_empty());
        ensure!(before == subject.effects(&scene.cluster.uuid).await?);
        delete(subject, &mut scene).await
    }

    /// A driver without the capability says so: its clusters keep the health that somebody else wrote.
    async fn health_covers_the_requested_clusters_and_changes_nothing(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let strange = subject.scene();
        let before = subject.effects(&scene.cluster.uuid).await?;
        let driver = subject.driver()?;
        let refs = [scene.look().await?, strange.look().await?];
        let seen = driver.health(&refs).await;
        if driver.info().capabilities.health {
            let seen = seen?;
            let known = seen.iter().find(|one| one.cluster == scene.cluster.uuid).context("its health")?;
            let health = known.result.as_ref().map(|health| health.status);
            ensure!(health == Ok(HealthStatus::Healthy), "{known:?}");
            for one in &seen {
                ensure!(refs.iter().any(|asked| asked.cluster.uuid == one.cluster), "{one:?}");
            }
            ensure!(driver.health(&[]).await?.is_empty());
        } else {
            ensure!(matches!(seen, Err(DriverError::NotSupported(_))), "{seen:?}");
        }
        ensure!(before == subject.effects(&scene.cluster.uuid).await?);
        delete(subject, &mut scene).await
    }

    /// What only reads replies beside anything else and leaves no trace; a driver without such an API says so.
    async fn its_own_api_replies_where_it_only_reads_and_changes_nothing(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let driver = subject.driver()?;
        let before = subject.effects(&scene.cluster.uuid).await?;
        let routes = driver.info().api.clone();
        for route in routes.iter().filter(|route| route.read_only) {
            let reply = scene.ask(driver.as_ref(), &route.path, ApiMethod::Get).await;
            let reply = limits::accept_api(driver.info(), reply)?;
            ensure!(reply.status == ApiStatus::Ok, "{}: {reply:?}", route.path);
            ensure!(before == subject.effects(&scene.cluster.uuid).await?, "{}", route.path);
        }
        if routes.is_empty() {
            let reply = scene.ask(driver.as_ref(), "anything", ApiMethod::Get).await;
            ensure!(matches!(reply, Err(DriverError::NotSupported(_))), "{reply:?}");
        }
        delete(subject, &mut scene).await
    }

    /// A driver without the capability says so. One with it names nodes that its resize takes, and asking changes nothing.
    async fn the_nodes_that_a_driver_names_are_those_that_its_resize_removes(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let driver = subject.driver()?;
        scene.worker().node_count = 3;
        let grow = done(&scene, driver.as_ref(), Task::Update { rollback: false }, &operation()).await?;
        scene.accept(grow);
        let before = subject.effects(&scene.cluster.uuid).await?;
        scene.worker().node_count = 1;
        let operation = operation();
        let named = scene.nodes_to_remove(driver.as_ref(), 3, &operation).await;
        ensure!(before == subject.effects(&scene.cluster.uuid).await?, "the question changed something");
        if !driver.info().capabilities.scale {
            ensure!(matches!(named, Err(DriverError::NotSupported(_))), "{named:?}");
            return delete(subject, &mut scene).await;
        }
        ensure!(driver.info().capabilities.remove_named_nodes);
        let (named, again) = (named?, scene.nodes_to_remove(driver.as_ref(), 3, &operation).await?);
        ensure!(named == again, "{named:?} then {again:?}");
        let group = scene.groups[1].uuid.clone();
        let task = Task::Resize { node_group: &group, remove: &named };
        // Twice: the answer to the first may have been lost.
        for _ in 0..2 {
            let report = done(&scene, driver.as_ref(), task, &operation).await?;
            scene.accept(report);
            holds(subject, &scene, "resize").await?;
            let after = subject.effects(&scene.cluster.uuid).await?;
            for name in &named {
                let left = after.keys().find(|key| key.contains(&format!("{name}/")));
                ensure!(left.is_none(), "{name} was to go: {left:?}");
            }
        }
        delete(subject, &mut scene).await
    }

    /// A driver without the capability says so. One with it names each node of the group, and no node twice.
    async fn the_names_of_nodes_are_those_of_the_group(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let driver = subject.driver()?;
        let before = subject.effects(&scene.cluster.uuid).await?;
        let reply = scene.node_names(driver.as_ref()).await;
        ensure!(before == subject.effects(&scene.cluster.uuid).await?, "the question changed something");
        if !driver.info().capabilities.node_names {
            ensure!(matches!(reply, Err(DriverError::NotSupported(_))), "{reply:?}");
            return delete(subject, &mut scene).await;
        }
        ensure!(driver.info().capabilities.remove_named_nodes);
        let reply = limits::accept_api(driver.info(), reply)?;
        let named: NodeNames = serde_json::from_value(reply.body.clone())?;
        let names: Vec<&String> = named.nodes.iter().flatten().collect();
        let different: BTreeSet<&String> = names.iter().copied().collect();
        ensure!(different.len() == names.len(), "{named:?}");
        ensure!(named.nodes.len() == usize::try_from(scene.worker().node_count)?, "{named:?}");
        delete(subject, &mut scene).await
    }

    /// A driver without the capability says so.
    async fn utilisation_covers_the_requested_clusters_and_changes_nothing(subject: &dyn Subject) {
        let mut scene = built(subject).await?;
        let strange = subject.scene();
        let before = subject.effects(&scene.cluster.uuid).await?;
        let driver = subject.driver()?;
        let refs = [scene.look().await?, strange.look().await?];
        let seen = driver.utilisation(&refs).await;
        if driver.info().capabilities.monitor {
            let seen = seen?;
            ensure!(seen.iter().any(|one| one.cluster == scene.cluster.uuid && one.result.is_ok()), "{seen:?}");
            for one in seen {
                let asked = refs.iter().find(|asked| asked.cluster.uuid == one.cluster).context("a stranger")?;
                if one.result.is_ok() {
                    limits::accept_utilisation(driver.info(), asked, one.result)?;
                }
            }
            ensure!(driver.utilisation(&[]).await?.is_empty());
        } else {
            ensure!(matches!(seen, Err(DriverError::NotSupported(_))), "{seen:?}");
        }
        ensure!(before == subject.effects(&scene.cluster.uuid).await?);
        delete(subject, &mut scene).await
    }
}

impl Scene {
    /// The rows after a report was written to them.
    fn accept(&mut self, report: DriverReport) {
        report.cluster.apply(&mut self.cluster);
        for changes in report.node_groups {
            let mut groups = self.groups.iter_mut();
            if let Some(group) = groups.find(|group| group.uuid == changes.uuid) {
                changes.apply(group);
            }
        }
    }

    async fn look(&self) -> Result<ClusterRef> {
        Ok(ClusterRef {
            cluster: self.cluster.clone(),
            node_groups: self.groups.clone(),
            template: self.template.clone(),
            operation: None,
            objects: self.objects().await?,
        })
    }
}
