//! Random requests to Magnum's API and to ours (`tests/src/differential`).
//!
//! `MAGNUM_TESTS_DIFFERENTIAL_SECONDS`, `_SEED` and `_REQUESTS` make a longer search, as `tests/run --differential` does. Without
//! them it is the same 1,000 requests each time, and 200 that conductors answer.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::differential::{Behind, Limits, Stage, rules, run};
use magnum_tests::run_dir::base;

fn given<T: std::str::FromStr>(name: &str) -> Result<Option<T>> {
    let name = format!("MAGNUM_TESTS_DIFFERENTIAL_{name}");
    match std::env::var(&name) {
        Ok(text) => Ok(Some(text.parse().ok().with_context(|| format!("{name}={text}"))?)),
        Err(_) => Ok(None),
    }
}

#[test]
fn every_rule_is_of_a_row_of_the_document() -> Result<()> {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/differences.md");
    let document = std::fs::read_to_string(document)?;
    for rule in rules() {
        let row = format!("| {} |", rule.row);
        ensure!(
            document.lines().any(|line| line.starts_with(&row)),
            "docs/differences.md has no row {}",
            rule.row
        );
    }
    Ok(())
}

async fn differ_as_the_document_says(behind: Behind, enough: usize) -> Result<()> {
    let seconds = given("SECONDS")?;
    let enough = if seconds.is_some() { usize::MAX } else { enough };
    let limits = Limits {
        seed: given("SEED")?.unwrap_or(1),
        requests: given("REQUESTS")?.unwrap_or(enough),
        time: Duration::from_secs(seconds.unwrap_or(600)),
        unlisted: given("UNLISTED")?.unwrap_or(20),
    };
    let stage = Stage::start(behind).await?;
    let report = run(&stage, behind, limits).await?;
    let text = format!("{behind:?}, seed {}: {}", limits.seed, report.text());
    std::fs::write(base().join(format!("differential-{behind:?}.txt")), &text)?;
    println!("{text}");
    ensure!(report.requests >= 100, "only {} requests", report.requests);
    ensure!(report.unlisted.is_empty(), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_are_answered_as_magnum_answers_them() -> Result<()> {
    differ_as_the_document_says(Behind::Nobody, 1000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn random_questions_to_conductors_are_answered_as_magnums_answers_them() -> Result<()> {
    differ_as_the_document_says(Behind::Conductors, 200).await
}
