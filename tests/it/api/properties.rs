//! schemathesis, which makes requests from the API's own OpenAPI document (allowed ones, and ones that the document does
//! not allow), against a running `magnum-api` with a conductor behind it.
//!
//! What must hold for every request: no failure of the service, no hang, an answer as the document describes it (status,
//! type, shape), and nothing of the service's inside in an error's text (`tests/peers/schemathesis_hooks.py`). Bounded
//! in time; what it tries differs from run to run, and a failure prints the request and the seed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::process::Launch;
use magnum_tests::rest::IMAGE;
use magnum_tests::run_dir::base;
use magnum_tests::{Backend, wait};
use serde_json::json;

/// How long it tries.
const BUDGET: Duration = Duration::from_secs(40);
const SOON: Duration = Duration::from_secs(60);

async fn explore(version: &str) -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = json!({"name": "known", "coe": "kubernetes", "image_id": IMAGE});
    let template = api.rest.post("/clustertemplates", &template).await?.expect(201)?;
    let cluster = json!({"name": "known", "cluster_template_id": template["uuid"], "keypair": "key"});
    let cluster = api.rest.post("/clusters", &cluster).await?.expect(202)?;
    let uuid = cluster["uuid"].as_str().context("a uuid")?.to_owned();
    wait::until("the cluster to be complete", SOON, async || {
        let seen = api.rest.get(&format!("/clusters/{uuid}")).await?;
        ensure!(seen.body["status"] == "CREATE_COMPLETE", "{}", seen.body);
        Ok(())
    })
    .await?;
    let known = json!({
        "clusters": [uuid, "known"], "templates": [template["uuid"], "known"],
        "groups": ["default-worker", "default-master"],
    });

    let document = api
        .rest
        .at_version(version)
        .get("/openapi.json")
        .await?
        .expect(200)?;
    let file = deployment.folder.join("openapi.json");
    std::fs::write(&file, document.to_string())?;
    let program = base().join("schemathesis/bin/st");
    ensure!(
        program.exists(),
        "{} is missing: tests/run makes it",
        program.display()
    );
    let url = api.rest.base().trim_end_matches("/v1").to_owned();
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let mut schemathesis = Command::new(program);
    // It keeps what it found where it runs.
    schemathesis.current_dir(&deployment.folder);
    let finished = Launch::command("schemathesis", schemathesis)
        .args(["run", "--url", &url, "--workers", "1", "--no-color"])
        .args(["--max-time", &BUDGET.as_secs().to_string(), "--phases", "coverage,fuzzing"])
        .args(["--max-response-time", "20", "--request-timeout", "30", "--continue-on-failure"])
        .args([
            "--checks",
            "no_error_of_the_service,nothing_internal_is_told,status_code_conformance,content_type_conformance,\
             response_schema_conformance",
        ])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        .args([&file])
        .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
        .env("PYTHONPATH", hooks)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MAGNUM_TEST_KNOWN", known.to_string())
        .env("MAGNUM_TEST_VERSION", version)
        .finish()
        .await?;
    let tail: Vec<&str> = finished.stdout.lines().rev().take(12).collect();
    println!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    ensure!(
        finished.status.success(),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
    let again = api.rest.get("/clusters").await?;
    ensure!(again.status.as_u16() == 200, "{again:?}");
    Ok(())
}

#[tokio::test]
async fn responses_to_valid_and_invalid_requests_conform_to_the_document() -> Result<()> {
    explore("latest").await
}
