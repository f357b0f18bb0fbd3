//! `simulate`: many schedules, one again, and a smaller one that fails alike.
//!
//! Schedules run in processes with the shim of [`randomness`], a block of consecutive seeds in each: a seed's place in
//! its block is part of what it means, so a block begins at a multiple of [`BLOCK`], and what is not wanted of it passes unused.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Write as _, stdout};
use std::panic;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::randomness;
use super::schedule::{Wanted, Workshop};

/// Schedules of one process.
pub const BLOCK: u64 = 500;

/// Failures after which no further block is begun.
const ENOUGH: usize = 5;

/// What `simulate` is asked for.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// How many schedules
    #[arg(long, default_value_t = 1)]
    pub schedules: u64,
    /// The seed of the first one; random, if none is given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Processes at once
    #[arg(long, default_value_t = 1)]
    pub jobs: usize,
    /// Parts of the plan that are left out, by number
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<usize>,
    /// Tell all that happens, in words
    #[arg(long)]
    pub show: bool,
    /// Tell the hash of each schedule
    #[arg(long)]
    pub hashes: bool,
    /// Do not look for a smaller schedule that fails as well
    #[arg(long)]
    pub whole: bool,
}

/// A line from a process to the one that has started it.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    Hash(u64, u64),
    Failed { seed: u64, verdicts: Vec<String> },
    Words(String),
    Done(Sum),
}

/// What many schedules come to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// How many.
    pub schedules: u64,
    /// Their operations.
    pub operations: usize,
    /// Calls of drivers.
    pub driver_calls: usize,
    /// Virtual time, in seconds.
    pub seconds: u64,
}

/// A schedule that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What was not as promised.
    pub verdicts: Vec<String>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// All that ran.
    pub sum: Sum,
    /// What failed.
    pub failures: Vec<Failure>,
    /// Seeds and hashes, where they were wanted.
    pub hashes: Vec<(u64, u64)>,
}

/// The program: `program` is its own file.
pub fn main(options: &Options, program: &Path) -> Result<ExitCode> {
    if randomness::is_held() {
        return block(options).map(|()| ExitCode::SUCCESS);
    }
    let seed = options
        .seed
        .unwrap_or_else(|| u64::from(rand::random::<u32>()) * BLOCK);
    let options = Options {
        seed: Some(seed),
        ..options.clone()
    };
    let began = Instant::now();
    let mut out = stdout();
    writeln!(out, "simulate: {} schedules from seed {seed}", options.schedules)?;
    let findings = run(&options, program)?;
    let took = began.elapsed();
    let Sum {
        schedules,
        operations,
        driver_calls,
        seconds,
    } = findings.sum;
    let minute = per_minute(schedules, took);
    writeln!(
        out,
        "{schedules} schedules ({operations} operations, {driver_calls} driver calls, {seconds} s of virtual time) in {:.1} s: {minute} \
         a minute; {} failed",
        took.as_secs_f64(),
        findings.failures.len()
    )?;
    for (seed, hash) in &findings.hashes {
        writeln!(out, "{seed} {hash:016x}")?;
    }
    for failure in &findings.failures {
        writeln!(out, "\nseed {}:", failure.seed)?;
        for verdict in &failure.verdicts {
            writeln!(out, "  {verdict}")?;
        }
    }
    if let Some(failure) = findings.failures.first()
        && !options.whole
    {
        let without = smaller(failure.seed, &options, program)?;
        let numbers: Vec<String> = without.iter().map(usize::to_string).collect();
        writeln!(
            out,
            "\nthe smallest that fails: simulate --seed {} --without {} --show --whole\n{:#?}",
            failure.seed,
            numbers.join(","),
            Plan::of(failure.seed).without(&without)
        )?;
    }
    let is_fine = findings.failures.is_empty();
    Ok(if is_fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs schedules in processes of `program`, which is `simulate`.
pub fn run(options: &Options, program: &Path) -> Result<Findings> {
    let folder = tempfile::tempdir()?;
    let shim = randomness::compile(folder.path())?;
    let first = options.seed.context("a seed")?;
    let mut blocks: VecDeque<(u64, u64)> = blocks(first, options.schedules);
    let mut running: VecDeque<Child> = VecDeque::new();
    let mut findings = Findings::default();
    loop {
        while running.len() < options.jobs.max(1)
            && findings.failures.len() < ENOUGH
            && let Some((seed, count)) = blocks.pop_front()
        {
            running.push_back(start(options, program, &shim, seed, count)?);
        }
        let Some(child) = running.pop_front() else {
            return Ok(findings);
        };
        findings.take(child)?;
    }
}

impl Findings {
    /// Reads what a process says until its end.
    fn take(&mut self, mut child: Child) -> Result<()> {
        let said = child.stdout.take().context("its output")?;
        let mut is_done = false;
        for line in BufReader::new(said).lines() {
            match serde_json::from_str(&line?)? {
                Said::Hash(seed, hash) => self.hashes.push((seed, hash)),
                Said::Failed { seed, verdicts } => self.failures.push(Failure { seed, verdicts }),
                Said::Words(words) => writeln!(stdout(), "{words}")?,
                Said::Done(sum) => {
                    is_done = true;
                    self.sum.add(&sum);
                }
            }
        }
        let status = child.wait()?;
        ensure!(
            status.success() && is_done,
            "a process of the simulation ended with {status}"
        );
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.operations += other.operations;
        self.driver_calls += other.driver_calls;
        self.seconds += other.seconds;
    }
}

/// The parts of blocks that are wanted.
fn blocks(first: u64, count: u64) -> VecDeque<(u64, u64)> {
    let (mut seed, end) = (first, first + count);
    let mut blocks = VecDeque::new();
    while seed < end {
        let next = end.min((seed / BLOCK + 1) * BLOCK);
        blocks.push_back((seed, next - seed));
        seed = next;
    }
    blocks
}

fn start(options: &Options, program: &Path, shim: &Path, seed: u64, count: u64) -> Result<Child> {
    let mut child = Command::new(program);
    randomness::hold(&mut child, shim);
    child.args(["--seed", &seed.to_string(), "--schedules", &count.to_string()]);
    for number in &options.without {
        child.args(["--without", &number.to_string()]);
    }
    for (flag, is_wanted) in [("--show", options.show), ("--hashes", options.hashes)] {
        if is_wanted {
            child.arg(flag);
        }
    }
    child.stdout(Stdio::piped()).spawn().context("start simulate")
}

/// Part of a block, in this process.
fn block(options: &Options) -> Result<()> {
    // Drivers panic where the plan says so.
    panic::set_hook(Box::new(|_| {}));
    let first = options.seed.context("a seed")?;
    let folder = tempfile::tempdir()?;
    let mut workshop = Workshop::new(folder.path())?;
    for _ in 0..first % BLOCK {
        workshop.skip()?;
    }
    let mut out = stdout().lock();
    let mut say = |said: &Said| -> Result<()> {
        writeln!(out, "{}", serde_json::to_string(said)?)?;
        Ok(())
    };
    let mut sum = Sum::default();
    for seed in first..first + options.schedules {
        let wanted = Wanted {
            seed,
            without: options.without.iter().copied().collect(),
            in_words: options.show,
        };
        let outcome = workshop.run(&wanted)?;
        for line in outcome.lines {
            say(&Said::Words(line))?;
        }
        if options.hashes {
            say(&Said::Hash(seed, outcome.hash))?;
        }
        if !outcome.verdicts.is_empty() {
            let verdicts = outcome.verdicts;
            say(&Said::Failed { seed, verdicts })?;
        }
        sum.add(&Sum {
            schedules: 1,
            operations: outcome.operations,
            driver_calls: outcome.driver_calls,
            seconds: outcome.took.as_secs(),
        });
    }
    say(&Said::Done(sum))
}

/// What can be left out of a schedule so that it still fails.
fn smaller(seed: u64, options: &Options, program: &Path) -> Result<BTreeSet<usize>> {
    let mut without: BTreeSet<usize> = options.without.iter().copied().collect();
    for number in 0..Plan::of(seed).parts() {
        let mut fewer = without.clone();
        fewer.insert(number);
        let one = Options {
            schedules: 1,
            seed: Some(seed),
            without: fewer.iter().copied().collect(),
            show: false,
            hashes: false,
            ..options.clone()
        };
        // A schedule that breaks the simulation itself is no smaller one.
        if run(&one, program).is_ok_and(|findings| !findings.failures.is_empty()) {
            without = fewer;
        }
    }
    Ok(without)
}

fn per_minute(schedules: u64, took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    schedules * 60_000 / millis
}
