//! The operators' page, in headless Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::process::Launch;
use magnum_tests::run_dir::run_dir;

use magnum_tests::api_alone::World;

/// What somebody may have called a cluster, a driver, or a reason.
const HOSTILE: &str =
    "<img src=x onerror=\"document.title=''owned''\"><script>document.title=''owned''</script>&amp;";

const CLUSTER: &str = "0c1f7b1e-0000-4000-8000-000000000001";

/// A deployment that has seen better days.
async fn world() -> Result<World> {
    let world = World::start(|_| {}).await?;
    let now = "cast(strftime('%s', 'now') as integer) * 1000";
    let operation = |number: u32, state: &str, reason: &str| {
        format!(
            "insert into conductor_operation (uuid, kind, cluster_uuid, state, step, args, attempts, failures, owner, \
             reason, created_ms, updated_ms, ended_ms, request_id, driver, driver_version) values \
             ('0c1f7b1e-0000-4000-8000-0000000001{number:02}', 'cluster_update', '{CLUSTER}', '{state}', 'drive', x'00', \
             3, 2, 'ctl1:4711', '{reason}', {now} - 90000, {now}, {ended}, 'req-{number}', 'disk', '1.2.0');",
            ended = if state == "failed" { now } else { "null" },
        )
    };
    let service = |host: &str, seen: &str| {
        format!(
            "insert into magnum_service (host, \"binary\", disabled, forced_down, report_count, last_seen_up, created_at) \
             values ('{host}', 'magnum-conductor', 0, 0, 7, {seen}, datetime('now', '-2 days'));"
        )
    };
    let driver = |name: &str, error: &str| {
        format!(
            "insert into conductor_driver (conductor, host, name, version, beta, cluster_types, capabilities, \
             master_size_rule, error, announced_ms) values ('ctl1:4711', 'ctl1', '{name}', '1.2.0', 0, \
             '[{{\"server_type\": \"vm\", \"os\": \"ubuntu\", \"coe\": \"kubernetes\"}}]', '{{}}', 'odd', {error}, {now});"
        )
    };
    world
        .sql(
            &[
                service("ctl1", "datetime('now')"),
                service("ctl2", "datetime('now', '-1 day')"),
                driver("disk", "null"),
                driver(HOSTILE, &format!("'driver.toml: line 3: {HOSTILE}'")),
                format!("insert into cluster (uuid, name, status) values ('{CLUSTER}', '{HOSTILE}', 'UPDATE_IN_PROGRESS');"),
                operation(1, "running", ""),
                operation(2, "retrying", "the cloud is busy"),
                operation(3, "failed", &format!("quota exceeded {HOSTILE}")),
            ]
            .concat(),
        )
        .await?;
    Ok(world)
}

fn browser() -> Result<PathBuf> {
    ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .context("no Chromium is installed (tests/run --check says what is missing)")
}

/// What the browser makes of the page, as HTML; a screenshot is left in `picture`.
async fn seen(url: &str, picture: &Path) -> Result<String> {
    let profile = run_dir()?.folder("browser")?;
    let launch = || -> Result<Launch> {
        Ok(Launch::command("chromium", Command::new(browser()?)).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=1300,1100",
            &format!("--user-data-dir={}", profile.display()),
        ]))
    };
    let screenshot = format!("--screenshot={}", picture.display());
    launch()?.args([screenshot.as_str(), url]).output().await?;
    launch()?.args(["--dump-dom", url]).output().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_shows_operations_and_escapes_names_and_reasons() -> Result<()> {
    let world = world().await?;
    let url = world.admin("/ui");
    let answer = reqwest::get(&url).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    let policy = answer.headers()["content-security-policy"].to_str()?.to_owned();
    ensure!(
        policy.starts_with("default-src 'none'; style-src 'self';"),
        "{policy}"
    );
    let html = answer.text().await?;
    ensure!(!html.contains("<script") && !html.contains("<img"), "{html}");
    ensure!(!html.contains("//"), "the page names something elsewhere: {html}");

    let picture = run_dir()?.folder("pictures")?.join("ui.png");
    let dom = seen(&url, &picture).await?;
    ensure!(dom.contains("<title>Magnum</title>"), "a script ran: {dom}");
    for shown in [
        "ctl1",
        "down",
        "retrying",
        "the cloud is busy",
        "quota exceeded &lt;img src=x onerror=",
        "line 3: &lt;img",
        "vm, ubuntu, kubernetes",
        "req-3",
    ] {
        ensure!(dom.contains(shown), "{shown} is not in {dom}");
    }
    ensure!(std::fs::metadata(&picture)?.len() > 10_000, "an empty picture");
    // Its own style is what the policy allows, and all that it needs.
    let style = reqwest::get(world.admin("/ui/style.css")).await?;
    ensure!(style.headers()["content-type"] == "text/css; charset=utf-8");
    // Never on the port of clients.
    ensure!(reqwest::get(world.url("/ui")).await?.status().as_u16() == 404);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_without_its_tables_shows_that_nothing_is_known() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let empty = reqwest::get(world.admin("/ui")).await?.text().await?;
    ensure!(
        empty.contains("No conductor has ever reported") && empty.contains("Nothing is being done"),
        "{empty}"
    );
    world
        .sql("alter table conductor_operation rename to elsewhere")
        .await?;
    let answer = reqwest::get(world.admin("/ui")).await?;
    ensure!(answer.status().as_u16() == 503);
    let text = answer.text().await?;
    ensure!(
        text.contains("knows nothing") && !text.contains("elsewhere"),
        "{text}"
    );
    world.stop().await;
    Ok(())
}
