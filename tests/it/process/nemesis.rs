//! Faults of all kinds at once, by a seed: nothing is lost and nothing is wrong. Here is a sample, one seed for each database, so that
//! it is no matter of chance whether the tests pass; `tests/run --nemesis` searches with seeds of its own.

use std::env;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::nemesis::run::{Settings, run};
use magnum_tests::run_dir;

/// Long enough that many kinds of faults come.
const SAMPLE: Duration = Duration::from_secs(30);

/// A setting of `tests/run --nemesis`.
fn setting(name: &str) -> Option<String> {
    env::var(format!("MAGNUM_TESTS_NEMESIS_{name}"))
        .ok()
        .filter(|text| !text.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_goes_wrong_on_sqlite() -> Result<()> {
    nothing_is_lost_on(Backend::Sqlite, 7_638_548_841_786_929_035).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_goes_wrong_on_mariadb() -> Result<()> {
    nothing_is_lost_on(Backend::Mariadb, 11).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_goes_wrong_on_postgres() -> Result<()> {
    nothing_is_lost_on(Backend::Postgres, 12).await
}

/// With servers of its own.
async fn nothing_is_lost_on(backend: Backend, sample_seed: u64) -> Result<()> {
    if let Some(chosen) = setting("ON") {
        let is_known = Backend::ALL.iter().any(|one| one.name() == chosen);
        ensure!(is_known, "{chosen:?} is no database: sqlite, mysql or postgres");
        if chosen != backend.name() {
            eprintln!("not on {backend:?}: MAGNUM_TESTS_NEMESIS_ON={chosen}");
            return Ok(());
        }
    }
    let seconds = setting("SECONDS");
    let seed = match setting("SEED") {
        Some(seed) => seed.parse().with_context(|| seed.clone())?,
        None if seconds.is_none() => sample_seed,
        None => rand::random(),
    };
    let span = match seconds {
        Some(seconds) => Duration::from_secs_f64(seconds.parse().with_context(|| seconds.clone())?),
        None => SAMPLE,
    };
    eprintln!("nemesis on {backend:?}, seed {seed}, {} s", span.as_secs());
    let report = Box::pin(run(Settings { backend, seed, span })).await?;
    eprintln!("{report}");
    let file = run_dir::base().join(format!("nemesis-{}.txt", backend.name()));
    std::fs::write(&file, report.to_string())?;
    ensure!(report.is_good(), "the run of seed {seed} was not good; see above");
    Ok(())
}
