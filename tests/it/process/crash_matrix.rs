//! The crash matrix: the conductor dies at every crash point of every operation, and another one finishes.
//!
//! The rows are the conductor's own list of crash points, so a new step is covered without a new test: one of its four points on
//! one of two databases, and with `MAGNUM_TESTS_CRASH_POINTS=all` all of them on both. In each row a conductor is stopped exactly
//! at the crash point and `kill -9`ed there; a second one takes over. Rows run a few at a time, each in a deployment of its own,
//! with a driver that is a program and with one that is a Python package.
//! Asserted in every row:
//!
//! * the conductor reaches the crash point at all;
//! * the request became one operation, and that succeeded;
//! * the cluster has the status that the request leads to, or is gone after a delete, and what the driver's
//!   record says exists is what the status says;
//! * the driver was called once; twice only where the crash falls between the effect and its record, and then for
//!   the same operation; never twice at a time;
//! * every attempt of a resize removes the nodes that the driver has chosen for the first.
//!
//! Rows of the step `reply` are asked as calls, the others through the API or as it would cast them. In those also:
//!
//! * the caller is answered in spite of the crash, with the result: once when the answer had not left, again when
//!   only the journal did not know that it had;
//! * the journal says in the end that the answer was sent;
//! * the same message delivered once more is answered again with the same result, makes no other operation and
//!   calls no driver.

mod asking;

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use magnum_conductor::operations::OperationKind as Kind;
use magnum_conductor::operations::crash_point::{self, CrashPoint};
use magnum_conductor::workflows::Step;
use magnum_tests::deployment::Deployment;
use magnum_tests::driver_record::CallLine;
use magnum_tests::python_plugin::{self, Library, PythonPlugin};
use magnum_tests::raw_rpc::RawRpc;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::Value;
use tokio::task::JoinHandle;

pub use asking::Subject;

const PATIENCE: Duration = Duration::from_secs(90);

/// Rows that run at the same time; each has an API and up to two conductors.
const AT_A_TIME: usize = 4;

/// Borders that only calls reach.
fn is_for_calls(point: &str) -> bool {
    point.contains("/reply/")
}

/// Whose calls are interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DriverOfRows {
    /// The scripted one: a program, whose calls do everything at once.
    Scripted,
    /// The tests' package in the plug-in host: what its calls want, its looks do.
    Python,
}

impl DriverOfRows {
    const fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Python => python_plugin::DRIVER,
        }
    }

    /// Whether its operations get to this crash point.
    fn reaches(self, point: &str) -> bool {
        let Ok(kind) = kind_of(point) else {
            return false;
        };
        let chooses = point.contains(&format!("/{}/", Step::ChooseNodes));
        self == Self::Scripted || !(chooses || matches!(kind, Kind::ClusterRebuild | Kind::ClusterReboot))
    }

    /// Whether it names the nodes that go.
    fn chooses(self) -> bool {
        self == Self::Scripted
    }

    async fn deployment(self, backend: Backend) -> Result<Deployment> {
        let mut deployment = Deployment::new(backend).await?;
        if self == Self::Python {
            PythonPlugin::in_deployment(&mut deployment, Library::default()).await?;
            deployment.set("conductor", "status_poll_interval", 0.5);
            // Looks of the one that is killed are soon another's.
            deployment.set("conductor", "operation_lease", 3);
        }
        Ok(deployment)
    }
}

/// The rows that are tried without `MAGNUM_TESTS_CRASH_POINTS=all`, which takes all: with the Python driver one of the two around
/// its own call, where it matters what it has done; with the scripted one one of each step, on each database at every other step.
fn sample(backend: Backend, driver: DriverOfRows, rows: Vec<String>) -> Vec<String> {
    if std::env::var("MAGNUM_TESTS_CRASH_POINTS").is_ok_and(|which| which == "all") {
        return rows;
    }
    let steps = rows.chunk_by(|one, next| step_of(one) == step_of(next));
    let chosen = steps.enumerate().filter_map(|(number, points)| match driver {
        DriverOfRows::Python => {
            let around: Vec<&String> = points
                .iter()
                .filter(|point| is_around_the_driver(point))
                .collect();
            around.get(number % around.len().max(1)).copied()
        }
        DriverOfRows::Scripted => {
            let is_here = (number % 2 == 0) == (backend == Backend::Sqlite);
            points.get(number / 2 % points.len()).filter(|_| is_here)
        }
    });
    chosen.cloned().collect()
}

/// A crash point without its last word.
fn step_of(point: &str) -> Option<&str> {
    point.rsplit_once('/').map(|(step, _)| step)
}

fn is_around_the_driver(point: &str) -> bool {
    let is_around = |kind: Kind| {
        let around = [CrashPoint::AfterIntent, CrashPoint::AfterEffect];
        kind.steps().last().is_some_and(|step| {
            around
                .iter()
                .any(|at| point.ends_with(&format!("/{step}/{}", at.as_str())))
        })
    };
    kind_of(point).is_ok_and(is_around)
}

async fn matrix(backend: Backend, driver: DriverOfRows) -> Result<()> {
    let mut rows = crash_point::all();
    rows.retain(|row| driver.reaches(row));
    let rows = sample(backend, driver, rows);
    ensure!(
        rows.len() > 8,
        "the list of crash points is suspiciously short: {rows:?}"
    );
    let rows = futures::stream::iter(rows)
        .map(async |point| row(backend, driver, &point).await.with_context(|| point));
    let results: Vec<Result<()>> = rows.buffer_unordered(AT_A_TIME).collect().await;
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(
        failures.is_empty(),
        "{} rows failed:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    Ok(())
}

/// One row: kill at `point`, take over, look.
async fn row(backend: Backend, driver: DriverOfRows, point: &str) -> Result<()> {
    let mut deployment = driver.deployment(backend).await?;
    deployment.set("api", "accept_wait", 1);
    let api = deployment.api().await?;
    let subject = Subject::prepare(&deployment, &api, kind_of(point)?, driver.name()).await?;
    let before: HashSet<String> = deployment.operations().await?.iter().map(id_of).collect();

    let file = deployment.folder.join("crash-point");
    let doomed = deployment.conductor_launch("doomed").await?;
    let mut doomed = doomed
        .env("MAGNUM_TEST_CRASH_POINT", point)
        .env("MAGNUM_TEST_CRASH_POINT_FILE", &file)
        .start()
        .await?;
    let rpc = RawRpc::connect(&deployment.vhost).await?;
    let mut asked = if is_for_calls(point) {
        Asked::Call(Box::new(Call::send(rpc, subject.message()?).await?))
    } else {
        Asked::Request(tokio::spawn(subject.clone().ask(api.rest.clone(), rpc)))
    };
    wait::until("the crash point to be reached", PATIENCE, async || {
        file.with_extension("reached")
            .exists()
            .then_some(())
            .context("not yet")
    })
    .await?;
    doomed.kill().await?;
    let _heir = deployment.conductor("heir").await?;
    let cluster = match &mut asked {
        Asked::Request(request) => request.await??,
        Asked::Call(call) => call.answered(&deployment, point).await?,
    };
    one_succeeded(&deployment, &before).await?;
    let calls = outcome(&deployment, &api.rest, point, &subject, &cluster).await?;
    if driver.chooses() && subject.kind.steps().contains(&Step::ChooseNodes) {
        same_nodes(&deployment, point, &cluster, &calls)?;
    }
    Ok(())
}

fn kind_of(point: &str) -> Result<Kind> {
    let (kind, _) = point.split_once('/').context("a crash point without a kind")?;
    Ok(kind.parse()?)
}

fn id_of(operation: &Value) -> String {
    operation["id"].to_string()
}

/// All operations have ended, and exactly one of them is new.
async fn one_succeeded(deployment: &Deployment, before: &HashSet<String>) -> Result<()> {
    let is_ours = |operation: &Value| !before.contains(&id_of(operation));
    // The broker may still have to notice the death and deliver again, with no operation open that would tell.
    wait::until("the request to be journalled", PATIENCE, async || {
        ensure!(deployment.operations().await?.iter().any(is_ours), "not yet");
        Ok(())
    })
    .await?;
    let operations = deployment.settled(PATIENCE).await?;
    let ours: Vec<_> = operations.iter().filter(|one| is_ours(one)).collect();
    ensure!(
        ours.len() == 1,
        "the request became {} operations: {ours:#?}",
        ours.len()
    );
    ensure!(ours[0]["state"] == "succeeded", "it ended otherwise: {}", ours[0]);
    Ok(())
}

/// The request of a row under way.
enum Asked {
    Request(JoinHandle<Result<String>>),
    Call(Box<Call>),
}

/// A request made as a call.
struct Call {
    rpc: RawRpc,
    message: Value,
}

impl Call {
    async fn send(rpc: RawRpc, message: Value) -> Result<Self> {
        let message = rpc.ask(message).await?;
        Ok(Self { rpc, message })
    }

    /// Sees that the call is answered as the module says. Returns the cluster's uuid.
    async fn answered(&mut self, deployment: &Deployment, point: &str) -> Result<String> {
        let answer = self.answer().await?;
        if point.ends_with("/after_publish") {
            let again = self
                .answer()
                .await
                .context("the journal did not know that it was sent")?;
            ensure!(again == answer, "answered otherwise: {again} after {answer}");
        }
        wait::until("the journal to know of the answer", PATIENCE, async || {
            let operations = deployment.operations().await?;
            let pending = operations.iter().find(|one| one["answer_pending"] == true);
            ensure!(pending.is_none(), "pending: {pending:?}");
            Ok(())
        })
        .await?;
        self.rpc.ask(self.message.clone()).await?;
        let repeated = self.answer().await.context("the repeated message")?;
        ensure!(
            repeated == answer,
            "answered otherwise: {repeated} after {answer}"
        );
        let args = &self.message["args"];
        let cluster = args["uuid"].as_str();
        let cluster = cluster.or_else(|| args["cluster"]["magnum_object.data"]["uuid"].as_str());
        Ok(cluster.context("the cluster's uuid")?.to_owned())
    }

    /// The next answer, which is a result.
    async fn answer(&mut self) -> Result<Value> {
        let reply = self.rpc.reply_to(&self.message, PATIENCE).await?;
        ensure!(reply["failure"].is_null(), "answered with {}", reply["failure"]);
        Ok(reply["result"].clone())
    }
}

/// What the user sees and what the driver did, when all is over. Returns the calls of the driver.
async fn outcome(
    deployment: &Deployment,
    rest: &Rest,
    point: &str,
    subject: &Subject,
    cluster: &str,
) -> Result<Vec<CallLine>> {
    let status = subject.leads_to();
    ensure!(rest.status(cluster).await?.as_deref() == status);
    ensure!(
        deployment.record.is_built(cluster) == status.is_some(),
        "the effect differs from the status"
    );
    subject.has_happened(deployment, rest, cluster).await?;
    let step = subject.kind.steps().last().context("a workflow")?;
    // The program's word for the step.
    let call = step.as_str().trim_end_matches("_cluster");
    let calls = deployment.record.begun(call, cluster)?;
    // Only a crash between the effect and its record makes it happen again. A reply that is sent when the request is
    // accepted does not wait for the driver: its call may have begun beside it, in the conductor that is killed.
    let expected = if point.ends_with(&format!("/{step}/after_effect")) {
        2..=2
    } else if is_for_calls(point) && subject.kind.is_answered_when_accepted() {
        1..=2
    } else {
        1..=1
    };
    ensure!(
        expected.contains(&calls.len()),
        "the driver was called {} times instead of {expected:?}",
        calls.len()
    );
    ensure!(
        calls.iter().all(|one| one.operation == calls[0].operation),
        "repeated for another operation: {calls:#?}"
    );
    Ok(calls)
}

/// Every call was given the nodes that the driver had named last: the choice was asked for once, and again only where
/// the first answer had not been recorded.
fn same_nodes(deployment: &Deployment, point: &str, cluster: &str, calls: &[CallLine]) -> Result<()> {
    let lines = deployment.record.lines()?.into_iter();
    let choices: Vec<CallLine> = lines
        .filter(|line| line.cluster == cluster && line.outcome.as_deref() == Some("chosen"))
        .collect();
    let expected = if point.ends_with("/choose_nodes/after_effect") {
        2
    } else {
        1
    };
    ensure!(
        choices.len() == expected,
        "chosen {} times: {choices:#?}",
        choices.len()
    );
    let chosen = choices.last().and_then(|line| line.removes.as_ref());
    ensure!(chosen.is_some_and(|names| names.len() == 2), "{choices:#?}");
    ensure!(
        calls.iter().all(|one| one.removes.as_ref() == chosen),
        "others than {chosen:?} were removed: {calls:#?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crash_point_on_sqlite() -> Result<()> {
    matrix(Backend::Sqlite, DriverOfRows::Scripted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crash_point_on_mariadb() -> Result<()> {
    matrix(Backend::Mariadb, DriverOfRows::Scripted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crash_point_with_a_driver_that_is_a_python_package() -> Result<()> {
    matrix(Backend::Mariadb, DriverOfRows::Python).await
}
