//! Faults of all kinds at once, by a seed: nothing is lost and nothing is wrong. Here is a sample, one seed on SQLite, so that it is
//! no matter of chance whether the tests pass; `tests/run --nemesis` searches, on every database and with seeds of its own.

use std::env;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::nemesis::run::{Settings, run};
use magnum_tests::run_dir;

/// Long enough that most kinds of faults come.
const SAMPLE: Duration = Duration::from_secs(25);

/// The seed of the sample: half of the kinds that SQLite has come.
const SAMPLE_SEED: u64 = 7_638_548_841_786_929_035;

/// A setting of `tests/run --nemesis`.
fn setting(name: &str) -> Option<String> {
    env::var(format!("MAGNUM_TESTS_NEMESIS_{name}"))
        .ok()
        .filter(|text| !text.is_empty())
}

/// One database after the other: each has servers of its own.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_goes_wrong() -> Result<()> {
    let seconds = setting("SECONDS");
    let is_sample = seconds.is_none();
    let seed = match setting("SEED") {
        Some(seed) => seed.parse().with_context(|| seed.clone())?,
        None if is_sample => SAMPLE_SEED,
        None => rand::random(),
    };
    let span = match seconds {
        Some(seconds) => Duration::from_secs_f64(seconds.parse().with_context(|| seconds.clone())?),
        None => SAMPLE,
    };
    let chosen = setting("ON").or_else(|| is_sample.then(|| Backend::Sqlite.name().to_owned()));
    let (mut runs, mut bad) = (0, 0);
    for backend in Backend::ALL {
        if chosen.as_ref().is_some_and(|name| name != backend.name()) {
            continue;
        }
        eprintln!("nemesis on {backend:?}, seed {seed}, {} s", span.as_secs());
        let report = Box::pin(run(Settings { backend, seed, span })).await?;
        eprintln!("{report}");
        let file = run_dir::base().join(format!("nemesis-{}.txt", backend.name()));
        std::fs::write(&file, report.to_string())?;
        runs += 1;
        if !report.is_good() {
            bad += 1;
        }
    }
    ensure!(runs > 0, "{chosen:?} is no database: sqlite, mysql or postgres");
    ensure!(bad == 0, "{bad} runs of seed {seed} were not good; see above");
    Ok(())
}
