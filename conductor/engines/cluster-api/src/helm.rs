//! The program `helm`: its command lines, and what its answers mean (reference drivers.md 4.3).
//!
//! It runs under a guard in a process group of its own, and is gone before this conductor's lease is. The values go to its standard
//! input. What it leaves when it is killed, a release that is `pending-…`, is what [`crate::release`] looks at before.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use magnum_driver_api::{DriverError, GuardProgram, Reason};
use magnum_engine_process::guard::{CANNOT_START, REFUSED};
use magnum_engine_process::{End, GuardTiming, Listener, Run};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What helm is told with `--timeout`.
const TIMEOUT: &str = "5m";
/// Revisions of a release that are kept.
const HISTORY: &str = "10";
/// Helm has to end by itself within [`TIMEOUT`]; this much more is for starting and for the repository.
const LIMIT: Duration = Duration::from_secs(7 * 60);
/// Of its words, the last so many characters are kept: an error stands at the end.
const KEPT: usize = 4096;

/// The release of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
}

/// Where a chart comes from.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// Its name, or its address (`oci://…`).
    pub name: &'a str,
    /// Its repository; empty where the name says it.
    pub repository: &'a str,
    /// Its version; empty for the newest.
    pub version: &'a str,
}

/// The arguments of `helm upgrade --install`.
pub fn upgrade(release: Release<'_>, chart: Chart<'_>, kubeconfig: &str) -> Vec<OsString> {
    let mut words = vec![
        "upgrade",
        release.name,
        chart.name,
        "--history-max",
        HISTORY,
        "--install",
        "--output",
        "json",
        "--timeout",
        TIMEOUT,
        "--values",
        "-",
        "--namespace",
        release.namespace,
    ];
    for (option, value) in [
        ("--repo", chart.repository),
        ("--version", chart.version),
        ("--kubeconfig", kubeconfig),
    ] {
        if !value.is_empty() {
            words.extend([option, value]);
        }
    }
    words.into_iter().map(OsString::from).collect()
}

/// The arguments of `helm uninstall`.
pub fn uninstall(release: Release<'_>, kubeconfig: &str) -> Vec<OsString> {
    let mut words = vec![
        "uninstall",
        release.name,
        "--timeout",
        TIMEOUT,
        "--namespace",
        release.namespace,
    ];
    if !kubeconfig.is_empty() {
        words.extend(["--kubeconfig", kubeconfig]);
    }
    words.into_iter().map(OsString::from).collect()
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct Helm {
    /// How to start guards.
    pub guard: GuardProgram,
    /// How to keep time with them.
    pub timing: GuardTiming,
}

/// What it said.
#[derive(Debug, Default)]
struct Words {
    answer: String,
    error: String,
}

impl Listener for Words {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        self.answer.push_str(line);
        Ok(())
    }

    fn stderr_line(&mut self, line: &str) {
        tracing::info!(target: "helm", "{line}");
        if !self.error.is_empty() {
            self.error.push('\n');
        }
        self.error.push_str(line);
        let surplus = self.error.chars().count().saturating_sub(KEPT);
        self.error = self.error.chars().skip(surplus).collect();
    }
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Done,
    /// There is no such release: what an uninstall wants.
    NoRelease,
    Failed(DriverError),
}

impl Helm {
    /// `helm upgrade --install` with these values.
    ///
    /// # Errors
    /// It failed, could not be started here, or was cancelled.
    pub async fn upgrade(
        &self,
        arguments: &[OsString],
        values: Value,
        cancel: &CancellationToken,
    ) -> Result<(), DriverError> {
        match self.run(arguments, values, cancel).await? {
            Meaning::Done => Ok(()),
            Meaning::NoRelease => Err(DriverError::Transient("helm does not find the release".into())),
            Meaning::Failed(error) => Err(error),
        }
    }

    /// `helm uninstall`. A release that is gone is success.
    ///
    /// # Errors
    /// It failed, could not be started here, or was cancelled.
    pub async fn uninstall(
        &self,
        arguments: &[OsString],
        cancel: &CancellationToken,
    ) -> Result<(), DriverError> {
        match self.run(arguments, Value::Null, cancel).await? {
            Meaning::Done | Meaning::NoRelease => Ok(()),
            Meaning::Failed(error) => Err(error),
        }
    }

    async fn run(
        &self,
        arguments: &[OsString],
        request: Value,
        cancel: &CancellationToken,
    ) -> Result<Meaning, DriverError> {
        let mut words = Words::default();
        let run = Run {
            guard: &self.guard,
            timing: self.timing,
            program: Path::new("helm"),
            arguments,
            directory: Path::new("/"),
            user: None,
            environment: environment(),
            request,
            limit: LIMIT,
            cancel,
        };
        let end = run.listen(&mut words).await.map_err(|error| {
            let why = format!("the guard of helm cannot be started: {error}");
            DriverError::NotHere(Reason::internal("this conductor cannot run helm", why))
        })?;
        Ok(meaning(&end, &words.error))
    }
}

/// Helm looks for the user's folders, for a kubeconfig that nothing else names, and for proxies.
fn environment() -> Vec<(String, OsString)> {
    const TAKEN: [&str; 8] = [
        "PATH",
        "HOME",
        "KUBECONFIG",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    let is_taken =
        |name: &str| TAKEN.contains(&name) || name.starts_with("HELM_") || name.starts_with("XDG_");
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    all.filter(|(name, _)| is_taken(name)).collect()
}

fn meaning(end: &End, error: &str) -> Meaning {
    let failed = |told: &str| Reason::internal(told, format!("helm: {error}"));
    Meaning::Failed(match end {
        End::Exited(0) => return Meaning::Done,
        End::Exited(code) if *code == i32::from(CANNOT_START) && error.contains(REFUSED) => {
            DriverError::NotHere(failed("this conductor cannot run helm"))
        }
        End::Exited(_) if error.contains("release: not found") => return Meaning::NoRelease,
        // Another one works on it, or one was killed in the middle of it: the next attempt looks at it first.
        End::Exited(_) if error.contains("another operation") => DriverError::Transient(failed(
            "another operation on the cluster's release is in progress",
        )),
        End::Exited(_) if is_away(error) => DriverError::Transient(failed(
            "the management cluster or the chart's repository is not available",
        )),
        End::Exited(_) => DriverError::Permanent(Reason::open(last_line(error))),
        End::Killed(_) | End::Flood | End::Garbage(_) => DriverError::Transient(failed("helm was stopped")),
        End::TimedOut => DriverError::Transient(failed("helm took too long")),
        End::Cancelled => DriverError::Cancelled,
    })
}

/// What helm says when it does not reach somebody, and what an API server in trouble answers it.
fn is_away(error: &str) -> bool {
    const SAID: [&str; 14] = [
        "cluster unreachable",
        "connection refused",
        "i/o timeout",
        "TLS handshake timeout",
        "no such host",
        "context deadline exceeded",
        "could not download chart",
        "looks like",
        "the server is currently unable to handle the request",
        "the server was unable to return a response in the time allotted",
        "the server has received too many requests",
        "an error on the server",
        "etcdserver: ",
        "the object has been modified",
    ];
    SAID.iter().any(|said| error.contains(said))
}

fn last_line(error: &str) -> String {
    let line = error.lines().rev().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("helm failed without a word").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Release<'_> = Release {
        name: "mine-abc",
        namespace: "magnum-p",
    };

    fn words(arguments: &[OsString]) -> String {
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn command_lines_are_the_packages() {
        let chart = Chart {
            name: "openstack-cluster",
            repository: "https://charts.example.test/capi",
            version: "0.10.1",
        };
        assert_eq!(
            words(&upgrade(RELEASE, chart, "/k")),
            "upgrade mine-abc openstack-cluster --history-max 10 --install --output json --timeout 5m --values - \
             --namespace magnum-p --repo https://charts.example.test/capi --version 0.10.1 --kubeconfig /k"
        );
        assert_eq!(
            words(&uninstall(RELEASE, "")),
            "uninstall mine-abc --timeout 5m --namespace magnum-p"
        );
    }

    #[test]
    fn a_release_that_is_gone_and_a_server_that_is_away_are_told_from_a_refusal() {
        let exited = |error: &str| meaning(&End::Exited(1), error);
        assert_eq!(meaning(&End::Exited(0), "warning"), Meaning::Done);
        assert_eq!(
            exited("Error: uninstall: Release not loaded: mine-abc: release: not found"),
            Meaning::NoRelease
        );
        for (error, is_permanent) in [
            (
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
                false,
            ),
            (
                "Error: Kubernetes cluster unreachable: Get https://m: dial tcp: connect: connection refused",
                false,
            ),
            ("Error: values don't meet the specifications of the schema", true),
        ] {
            let Meaning::Failed(failed) = exited(error) else {
                panic!("{error}");
            };
            assert_eq!(
                matches!(failed, DriverError::Permanent(_)),
                is_permanent,
                "{error}"
            );
        }
    }
}
