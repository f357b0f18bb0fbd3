//! Conductors in virtual time, on schedules that a seed decides: whatever dies, fails, is late or comes twice, what was
//! promised is kept. `docs/testing.md` says how to run more of them, and one again.

use std::path::Path;

use magnum_tests::simulation::command::{self, BLOCK, Options};

/// The program, in which nothing but a simulation runs: see `magnum_tests::simulation::randomness`.
const PROGRAM: &str = env!("CARGO_BIN_EXE_simulate");

/// The schedules of every run, if no other ones are wanted.
const SEED: u64 = 201 * BLOCK;

/// What a minute of one processor is enough for, unoptimised.
const SCHEDULES: u64 = 500;

fn options(seed: u64, schedules: u64) -> Options {
    Options {
        schedules,
        seed: Some(seed),
        jobs: 2,
        without: Vec::new(),
        show: false,
        hashes: true,
        whole: true,
    }
}

#[test]
fn on_random_schedules_everything_ends_as_promised() {
    let seed = match std::env::var("MAGNUM_TESTS_SIMULATION_SEED") {
        Ok(seed) => seed.parse().expect("a number in MAGNUM_TESTS_SIMULATION_SEED"),
        Err(_) => SEED,
    };
    println!("MAGNUM_TESTS_SIMULATION_SEED={seed}");
    let findings = command::run(&options(seed, SCHEDULES), Path::new(PROGRAM)).unwrap();
    let failed: Vec<String> = findings
        .failures
        .iter()
        .map(|failure| format!("seed {}:\n  {}", failure.seed, failure.verdicts.join("\n  ")))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(findings.sum.schedules, SCHEDULES);
    assert!(findings.sum.driver_calls > 0, "{:?}", findings.sum);
}

#[test]
fn a_seed_is_replayed_exactly() {
    let seed = 7 * BLOCK + 3;
    let run = |seed, schedules| {
        command::run(&options(seed, schedules), Path::new(PROGRAM))
            .unwrap()
            .hashes
    };
    let first = run(seed, 40);
    assert_eq!(first, run(seed, 40), "once more");
    assert_eq!(first[21..22], run(seed + 21, 1), "alone");
    let mut different: Vec<u64> = first.iter().map(|(_, hash)| *hash).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), first.len(), "each seed is a schedule of its own");
}
