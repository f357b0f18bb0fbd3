//! The operators' pages, as HTML and in headless Chromium.

mod stage;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_common::secret::Secret;
use magnum_conductor::operations::{State, hold};
use magnum_conductor::workflows::OperationKind;
use magnum_config::{AuthStrategy, Settings};
use magnum_db::read::operations;
use magnum_tests::api_alone::World;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::process::Launch;
use magnum_tests::recorded_cloud::RecordedCloud;
use magnum_tests::run_dir::run_dir;
use magnum_tests::statements::Statements;
use magnum_tests::wait;

use self::stage::{CLUSTER, Operation, operation_id};

/// Where the pictures of the documents are.
const DOCUMENTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/images");

fn browser() -> Result<PathBuf> {
    ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
        .context("no Chromium is installed (tests/run --check says what is missing)")
}

/// After that, what a test waits for does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a page is looked at.
#[derive(Clone, Copy)]
struct Look {
    width: u32,
    height: u32,
    is_dark: bool,
}

const DESK: Look = Look {
    width: 1280,
    height: 830,
    is_dark: false,
};

impl Look {
    fn launch(self) -> Result<Launch> {
        let profile = run_dir()?.folder("browser")?;
        let size = format!("--window-size={},{}", self.width, self.height);
        // What the page's `prefers-color-scheme` is told: 0 is dark, 1 is light.
        let scheme = format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(!self.is_dark)
        );
        Ok(Launch::command("chromium", Command::new(browser()?)).args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            size.as_str(),
            scheme.as_str(),
            &format!("--user-data-dir={}", profile.display()),
        ]))
    }

    /// Leaves a picture of the page.
    async fn picture(self, url: &str, picture: &Path) -> Result<()> {
        let screenshot = format!("--screenshot={}", picture.display());
        self.launch()?.args([screenshot.as_str(), url]).output().await?;
        let size = std::fs::metadata(picture)?.len();
        ensure!(size > 10_000, "{}: an empty picture", picture.display());
        Ok(())
    }

    /// What the browser makes of the page, as HTML.
    async fn dom(self, url: &str) -> Result<String> {
        self.launch()?.args(["--dump-dom", url]).output().await
    }
}

/// Status and body of a page.
async fn page(world: &World, path: &str) -> Result<(u16, String)> {
    let answer = reqwest::get(world.admin(path)).await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

/// Every place that a page leads to or takes something from.
fn places(html: &str) -> Vec<&str> {
    [" href=\"", " src=\"", " action=\""]
        .into_iter()
        .flat_map(|attribute| html.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_operations_and_escape_names_and_reasons() -> Result<()> {
    let world = stage::hostile().await?;
    let history = format!("/ui/operations/{}", operation_id(3));
    let shown: [(&str, &[&str]); 3] = [
        (
            "/ui",
            &[
                "ctl1",
                "down",
                "retrying",
                "the cloud is busy",
                "quota exceeded &lt;img src=x onerror=",
                "line 3: &lt;img",
                "vm, ubuntu, kubernetes",
            ],
        ),
        ("/ui/operations", &["the cloud is busy", "quota exceeded &lt;img"]),
        (&history, &["req-3", "attempt 1 &lt;img", "of &lt;img"]),
    ];
    for (path, shown) in shown {
        let answer = reqwest::get(world.admin(path)).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let policy = answer.headers()["content-security-policy"].to_str()?.to_owned();
        ensure!(
            policy.starts_with("default-src 'none'; style-src 'self';")
                && policy.contains("form-action 'self'"),
            "{policy}"
        );
        let html = answer.text().await?;
        ensure!(
            !html.contains("<script") && !html.contains("<img") && !html.contains("style=\""),
            "{html}"
        );
        // Arguments, contexts and answers are not for people.
        ensure!(!html.contains("hunter2"), "{html}");
        let places = places(&html);
        let is_here = |place: &&str| place.starts_with("/ui") || place.starts_with('#');
        ensure!(!places.is_empty() && places.iter().all(is_here), "{places:?}");
        let dom = DESK.dom(&world.admin(path)).await?;
        ensure!(dom.contains("Magnum</title>"), "a script ran: {dom}");
        for text in shown {
            ensure!(dom.contains(text), "{text} is not in {dom}");
        }
    }
    // Its own style is what the policy allows, and all that it needs.
    let style = reqwest::get(world.admin("/ui/style.css")).await?;
    ensure!(style.headers()["content-type"] == "text/css; charset=utf-8");
    // Never on the port of clients.
    for path in ["/ui", "/ui/operations"] {
        ensure!(
            reqwest::get(world.url(path)).await?.status().as_u16() == 404,
            "{path}"
        );
    }
    // The admin interface begins with it.
    let root = reqwest::get(world.admin("/")).await?;
    ensure!(root.url().path() == "/ui" && root.status().is_success());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_without_its_tables_shows_that_nothing_is_known() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let (_, empty) = page(&world, "/ui").await?;
    ensure!(
        empty.contains("No conductor has ever reported") && empty.contains("Nothing is being done"),
        "{empty}"
    );
    world
        .sql("alter table conductor_operation rename to elsewhere")
        .await?;
    let history = format!("/ui/operations/{}", operation_id(1));
    for path in ["/ui", "/ui/operations", &history] {
        let (status, text) = page(&world, path).await?;
        ensure!(status == 503, "{path}: {status}");
        ensure!(
            text.contains("knows nothing") && !text.contains("elsewhere"),
            "{text}"
        );
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_is_narrowed_by_what_an_address_says_and_names_what_it_cannot_use() -> Result<()> {
    const OTHER: &str = "0c1f7b1e-0000-4000-8000-000000000002";
    let world = World::start(|_| {}).await?;
    let rows = [
        Operation::new(1, "cluster_create", "succeeded"),
        Operation {
            project: "p-red",
            ..Operation::new(2, "cluster_update", "running")
        },
        Operation {
            cluster: OTHER.to_owned(),
            ..Operation::new(3, "cluster_update", "failed")
        },
    ];
    let rows: Vec<String> = rows.iter().map(Operation::sql).collect();
    world
        .sql(&(rows.concat() + &stage::cluster(CLUSTER, "blue & green")))
        .await?;
    let first = operation_id(1);
    let upper = CLUSTER.to_uppercase();
    for (query, expected) in [
        ("", &[1, 2, 3][..]),
        ("search=&project=&kind=&state=", &[1, 2, 3]),
        ("project=p-blue", &[1, 3]),
        ("kind=cluster_update", &[2, 3]),
        ("state=failed", &[3]),
        ("state=open", &[2]),
        ("kind=cluster_update&project=p-blue&state=failed", &[3]),
        ("kind=cluster_create&state=failed", &[]),
        (&format!("search={first}"), &[1]),
        ("search=aaaabbbbccccddddeeeeffff00000002", &[2]),
        ("search=req-3", &[3]),
        (&format!("search={upper}"), &[1, 2]),
        (&format!("search={OTHER}"), &[3]),
        ("search=blue+%26+green", &[1, 2]),
        ("search=blue", &[]),
        ("before=3", &[1, 2]),
    ] {
        let (status, html) = page(&world, &format!("/ui/operations?{query}")).await?;
        ensure!(status == 200, "{query}: {status} {html}");
        let found: Vec<u32> = (1..=3)
            .filter(|number| html.contains(&format!("href=\"/ui/operations/{}\"", operation_id(*number))))
            .collect();
        ensure!(found == expected, "{query}: {found:?}");
    }
    for (query, name) in [
        ("state=broken", "state"),
        ("kind=create", "kind"),
        ("states=failed", "states"),
        ("project=a&project=b", "project"),
        ("search=%00", "search"),
        ("before=x", "before"),
    ] {
        let (status, html) = page(&world, &format!("/ui/operations?{query}")).await?;
        let named = format!("The parameter <code>{name}</code> cannot be used");
        ensure!(status == 400 && html.contains(&named), "{query}: {status} {html}");
    }
    // What was chosen is still chosen.
    let (_, html) = page(&world, "/ui/operations?state=failed&project=p%22").await?;
    ensure!(
        html.contains("<option value=\"failed\" selected>") && html.contains("value=\"p&quot;\""),
        "{html}"
    );
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_leads_to_its_history_and_to_what_it_waits_for() -> Result<()> {
    let (world, _conductor) = stage::ordinary().await?;
    let (_, html) = page(&world, "/ui").await?;
    let (retrying, queued) = (operation_id(62), operation_id(66));
    ensure!(
        html.contains(&format!("href=\"/ui/operations/{retrying}\"")),
        "{html}"
    );
    let (status, html) = page(&world, &format!("/ui/operations/{retrying}")).await?;
    ensure!(status == 200, "{status}");
    for shown in [
        "cluster_resize of ml-training",
        "Neutron does not answer",
        "0af7651916cd43dd8448eb211c80319c",
        "aaaabbbbccccddddeeeeffff00000062",
        "choose_driver",
        "ctl1:4711",
        "operations retry",
        "35 min left",
    ] {
        ensure!(html.contains(shown), "{shown} is not in {html}");
    }
    ensure!(!html.contains("hunter2"), "{html}");
    let (_, html) = page(&world, &format!("/ui/operations/{queued}")).await?;
    let ahead = format!("Waits for <a href=\"/ui/operations/{retrying}\">cluster_resize</a>");
    ensure!(html.contains(&ahead), "{html}");
    for unknown in ["nothing", &operation_id(99), "%00"] {
        let (status, html) = page(&world, &format!("/ui/operations/{unknown}")).await?;
        ensure!(
            status == 404 && html.contains("The journal has no operation"),
            "{status} {html}"
        );
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_says_what_is_stuck_and_what_the_servers_say() -> Result<()> {
    let (world, _conductor) = stage::ordinary().await?;
    let (status, html) = page(&world, "/ui").await?;
    ensure!(status == 200, "{status} {html}");
    for shown in [
        "0 requests wait, 1 conductor takes them",
        "mysql://magnum@db.example/magnum",
        "rabbit://magnum:***@mq1.example,<wbr>",
        "magnum of project service",
        "2 messages were set aside",
        "is 14 min over its time limit",
        "has failed 4 times and is tried again in",
        "Neutron does not answer",
        "down: ctl3",
        "metal on ctl1 does not load",
        "5 min left",
        "Quota exceeded for cores",
        "is being deleted",
    ] {
        ensure!(html.contains(shown), "{shown} is not in {html}");
    }
    ensure!(!html.contains("hunter2"), "{html}");
    // It waits for its turn, and not for longer than normal.
    let attention = html
        .split("id=\"attention\"")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next());
    ensure!(
        !attention.context("a section")?.contains("nodegroup_create"),
        "{html}"
    );
    world.stop().await;

    // A Keystone that nobody answers for.
    let away = World::start(|settings| {
        settings.api.auth_strategy = AuthStrategy::Keystone;
        let section = &mut settings.keystone_authtoken;
        section.auth_url = Some("http://127.0.0.1:1/v3".to_owned());
        section.username = Some("magnum".to_owned());
        section.password = Some(Secret::new("hunter2"));
        section.project_name = Some("service".to_owned());
    })
    .await?;
    let (_, html) = page(&away, "/ui").await?;
    ensure!(
        html.contains("<strong>Keystone</strong> <span class=\"state bad\">down</span>")
            && !html.contains("hunter2"),
        "{html}"
    );
    ensure!(html.contains("it has no queue of requests"), "{html}");
    away.stop().await;
    Ok(())
}

#[test]
fn the_form_offers_every_kind_and_state_that_conductors_know() {
    let kinds: Vec<&str> = OperationKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .chain([hold::KIND])
        .collect();
    assert_eq!(operations::KINDS, kinds);
    let states: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    assert_eq!(operations::STATES, states);
    let open: Vec<&str> = State::OPEN.iter().map(|state| state.as_str()).collect();
    assert_eq!(operations::OPEN_STATES, open);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keystone_that_goes_away_is_seen_although_a_token_is_held() -> Result<()> {
    let cloud = RecordedCloud::start().await?;
    let mut told = Settings::default();
    cloud.configure(&mut told);
    let auth_url = told.keystone_authtoken.auth_url.context("an address")?;
    let address = auth_url.trim_start_matches("http://").split('/').next();
    let line = ChaosProxy::start(address.context("an address")?.parse()?).await?;
    let world = World::start(|settings| {
        cloud.configure(settings);
        settings.keystone_authtoken.auth_url = Some(format!("http://{}/identity/v3", line.address()));
    })
    .await?;
    let says = async |state: &str| {
        wait::until(&format!("Keystone to be shown {state}"), PATIENCE, async || {
            let (_, html) = page(&world, "/ui").await?;
            let shown = format!("<strong>Keystone</strong> <span class=\"state {state}");
            ensure!(html.contains(&shown), "{html}");
            anyhow::Ok(())
        })
        .await
    };
    says("good").await?;
    line.cut();
    says("bad").await?;
    line.restore();
    says("good").await?;
    world.stop().await;
    Ok(())
}

/// Statements that a page costs: whether the database answers is asked once for all of them.
const MOST_STATEMENTS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_operations_cost_few_statements_that_indexes_or_limits_bound() -> Result<()> {
    const COUNT: u32 = 10_000;
    let world = World::start(|settings| {
        settings.database.max_pool_size = 1;
        settings.database.max_overflow = 0;
    })
    .await?;
    let statements = Statements::of(&world.pool).await?;
    world.sql(&stage::many(COUNT)).await?;
    world.sql(&stage::service("ctl1", "datetime('now')")).await?;
    let history = format!("/ui/operations/{}", operation_id(COUNT));
    for path in [
        "/ui",
        "/ui/operations",
        "/ui/operations?project=p-7&kind=cluster_create",
        "/ui/operations?state=open",
        "/ui/operations?state=succeeded&project=p-7",
        "/ui/operations?search=c-7",
        "/ui/operations?search=req-1",
        &history,
    ] {
        // The first look asks whether the servers answer.
        page(&world, path).await?;
        statements.take();
        let begun = Instant::now();
        let (status, html) = page(&world, path).await?;
        let took = begun.elapsed();
        ensure!(status == 200, "{path}: {status}");
        let sent = statements.take();
        println!(
            "{path}: {} ms, {} statements, {} KB",
            took.as_millis(),
            sent.len(),
            html.len() / 1024
        );
        ensure!(
            !sent.is_empty() && sent.len() <= MOST_STATEMENTS,
            "{path}: {sent:#?}"
        );
        for statement in sent.iter().filter(|text| text.contains("conductor_operation")) {
            let plan = statements.plan(statement).await?;
            // A table that is walked is walked in the order of its rows, to the limit: nothing is sorted.
            let walks = plan
                .iter()
                .any(|line| line.starts_with("SCAN conductor_operation"));
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            ensure!(
                !walks || (statement.contains("LIMIT") && !sorts),
                "{path}: {statement}: {plan:#?}"
            );
        }
    }
    world.stop().await;
    Ok(())
}

/// The three colours of a picture's first pixel together: 0 is black, 765 white.
fn brightness(picture: &Path) -> Result<u32> {
    let png = std::fs::read(picture)?;
    let mut packed = Vec::new();
    let mut rest = png.get(8..).context("a signature")?;
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if &head[4..] == b"IDAT" {
            packed.extend_from_slice(after.get(..length).context("a whole chunk")?);
        }
        rest = after.get(length + 4..).unwrap_or_default();
    }
    // The first byte is the row's filter; whichever it is, there is nothing before the first pixel to differ from.
    let mut begins = [0; 4];
    flate2::read::ZlibDecoder::new(packed.as_slice()).read_exact(&mut begins)?;
    Ok(begins[1..].iter().map(|colour| u32::from(*colour)).sum())
}

/// What is looked at, and the document's picture of it.
const PICTURES: &[(&str, &str, Look)] = &[
    ("ui-light.png", "/ui", DESK),
    (
        "ui-dark.png",
        "/ui",
        Look {
            is_dark: true,
            ..DESK
        },
    ),
    (
        "ui-operations.png",
        "/ui/operations",
        Look { height: 700, ..DESK },
    ),
    (
        "ui-operation.png",
        "/ui/operations/7d3c92aa-5b1e-4c07-9f60-000000000062",
        Look {
            height: 900,
            is_dark: true,
            ..DESK
        },
    ),
    (
        "ui-phone.png",
        "/ui",
        Look {
            width: 390,
            height: 1300,
            is_dark: false,
        },
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_have_their_pictures_in_light_and_dark_and_on_a_phone() -> Result<()> {
    let (world, _conductor) = stage::ordinary().await?;
    let folder = run_dir()?.folder("pictures")?;
    let is_for_documents = std::env::var("MAGNUM_TESTS_PICTURES").is_ok_and(|which| which == "docs");
    for (name, path, look) in PICTURES {
        let picture = folder.join(name);
        look.picture(&world.admin(path), &picture).await?;
        if is_for_documents {
            std::fs::create_dir_all(DOCUMENTED)?;
            std::fs::copy(&picture, Path::new(DOCUMENTED).join(name))?;
        }
    }
    let (light, dark) = (
        brightness(&folder.join("ui-light.png"))?,
        brightness(&folder.join("ui-dark.png"))?,
    );
    ensure!(light > 700 && dark < 100, "{light}, {dark}");
    world.stop().await;
    Ok(())
}
