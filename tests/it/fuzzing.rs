//! A bounded number of mutated recordings through each fuzz target, on any toolchain. The mutations come from a
//! seeded generator, so a failure comes again; `cargo fuzz` (see docs/testing.md) looks further.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use magnum_tests::fuzz::TARGETS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::wire::{body, load_all};

/// Mutations of each target.
const ROUNDS: usize = 4_000;

/// Longest that one input may take: what grows without bound grows in time, too.
const ONE_INPUT: Duration = Duration::from_secs(20);

/// Pieces that mean something to some parser.
const WORDS: &[&[u8]] = &[
    b"\"oslo.version\": \"2.0\"",
    b"oslo.message",
    b"_context_",
    b"_timeout",
    b"magnum_object.data",
    b"null",
    b"1e999",
    b"-9223372036854775809",
    b"\\ud800",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\xff\xfe",
    b"\x00",
    b"$",
    b"${",
    b"%(",
    b"\n[",
    b"\n ",
    b"= ",
    b"9999-99-99T99:99:99Z",
    b"\xdd\xff\xff\xff\xff",
    b"\xc9",
    b"\xdb\xff\xff\xff\xff",
    b"1.999999999999",
];

/// What each target begins with.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match target {
        "message" => {
            let frames = load_all("rpc", "re").into_iter();
            frames
                .map(|(_, frame)| {
                    let kind = frame["properties"]["content_type"].as_str().unwrap_or_default();
                    let label = match frame["headers"]["compression"].as_str() {
                        Some("application/x-gzip") => 1 << 2,
                        Some(_) => 2 << 2,
                        None => 0,
                    };
                    let kind = if kind.contains("msgpack") { 2 } else { 1 };
                    let mut seed = vec![label | kind];
                    seed.extend_from_slice(&body(&frame));
                    seed
                })
                .collect()
        }
        "object" => {
            let recorded = fs::read_to_string(root.join("fixtures/objects/recorded.jsonl")).unwrap();
            let objects = recorded.lines().map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["object"].to_string().into_bytes()
            });
            objects.collect()
        }
        "config" => {
            let sample = fs::read_to_string(root.join("../deploy/config/magnum.conf.sample")).unwrap();
            // Every option in effect, by itself and all together.
            let effective = sample.replace("\n#", "\n");
            let mut all = vec![sample.into_bytes(), effective.clone().into_bytes()];
            all.extend(effective.split("\n\n").map(|part| part.as_bytes().to_vec()));
            all
        }
        other => panic!("{other} has no seeds: add them here"),
    }
}

/// One change at a random place.
fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], random: &mut StdRng) {
    let at = random.random_range(0..=input.len());
    match random.random_range(0..7_u8) {
        0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8_u8),
        1 if at < input.len() => input[at] = random.random(),
        2 => input.truncate(at),
        3 => {
            let to = (at + random.random_range(0..64_usize)).min(input.len());
            input.drain(at..to);
        }
        4 => {
            let to = (at + random.random_range(0..256_usize)).min(input.len());
            let piece = input[at..to].to_vec();
            input.splice(at..at, piece);
        }
        5 => {
            let other = others.choose(random).unwrap();
            let from = random.random_range(0..=other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => {
            let word = WORDS.choose(random).unwrap();
            input.splice(at..at, word.iter().copied());
        }
    }
}

fn run(target: &str, function: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(seeds.len() > 5, "{target}: {} seeds", seeds.len());
    let mut random = StdRng::seed_from_u64(1);
    let inputs = seeds.iter().cloned().chain((0..ROUNDS).map(|_| {
        let mut input = seeds.choose(&mut random).unwrap().clone();
        for _ in 0..random.random_range(1..8_u8) {
            mutate(&mut input, &seeds, &mut random);
        }
        input
    }));
    for (number, input) in inputs.enumerate() {
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| function(&input)));
        let text = || String::from_utf8_lossy(&input).into_owned();
        assert!(outcome.is_ok(), "{target}, input {number} panics: {:?}", text());
        assert!(
            started.elapsed() < ONE_INPUT,
            "{target}, input {number} takes too long: {:?}",
            text()
        );
    }
}

#[test]
fn mutated_messages_panic_nobody() {
    run("message", target("message"));
}

#[test]
fn mutated_objects_panic_nobody() {
    run("object", target("object"));
}

#[test]
fn mutated_configuration_files_panic_nobody() {
    run("config", target("config"));
}

fn target(name: &str) -> fn(&[u8]) {
    let found = TARGETS.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no target {name}")).1
}

#[test]
fn every_target_is_run_here_and_by_cargo_fuzz() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let files = fs::read_dir(root.join("fuzz_targets")).unwrap().count();
    assert_eq!(files, TARGETS.len());
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(!seeds(name).is_empty());
    }
}
