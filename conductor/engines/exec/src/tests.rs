//! The engine with real programs: small shell scripts, each under a real guard.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup};
use magnum_common::secret::Secret;
use magnum_config::{ConfigArgs, Settings};
use magnum_drivers::{DriverFolder, Manifest};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use super::*;
use magnum_driver_api::{
    Authorities, CaMaterial, Clock, Cloud, EngineOptions, EngineServices, NoTrusts, Progress, ProgressSink,
    RandomSource, Reason, Shared, SharedObjects, Task,
};

mod api;
mod guard_of_tests;
mod run_as;

/// The token of the user who asks.
const TOKEN: &str = "tok-of-the-caller";

fn context() -> RequestContext {
    RequestContext::from_map(json!({"auth_token": TOKEN}).as_object().unwrap().clone())
}

/// A driver whose program is a shell script in a folder of its own.
struct Script {
    folder: TempDir,
    driver: ExecDriver,
}

/// A store in which every cluster has the same certificates.
struct Store;

#[async_trait]
impl ClusterCertificates for Store {
    async fn open(&self, cluster: &Cluster) -> Result<Option<CaMaterial>, DriverError> {
        if cluster.name.as_deref() == Some("unreadable") {
            return Err(DriverError::Permanent("the store does not have it".into()));
        }
        Ok(Some(CaMaterial {
            ca: "the-ca".into(),
            client: "the-client".into(),
            key: Secret::new("the-key"),
        }))
    }

    async fn authorities(&self, _cluster: &Cluster) -> Result<Authorities, DriverError> {
        Err(DriverError::NotSupported(
            "no program gets the keys of authorities".into(),
        ))
    }
}

fn script(body: &str) -> Script {
    script_with(body, Duration::from_secs(60), Duration::from_millis(300))
}

fn script_with(body: &str, limit: Duration, grace: Duration) -> Script {
    let folder = tempfile::tempdir().unwrap();
    let driver = driver_in(folder.path(), body, limit, grace);
    Script { folder, driver }
}

/// The driver of `folder`, which keeps private files in `folder/run`.
fn driver_in(folder: &Path, body: &str, limit: Duration, grace: Duration) -> ExecDriver {
    let program = folder.join("driver.sh");
    fs::write(&program, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = Manifest::parse(
        "[driver]\nname = 'script'\nversion = '1.0.0'\nengine = 'exec'\n[[provides]]\nserver_type = 'vm'\n\
         os = 'ubuntu'\ncoe = 'kubernetes'\n[exec]\nprogram = 'driver.sh'\nenv = ['HOME']\n\
         ca_files = true\n[settings]\nroot = '/srv'\n",
    )
    .unwrap();
    let host = EngineHost {
        folder: DriverFolder {
            dir: folder.to_owned(),
            manifest,
        },
        services: EngineServices {
            guard: guard_of_tests::program(),
            lease: Duration::from_secs(60),
            options: EngineOptions::new(&configured(folder)),
            cloud: Cloud::new(&Settings::default()),
            certificates: Arc::new(Store),
            trusts: Arc::new(NoTrusts),
            clock: Clock::default(),
            random: RandomSource::default(),
            shared: Shared::default(),
        },
    };
    let mut driver = ExecDriver::new(host).unwrap();
    driver.spec.timeout = limit;
    driver.timing = GuardTiming {
        heartbeat: Duration::from_millis(100),
        silence: Duration::from_secs(20),
        grace,
    };
    driver
}

fn configured(folder: &Path) -> Settings {
    let (file, run) = (folder.join("magnum.conf"), folder.join("run"));
    fs::create_dir_all(&run).unwrap();
    fs::write(&file, format!("[exec]\nruntime_directory = {}\n", run.display())).unwrap();
    let args = ConfigArgs {
        files: vec![file],
        // An empty directory keeps the machine's own out.
        dirs: vec![run],
    };
    Settings::load(&args).unwrap().settings
}

#[derive(Default)]
struct Kept(Mutex<Vec<Progress>>);

impl ProgressSink for Kept {
    fn report(&self, progress: Progress) {
        self.0.lock().unwrap().push(progress);
    }
}

impl Script {
    async fn create(&self) -> Result<DriverReport, DriverError> {
        self.create_until(&CancellationToken::new(), &NoProgress).await
    }

    async fn create_until(
        &self,
        cancel: &CancellationToken,
        progress: &dyn ProgressSink,
    ) -> Result<DriverReport, DriverError> {
        self.call_for(Task::Create, "c", cancel, progress).await
    }

    async fn call_for(
        &self,
        task: Task<'_>,
        name: &str,
        cancel: &CancellationToken,
        progress: &dyn ProgressSink,
    ) -> Result<DriverReport, DriverError> {
        let context = context();
        let mut cluster = Cluster::new("c-1".into(), "t-1".into());
        cluster.name = Some(name.to_owned());
        let template = ClusterTemplate::new("t-1".into());
        let call = DriverCall {
            task,
            cluster: &cluster,
            node_groups: &[],
            template: &template,
            context: &context,
            operation: &OperationId::new("o-1"),
            attempt: 1,
            time_left: None,
            objects: SharedObjects::default(),
            progress,
            cancel: cancel.clone(),
        };
        self.driver.carry_out(&call).await
    }

    /// What stands in the directory for private files.
    fn private(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("run")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Waits until the program wrote a whole line into `name`: how a script says that it has got somewhere.
    async fn line_in(&self, name: &str) -> String {
        timeout(Duration::from_secs(20), async {
            loop {
                let text = self.file(name);
                if text.ends_with('\n') {
                    return text.trim().to_owned();
                }
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("the program writes its line")
    }
}

fn runs(pid: &str) -> bool {
    // A zombie has ended; it only waits for its parent, which in a test may be nobody in particular.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn gone(pid: &str) {
    timeout(Duration::from_secs(20), async {
        while runs(pid) {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the process ends");
}

fn text(result: Result<DriverReport, DriverError>) -> String {
    format!("{:?}", result.unwrap_err())
}

const HANGS: &str = "sleep 600 & echo $! > child; echo $$ > program; wait";

#[tokio::test]
async fn a_program_reads_its_request_reports_progress_and_answers() {
    let it = script(
        r#"cat > request
           echo '{"progress": "node 1", "percent": 50}'
           echo 'looking around' >&2
           echo '{"result": {"cluster": {"status": "CREATE_COMPLETE", "api_address": "https://10.0.0.1"}}}'"#,
    );
    let kept = Kept::default();
    let report = it.create_until(&CancellationToken::new(), &kept).await.unwrap();
    assert_eq!(report.cluster.status, Some(ClusterStatus::CreateComplete));
    assert_eq!(report.cluster.api_address.as_deref(), Some("https://10.0.0.1"));
    assert_eq!(kept.0.lock().unwrap()[0].percent, Some(50));
    let request: Value = serde_json::from_str(&it.file("request")).unwrap();
    assert_eq!(request["protocol"], 1);
    assert_eq!(request["cluster"]["uuid"], "c-1");
    assert_eq!(request["settings"]["root"], "/srv");
    assert_eq!(request["context"]["auth_token"], TOKEN);
}

#[tokio::test]
async fn environment_holds_only_the_variables_of_the_manifest() {
    let it = script("env > environment; echo '{\"result\": {}}'");
    it.create().await.unwrap();
    let mut names: Vec<String> = it
        .file("environment")
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        // Of the shell itself and of the guard's stand-in.
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_", "GUARD_ARGS"].contains(&name.as_str()))
        .filter(|name| !name.starts_with("--") && name != "RUST_BACKTRACE")
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "HOME",
            "MAGNUM_CALL",
            "MAGNUM_CA_DIR",
            "MAGNUM_CLUSTER_UUID",
            "MAGNUM_DRIVER",
            "MAGNUM_DRIVER_DIR",
            "MAGNUM_OPERATION_ID",
            "PATH"
        ]
    );
}

#[tokio::test]
async fn the_last_line_on_standard_error_explains_an_exit_code_to_administrators() {
    let it = script("echo first >&2; echo 'no such flavor' >&2; exit 3");
    let error = it.create().await.unwrap_err();
    let told = "driver script 1.0.0 (driver.sh) failed with exit code 3";
    let whole = format!("{told}: no such flavor");
    assert_eq!(error, DriverError::Permanent(Reason::internal(told, whole)));
}

#[tokio::test]
async fn exit_75_asks_for_another_attempt() {
    let it = script("echo 'cloud is busy' >&2; exit 75");
    assert!(text(it.create().await).starts_with("Transient("));
}

#[tokio::test]
async fn a_named_error_counts_more_than_the_exit_code() {
    let it = script(r#"echo '{"error": "quota", "class": "transient"}'; exit 1"#);
    let error = it.create().await.unwrap_err();
    assert_eq!(error, DriverError::Transient("quota".into()));
}

#[tokio::test]
async fn a_crash_by_signal_is_transient() {
    let it = script("kill -SEGV $$");
    let error = it.create().await.unwrap_err();
    let told = "driver script 1.0.0 (driver.sh) was killed by signal 11";
    assert!(
        matches!(&error, DriverError::Transient(reason) if reason.told() == told),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_code_above_those_of_signals_is_the_programs_own() {
    let it = script("exit 255");
    let error = it.create().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "driver script 1.0.0 (driver.sh) failed with exit code 255"
    );
}

#[tokio::test]
async fn reply_survives_a_child_outside_the_group_that_keeps_the_pipes_open() {
    let it = script(
        r#"setsid sleep 20 & i=0
        while [ $i -lt 3000 ]; do echo '{"progress": "one more line of many"}'; i=$((i + 1)); done
        echo '{"result": {"cluster": {"stack_id": "s-1"}}}'"#,
    );
    let report = timeout(Duration::from_secs(15), it.create())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(report.cluster.stack_id.as_deref(), Some("s-1"));
}

#[tokio::test]
async fn program_without_output_fails() {
    let it = script("exit 0");
    assert!(text(it.create().await).contains("without a line that holds a result"));
}

#[tokio::test]
async fn garbage_is_a_permanent_error_that_quotes_it_and_stops_the_program() {
    let it = script(&format!("echo 'PLAY [all] token {TOKEN}'; {HANGS}"));
    let error = text(it.create().await);
    assert!(error.starts_with("Permanent("), "{error}");
    assert!(error.contains("PLAY [all] token ***"), "{error}");
}

#[tokio::test]
async fn a_flood_is_a_permanent_error() {
    let it = script("while :; do echo '{\"progress\": \"and so on\"}'; done | head -c 40000000; sleep 600");
    assert!(text(it.create().await).contains("16 MiB"));
    let it = script("head -c 3000000 /dev/zero | tr '\\0' x; sleep 600");
    assert!(text(it.create().await).contains("1 MiB in a line"));
}

#[tokio::test]
async fn a_flood_on_standard_error_is_cut_and_harms_nothing() {
    let it = script("yes warning | head -n 20000 >&2; echo '{\"result\": {}}'");
    it.create().await.unwrap();
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let it = script("true");
    fs::remove_file(it.folder.path().join("driver.sh")).unwrap();
    let error = it.create().await.unwrap_err();
    let reason = error.reason();
    let named = reason.whole();
    assert!(matches!(error, DriverError::NotHere(_)), "{error:?}");
    assert!(
        named.contains("cannot start") && named.contains("driver.sh"),
        "{named}"
    );
}

#[tokio::test]
async fn a_program_that_is_taken_away_while_it_starts_is_not_here() {
    let it = script(r#"rm "$MAGNUM_DRIVER_DIR/driver.sh"; echo "can't open file" >&2; exit 2"#);
    let error = it.create().await.unwrap_err();
    let DriverError::NotHere(reason) = &error else {
        panic!("another conductor may have it: {error:?}");
    };
    assert!(
        reason.whole().contains("exit code 2: can't open file"),
        "{error:?}"
    );
    let it = script(r#"rm "$MAGNUM_DRIVER_DIR/driver.sh"; echo '{"error": "quota"}'; exit 1"#);
    let error = it.create().await.unwrap_err();
    assert_eq!(
        error,
        DriverError::Permanent("quota".into()),
        "it has said what it is"
    );
}

#[tokio::test]
async fn a_program_that_cannot_start_another_one_has_failed() {
    let it = script("echo 'no such tool' >&2; exit 126");
    let error = it.create().await.unwrap_err();
    assert!(matches!(error, DriverError::Permanent(_)), "{error:?}");
}

#[tokio::test]
async fn a_program_that_hangs_is_stopped_with_its_children() {
    let it = script_with(HANGS, Duration::from_millis(700), Duration::from_millis(300));
    let error = text(it.create().await);
    assert!(error.contains("did not end within 1 seconds"), "{error}");
    for name in ["program", "child"] {
        gone(&it.line_in(name).await).await;
    }
}

#[tokio::test]
async fn cancelling_lets_the_program_tidy_up_within_the_grace() {
    let it = script_with(
        "trap 'echo tidy > tidied; exit 0' TERM; echo $$ > program; while :; do sleep 0.05; done",
        Duration::from_secs(60),
        Duration::from_secs(20),
    );
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(it.create_until(&cancel, &NoProgress), async {
        it.line_in("program").await;
        cancel.cancel();
    });
    assert_eq!(result, Err(DriverError::Cancelled));
    assert_eq!(it.file("tidied"), "tidy\n");
    assert!(!runs(&it.line_in("program").await));
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_the_grace() {
    let it = script(&format!("trap '' TERM; {HANGS}; {HANGS}"));
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(it.create_until(&cancel, &NoProgress), async {
        it.line_in("child").await;
        it.line_in("program").await;
        cancel.cancel();
    });
    assert_eq!(result, Err(DriverError::Cancelled));
    for name in ["program", "child"] {
        gone(&it.line_in(name).await).await;
    }
}

#[tokio::test]
async fn dropping_the_call_kills_the_whole_group() {
    let it = script(HANGS);
    tokio::select! {
        _ = it.create() => panic!("the program hangs"),
        _ = it.line_in("program") => {}
    }
    for name in ["program", "child"] {
        gone(&it.line_in(name).await).await;
    }
}

#[tokio::test]
async fn processes_left_by_a_program_are_killed_at_the_end_of_the_call() {
    let it = script("sleep 600 & echo $! > child; echo '{\"result\": {}}'");
    it.create().await.unwrap();
    gone(&it.line_in("child").await).await;
}

/// A conductor that dies closes the pipe; here the pipe is closed and nothing else is done.
#[tokio::test]
async fn the_guard_stops_an_orphaned_program_by_itself() {
    let it = script(HANGS);
    let mut guard = by_hand(&it, Duration::from_secs(20)).await;
    for name in ["program", "child"] {
        it.line_in(name).await;
    }
    drop(guard.stdin.take());
    for name in ["program", "child"] {
        gone(&it.line_in(name).await).await;
    }
    guard.wait().await.unwrap();
}

/// A conductor that is stopped (SIGSTOP, a paused machine) keeps the pipe open but says nothing.
#[tokio::test]
async fn guard_stops_the_program_of_a_dead_conductor() {
    let it = script(HANGS);
    let mut guard = by_hand(&it, Duration::from_millis(400)).await;
    for name in ["program", "child"] {
        gone(&it.line_in(name).await).await;
    }
    assert!(guard.stdin.is_some());
    guard.wait().await.unwrap();
}

async fn by_hand(it: &Script, silence: Duration) -> tokio::process::Child {
    let program = guard_of_tests::program();
    let mut child = tokio::process::Command::new(program.program)
        .args(program.arguments)
        .args([
            magnum_engine_process::guard::SUB_COMMAND,
            "--silence-ms",
            &silence.as_millis().to_string(),
            "--grace-ms",
            "200",
            "--",
        ])
        .arg(&it.driver.program)
        .current_dir(it.folder.path())
        .stdin(std::process::Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{}\n").await.unwrap();
    child
}

#[tokio::test]
async fn observing_answers_for_each_cluster() {
    let it = script(
        r#"cat > request
           echo '{"cluster": "c-1", "result": {"cluster": {"status": "CREATE_COMPLETE"}}}'
           echo '{"cluster": "c-2", "error": "cannot reach it", "class": "transient"}'"#,
    );
    let clusters = ["c-1", "c-2"].map(|uuid| ClusterRef {
        cluster: Cluster::new(uuid.into(), "t-1".into()),
        node_groups: Vec::new(),
        template: ClusterTemplate::new("t-1".into()),
        operation: None,
        objects: SharedObjects::default(),
    });
    let seen = it.driver.observe(&clusters).await.unwrap();
    assert_eq!(
        seen[0].result,
        Ok(DriverReport::status(ClusterStatus::CreateComplete))
    );
    assert_eq!(
        seen[1].result,
        Err(DriverError::Transient("cannot reach it".into()))
    );
    let request: Value = serde_json::from_str(&it.file("request")).unwrap();
    assert_eq!(request["clusters"][1]["cluster"]["uuid"], "c-2");
}

#[tokio::test]
async fn many_programs_run_beside_each_other() {
    let it = script("cat > /dev/null; echo '{\"result\": {}}'");
    let all = futures::future::join_all((0..20).map(|_| it.create())).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert!(Path::new(it.folder.path()).exists());
}

#[tokio::test]
async fn ca_files_are_private_last_as_long_as_the_call_and_are_nowhere_else() {
    let it = script(
        r#"cat > request; env > environment; tr '\\0' '\\n' < /proc/$$/cmdline > arguments
           echo "$MAGNUM_CA_DIR" > directory
           stat -c '%a %n' "$MAGNUM_CA_DIR" "$MAGNUM_CA_DIR"/* > modes
           cat "$MAGNUM_CA_DIR/ca.crt" "$MAGNUM_CA_DIR/client.crt" "$MAGNUM_CA_DIR/client.key" > texts
           echo '{"result": {}}'"#,
    );
    it.create().await.unwrap();
    let directory = it.file("directory").trim().to_owned();
    assert_eq!(it.file("texts"), "the-ca\nthe-client\nthe-key\n");
    let names = ["ca.crt", "client.crt", "client.key"].map(|name| format!("600 {directory}/{name}\n"));
    assert_eq!(it.file("modes"), format!("700 {directory}\n{}", names.concat()));
    for elsewhere in ["request", "environment", "arguments"] {
        let text = it.file(elsewhere);
        assert!(
            !text.is_empty() && !text.contains("the-key"),
            "{elsewhere}: {text}"
        );
    }
    assert!(!Path::new(&directory).exists());
    assert_eq!(it.private(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn ca_files_are_gone_after_a_call_that_was_cancelled_dropped_or_killed() {
    let it = script(&format!("echo \"$MAGNUM_CA_DIR\" > directory; {HANGS}"));
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(it.create_until(&cancel, &NoProgress), async {
        it.line_in("program").await;
        assert!(
            Path::new(&it.line_in("directory").await)
                .join("client.key")
                .exists()
        );
        cancel.cancel();
    });
    assert_eq!(result, Err(DriverError::Cancelled));
    assert_eq!(it.private(), Vec::<PathBuf>::new());

    fs::remove_file(it.folder.path().join("program")).unwrap();
    tokio::select! {
        _ = it.create() => panic!("the program hangs"),
        // Looked at in here: the call is dropped before the branch is done.
        () = async {
            it.line_in("program").await;
            assert_eq!(it.private().len(), 1);
        } => {}
    }
    assert_eq!(it.private(), Vec::<PathBuf>::new());

    let it = script("kill -9 $$");
    assert!(text(it.create().await).contains("signal 9"));
    assert_eq!(it.private(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn certificates_that_cannot_be_read_fail_a_call_but_never_a_delete() {
    let it = script("env > environment; echo '{\"result\": {}}'");
    let never = CancellationToken::new();
    let created = it.call_for(Task::Create, "unreadable", &never, &NoProgress).await;
    assert_eq!(
        created,
        Err(DriverError::Permanent("the store does not have it".into()))
    );
    assert_eq!(it.file("environment"), "", "the program was not started");
    it.call_for(Task::Delete, "unreadable", &never, &NoProgress)
        .await
        .unwrap();
    assert!(!it.file("environment").contains("MAGNUM_CA_DIR"));
}

/// The conductor of the next test: makes a call that hangs.
#[tokio::test]
async fn stands_in_for_a_conductor() {
    let Ok(folder) = std::env::var("CONDUCTOR_FOLDER") else {
        return;
    };
    let hangs = format!("echo \"$MAGNUM_CA_DIR\" > directory; {HANGS}");
    let second = Duration::from_secs(1);
    let driver = driver_in(Path::new(&folder), &hangs, second * 60, second);
    let it = Script {
        folder: tempfile::tempdir().unwrap(),
        driver,
    };
    let _ = it.create().await;
}

#[tokio::test]
async fn ca_files_of_a_conductor_that_was_killed_go_when_the_next_one_loads_its_drivers() {
    let next = script("true");
    let mut conductor = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "tests::stands_in_for_a_conductor"])
        .env("CONDUCTOR_FOLDER", next.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let program = next.line_in("program").await;
    let directory = PathBuf::from(next.line_in("directory").await);
    let second = Duration::from_secs(1);
    driver_in(next.folder.path(), "true", second, second);
    assert!(directory.join("client.key").exists(), "it is in use");
    conductor.kill().await.unwrap();
    gone(&program).await;
    assert!(
        directory.join("client.key").exists(),
        "nobody was left to remove it"
    );
    driver_in(next.folder.path(), "true", second, second);
    assert!(!directory.exists());
}

#[test]
fn wrong_engine_option_is_reported_with_its_line_and_the_driver_does_not_load() {
    let folder = tempfile::tempdir().unwrap();
    let second = Duration::from_secs(1);
    drop(driver_in(folder.path(), "true", second, second));
    let mut options = configured(folder.path());
    let conf = folder.path().join("magnum.conf");
    fs::write(&conf, "[exec]\nruntime_directory = $nowhere/x\n").unwrap();
    let args = ConfigArgs {
        files: vec![conf],
        dirs: vec![folder.path().join("run")],
    };
    options.written = Settings::load(&args).unwrap().settings.written;
    let problems = EngineOptions::new(&options).section::<ExecSection>().unwrap_err();
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1 && told[0].contains("magnum.conf:2: [exec] runtime_directory: "),
        "{told:?}"
    );
}

/// The clusters `c-1` and `c-2`, with a node group each.
fn two_clusters() -> [ClusterRef; 2] {
    ["c-1", "c-2"].map(|uuid| ClusterRef {
        cluster: Cluster::new(uuid.into(), "t-1".into()),
        node_groups: vec![NodeGroup::new("g-1".into(), "g", uuid.into(), "p", "worker")],
        template: ClusterTemplate::new("t-1".into()),
        operation: None,
        objects: SharedObjects::default(),
    })
}

impl Script {
    async fn choose(&self) -> Result<Vec<String>, DriverError> {
        let context = context();
        let [one, _] = two_clusters();
        let group = one.node_groups[0].uuid.clone();
        let shrinking = Shrinking {
            node_group: &group,
            from: 5,
            to: 3,
        };
        let call = DriverCall {
            task: Task::Resize {
                node_group: &group,
                remove: &[],
            },
            cluster: &one.cluster,
            node_groups: &one.node_groups,
            template: &one.template,
            context: &context,
            operation: &OperationId::new("o-1"),
            attempt: 1,
            time_left: None,
            objects: SharedObjects::default(),
            progress: &NoProgress,
            cancel: CancellationToken::new(),
        };
        self.driver.nodes_to_remove(&call, shrinking).await
    }
}

#[tokio::test]
async fn a_program_is_asked_to_choose_nodes_only_with_the_capability() {
    let mut it = script(
        r#"cat > request; echo "$MAGNUM_CALL $MAGNUM_OPERATION_ID" > call
           echo '{"result": {"nodes": ["b", "a"]}}'"#,
    );
    assert!(matches!(it.choose().await, Err(DriverError::NotSupported(_))));
    assert_eq!(it.file("call"), "");
    it.driver.info.capabilities.scale = true;
    assert_eq!(it.choose().await, Ok(vec!["b".into(), "a".into()]));
    assert_eq!(it.file("call"), "scale o-1\n");
    let request: Value = serde_json::from_str(&it.file("request")).unwrap();
    let asked = ["call", "node_group", "node_count", "surplus", "nodes_to_remove"].map(|key| &request[key]);
    assert_eq!(json!(asked), json!(["scale", "g-1", 3, 2, null]));
    assert_eq!(request["context"]["auth_token"], TOKEN);
}

#[tokio::test]
async fn a_choice_that_breaks_the_protocol_is_a_permanent_error() {
    for (answer, words) in [
        (
            r#"{"result": {"node_groups": []}}"#,
            "unknown field `node_groups`",
        ),
        (r#"{"result": {"nodes": "a"}}"#, "expected a sequence"),
        (
            r#"{"cluster": "c-1", "result": {"nodes": []}}"#,
            "names its cluster",
        ),
    ] {
        let mut it = script(&format!("cat > /dev/null; echo '{answer}'"));
        it.driver.info.capabilities.scale = true;
        let Err(DriverError::Permanent(reason)) = it.choose().await else {
            panic!("{answer}");
        };
        assert!(reason.whole().contains(words), "{answer}: {reason}");
    }
}

#[tokio::test]
async fn utilisation_is_asked_only_with_the_capability() {
    let mut it = script(
        r#"cat > request
           echo '{"cluster": "c-1", "result": {"cluster": {"cpu_percent": 7}, "node_groups": [{"uuid": "g-1", "memory_used_bytes": 9}]}}'
           echo '{"cluster": "c-2", "error": "cannot reach it", "class": "transient"}'"#,
    );
    let clusters = two_clusters();
    let unasked = it.driver.utilisation(&clusters).await;
    assert!(matches!(unasked, Err(DriverError::NotSupported(_))));
    it.driver.info.capabilities.monitor = true;
    let seen = it.driver.utilisation(&clusters).await.unwrap();
    let report = seen[0].result.as_ref().unwrap();
    assert_eq!(report.cluster.cpu_percent, Some(7.0));
    assert_eq!(report.node_groups[0].used.memory_used_bytes, Some(9.0));
    let busy = DriverError::Transient("cannot reach it".into());
    assert_eq!(seen[1].result, Err(busy));
    let request: Value = serde_json::from_str(&it.file("request")).unwrap();
    assert_eq!(request["call"], "monitor");
    assert_eq!(request["clusters"][1]["cluster"]["uuid"], "c-2");
}

#[tokio::test]
async fn garbage_about_health_is_an_error_and_never_a_health() {
    for (body, words) in [
        (
            r#"{"cluster": {"health_status": "FINE"}}"#,
            "'FINE' is not a value",
        ),
        (
            r#"{"cluster": {"health_status": "HEALTHY", "health_status_reason": ["ok"]}}"#,
            "invalid type: sequence",
        ),
        (
            r#"{"cluster": {"health_status": "HEALTHY"}, "node_groups": [{"uuid": "g-1", "node_count": 0}]}"#,
            "holds health_status",
        ),
        (
            r#"{"cluster": {"health_status_reason": {"api": "ok"}}}"#,
            "holds health_status",
        ),
        (
            r#"{"cluster": {"cpu_percent": 1}}"#,
            "unknown field `cpu_percent`",
        ),
    ] {
        let line = format!(r#"{{"cluster": "c-1", "result": {body}}}"#);
        let mut it = script(&format!("cat > /dev/null; echo '{line}'"));
        it.driver.info.capabilities.health = true;
        let seen = it.driver.health(&two_clusters()).await;
        let failure = match seen {
            Err(error) => error,
            Ok(mut seen) => seen.remove(0).result.unwrap_err(),
        };
        assert!(
            matches!(&failure, DriverError::Permanent(reason) if reason.whole().contains(words)),
            "{body}: {failure}"
        );
    }
}
