//! Plays a case: rows and world as given, the request or the look, and what came of it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use magnum_common::model::ClusterStatus;
use magnum_tests::plugin_requests::new_object;
use magnum_tests::{raw_rpc, wait};
use serde_json::{Value, json};

use super::super::replay::Columns;
use super::case::Case;
use super::looks::{self, Look};
use super::rows::{self, CLUSTER, Rows};
use super::stage::{Built, PATIENCE, Stage};

/// How many looks may be disturbed by another one before the case fails.
const MOST_DISTURBED: u32 = 5;

/// What came of a case.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The rows before the request.
    pub before: Columns,
    /// The state of the operation; none of a look.
    pub state: String,
    /// Why the operation failed, or waits.
    pub reason: Value,
    pub steps: Vec<Value>,
    pub cloud_reads: BTreeMap<String, u64>,
    /// The rows afterwards.
    pub after: Value,
}

impl Stage {
    /// Plays the case.
    pub async fn play(&mut self, case: &Case) -> Result<Outcome> {
        match case.call() {
            "update_cluster_status" => self.look(case, Look::AtStatus).await,
            "health" => self.look(case, Look::AtHealth).await,
            "validate_master_size" | "validate_master_resize" => self.judge_masters(case),
            "create_cluster" => self.create(case).await,
            _ => self.change(case).await,
        }
    }

    /// A look that the conductor makes by itself. Seldom, on a busy machine, it makes another one before it is told not to:
    /// then the case begins again.
    async fn look(&mut self, case: &Case, look: Look) -> Result<Outcome> {
        for _ in 0..MOST_DISTURBED {
            let stack = case.given()["stack_id"].as_str();
            let rows = Rows::given(case, &self.driver(case)?, stack)?;
            rows.put(&self.db).await?;
            self.world.reset().await?;
            self.world
                .prepare(&case.recorded, &case.package, CLUSTER, stack)
                .await?;
            let mut wanted = 1;
            if case.name().ends_with("second-poll") {
                self.look_once(look, wanted).await?;
                self.world.forget().await?;
                wanted += 1;
            }
            let in_progress = ClusterStatus::is_in_progress;
            let status = rows::row(&self.db).await?.and_then(|cluster| cluster.status);
            if look == Look::AtStatus && !status.is_some_and(in_progress) {
                return self.no_look(&rows, wanted - 1).await;
            }
            self.look_once(look, wanted).await?;
            if looks::begun(&self.db, look)
                .await?
                .is_some_and(|(begun, _)| begun > wanted)
            {
                continue;
            }
            let mut outcome = Outcome {
                before: rows.columns(),
                after: Columns::read(&self.db).await?.json(),
                ..Outcome::default()
            };
            self.add_effects(&mut outcome, &[], &BTreeMap::new()).await?;
            return Ok(outcome);
        }
        anyhow::bail!("disturbed {MOST_DISTURBED} times by another look")
    }

    /// A cluster that is due, and not looked at: a look at another one, which was due as well, proves it.
    async fn no_look(&mut self, rows: &Rows, made: i64) -> Result<Outcome> {
        let mut outcome = Outcome {
            before: rows.columns(),
            state: "not looked at".to_owned(),
            after: Columns::read(&self.db).await?.json(),
            ..Outcome::default()
        };
        looks::set(&self.db, Look::AtStatus).await?;
        rows.put_marker(&self.db).await?;
        wait::until("a look at another cluster", PATIENCE, async || {
            ensure!(looks::marker_is_seen(&self.db).await?, "none yet");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let looks = looks::begun(&self.db, Look::AtStatus).await?;
        ensure!(looks == Some((made, true)), "{looks:?} instead of {made} looks");
        // The effects are those of the other look.
        self.add_effects(&mut outcome, &[], &BTreeMap::new()).await?;
        outcome.steps.clear();
        outcome.cloud_reads.clear();
        Ok(outcome)
    }

    async fn look_once(&self, look: Look, number: i64) -> Result<()> {
        looks::set(&self.db, look).await?;
        self.looked(look, number).await?;
        if looks::begun(&self.db, look).await?.is_some() {
            looks::set(&self.db, Look::Never).await?;
        }
        Ok(())
    }

    /// What the conductor has announced of the driver decides about numbers of masters, for the API and for itself.
    fn judge_masters(&self, case: &Case) -> Result<Outcome> {
        let driver = &self.drivers[&self.driver(case)?];
        let count = i32::try_from(case.argument("node_count").as_i64().context("a count")?)?;
        if case.call() == "validate_master_resize" {
            ensure!(driver.resizes_masters, "the driver is said not to resize masters");
        }
        let checked = driver.master_size.check(count);
        Ok(Outcome {
            state: if checked.is_ok() { "allowed" } else { "refused" }.to_owned(),
            reason: json!(checked.err().map(|fault| fault.message)),
            ..Outcome::default()
        })
    }

    /// A create, whose rows are put as given just before the driver is called.
    async fn create(&mut self, case: &Case) -> Result<Outcome> {
        let driver = self.driver(case)?;
        let built = match case.given()["cluster"]["stack_id"].as_str() {
            Some(_) => Some(self.build(case, &driver).await?),
            None => None,
        };
        let stack = built.as_ref().map(|(_, built)| built.stack.clone());
        let mut rows = Rows::given(case, &driver, stack.as_deref())?;
        // That of every create.
        rows.cluster.status = Some(ClusterStatus::CreateInProgress);
        let missing = case.message().strip_prefix("Certificate for ");
        let missing = missing.and_then(|text| text.split(' ').next()).map(str::to_owned);
        let name = built.map(|(name, _)| name);
        self.create_as(case, rows, name.as_deref(), missing.as_deref())
            .await
    }

    async fn create_as(
        &mut self,
        case: &Case,
        mut rows: Rows,
        world: Option<&str>,
        missing: Option<&str>,
    ) -> Result<Outcome> {
        self.db.transaction(rows::wipe).await?;
        rows.put_templates(&self.db).await?;
        self.world.reset().await?;
        let count = |role: &str| {
            let mut groups = rows
                .groups
                .iter()
                .filter(|group| group.is_default && group.role == role);
            groups.next().map_or(1, |group| group.node_count)
        };
        let mut cluster = rows.cluster.clone();
        cluster.stack_id = None;
        let request = raw_rpc::request(
            "cluster_create",
            json!({
                "cluster": new_object(&cluster),
                "master_count": count("master"),
                "node_count": count("worker"),
                "create_timeout": case.argument("create_timeout"),
            }),
        );
        self.rpc.cast(&self.with_context(request, "alice")).await?;
        if !self.at_gate().await? {
            let mut outcome = Outcome {
                before: Columns::default(),
                after: Columns::read(&self.db).await?.json(),
                ..Outcome::default()
            };
            let operation = self.operation().await?.context("an operation")?;
            outcome.state = operation.state;
            outcome.reason = json!(operation.reason);
            self.add_effects(&mut outcome, &[], &BTreeMap::new()).await?;
            return Ok(outcome);
        }
        rows.replace(&self.db, missing).await?;
        let certificates = rows.load_certificates(&self.db).await?;
        if let Some(world) = world {
            self.world.restore(world).await?;
        }
        self.world
            .prepare(
                &case.recorded,
                &case.package,
                CLUSTER,
                rows.cluster.stack_id.as_deref(),
            )
            .await?;
        let operation = self.pass_gate().await?;
        let mut outcome = Outcome {
            before: rows.columns(),
            state: operation.state,
            reason: json!(operation.reason),
            after: Columns::read(&self.db).await?.json(),
            ..Outcome::default()
        };
        let made = rows::row(&self.db).await?;
        let mut stacks: Vec<String> = made.and_then(|row| row.stack_id).into_iter().collect();
        stacks.extend(rows.cluster.stack_id.clone());
        stacks.dedup();
        self.add_effects(&mut outcome, &stacks, &certificates).await?;
        Ok(outcome)
    }

    /// A cluster as the case's was before the request, from its own driver. Returns the name of its world.
    async fn build(&mut self, case: &Case, driver: &str) -> Result<(String, Built)> {
        let mut given = case.given().clone();
        let is_new = |group: &Value| {
            let of_request = group["name"] == *case.argument("node_group");
            // A group that the driver does not find, and one that is to be made, was not there when the cluster was built.
            of_request
                && (case.call() == "create_nodegroup" || case.call() == "delete_nodegroup" && !case.is_done())
        };
        let groups = given["node_groups"].as_array_mut().context("groups")?;
        groups.retain(|group| !is_new(group));
        for group in groups {
            group["status"] = json!("CREATE_IN_PROGRESS");
            if group["is_default"] == true {
                // As of every cluster that the recordings have built.
                group["node_count"] = json!(if group["role"] == "master" { 1 } else { 2 });
                group["min_node_count"] = json!(0);
                group["max_node_count"] = Value::Null;
            }
        }
        for (name, value) in [("status", json!("CREATE_IN_PROGRESS")), ("stack_id", Value::Null)] {
            given["cluster"][name] = value;
        }
        given["arguments"] = json!({"create_timeout": 60});
        let name = format!("{driver} {given}");
        if !self.built.contains_key(&name) {
            let recorded = json!({
                "name": "build", "call": "create_cluster", "given": given, "steps": [], "result": {"outcome": "done"},
            });
            let create = Case {
                recorded,
                ..case.clone()
            };
            let mut rows = Rows::given(&create, driver, None)?;
            let outcome = self.create_as(&create, rows.clone(), None, None).await?;
            ensure!(
                outcome.state == "observing",
                "the cluster of the case cannot be built: {outcome:?}"
            );
            let made = rows::row(&self.db).await?.context("the row of the cluster")?;
            let stack = made.stack_id.clone().context("a stack")?;
            self.world.keep(&name).await?;
            rows.refer_to(&made);
            let certificates = rows.load_certificates(&self.db).await?;
            let built = Built {
                stack,
                rows,
                certificates,
            };
            self.built.insert(name.clone(), built);
        }
        let built = &self.built[&name];
        let built = Built {
            stack: built.stack.clone(),
            rows: built.rows.clone(),
            certificates: built.certificates.clone(),
        };
        Ok((name, built))
    }

    /// A request for an existing cluster.
    async fn change(&mut self, case: &Case) -> Result<Outcome> {
        let driver = self.driver(case)?;
        let mut stack = None;
        let mut certificates = BTreeMap::new();
        let mut key_pairs = Vec::new();
        let mut references = None;
        self.world.reset().await?;
        if case.given()["cluster"]["stack_id"].is_string() {
            let (name, built) = self.build(case, &driver).await?;
            self.world.restore(&name).await?;
            stack = Some(built.stack);
            certificates = built.certificates;
            key_pairs.clone_from(&built.rows.key_pairs);
            references = Some(built.rows.cluster);
        }
        let mut rows = Rows::given(case, &driver, stack.as_deref())?;
        rows.key_pairs = key_pairs;
        if let Some(built) = references {
            rows.refer_to(&built);
        }
        let request = self.request(case, &mut rows)?;
        rows.put(&self.db).await?;
        self.world
            .prepare(&case.recorded, &case.package, CLUSTER, stack.as_deref())
            .await?;
        // The recordings tell who asked by whose token was used.
        let writes = case.effects();
        let carol = writes.iter().any(|step| step["cloud"]["as"] == "carol");
        let request = self.with_context(request, if carol { "carol" } else { "alice" });
        if matches!(
            case.call(),
            "upgrade_cluster" | "rotate_ca_certificate" | "rotate_credential"
        ) {
            self.rpc.ask(request).await?;
        } else {
            self.rpc.cast(&request).await?;
        }
        let operation = self.ended().await?;
        let mut outcome = Outcome {
            before: rows.columns(),
            state: operation.state,
            reason: json!(operation.reason),
            after: Columns::read(&self.db).await?.json(),
            ..Outcome::default()
        };
        let stacks: Vec<String> = stack.into_iter().collect();
        self.add_effects(&mut outcome, &stacks, &certificates).await?;
        Ok(outcome)
    }

    async fn add_effects(
        &mut self,
        outcome: &mut Outcome,
        stacks: &[String],
        certificates: &BTreeMap<String, String>,
    ) -> Result<()> {
        // A driver that takes a lease in the management cluster may give it back after its report.
        let effects = wait::until("the driver's lease to be given back", PATIENCE, async || {
            let effects = self.world.effects(stacks, certificates).await?;
            ensure!(!holds_a_lease(&effects.steps), "{:?}", effects.steps);
            Ok::<_, anyhow::Error>(effects)
        })
        .await?;
        outcome.steps = effects.steps;
        outcome.cloud_reads = effects.cloud_reads;
        let texts =
            json!({"reason": outcome.reason, "after": outcome.after, "before": outcome.before.json()});
        let mut texts = self.world.scrub(&texts, stacks).await?;
        outcome.reason = texts["reason"].take();
        outcome.after = texts["after"].take();
        outcome.before = Columns::of_json(&texts["before"]);
        Ok(())
    }
}

/// Whether more leases were taken than given back.
fn holds_a_lease(steps: &[Value]) -> bool {
    let count = |verb: &str, status: i64| {
        let done = steps.iter().filter(|step| {
            let request = step["kubernetes"]["request"].as_str().unwrap_or_default();
            request.starts_with(verb) && request.contains("/leases") && step["kubernetes"]["status"] == status
        });
        done.count()
    };
    count("POST ", 201) > count("DELETE ", 200)
}
