//! A bounded number of mutated recordings through each fuzz target, and inputs that are made to grow. The mutations
//! come from a seeded generator, so a failure comes again; `cargo fuzz` (see docs/testing.md) looks further.
//!
//! Memory is counted: what an input has the target hold at once is bounded by the size of the input.

use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use bzip2::write::BzEncoder;
use flate2::write::ZlibEncoder;
use magnum_tests::bench::usage::cpu_of_thread;
use magnum_tests::fuzz::{LIMIT, TARGETS};
use magnum_tests::fuzz_seeds::seeds;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Mutations of each target.
const ROUNDS: usize = 4_000;

/// Most of a processor's time that one input may take: what grows without bound grows in time, too.
const ONE_INPUT: Duration = Duration::from_secs(20);

/// Most bytes of memory that one byte of input may hold at once. A short number or an empty list becomes a value of
/// 72 bytes in a vector that has doubled; an empty object in an object, a table of its own.
const PER_BYTE: usize = 256;

/// What every input may hold: the options and their texts; a decoder of bzip2.
const FIXED: usize = 8 * 1024 * 1024;

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

/// Gives one input to a target: it must neither panic, nor take long, nor hold memory out of proportion.
fn try_one(name: &str, what: &str, input: &[u8]) {
    let function = target(name);
    let text = || String::from_utf8_lossy(&input[..input.len().min(10_000)]).into_owned();
    let started = cpu_of_thread().unwrap();
    let mut outcome = Ok(());
    let counted = allocation_counter::measure(|| {
        outcome = catch_unwind(AssertUnwindSafe(|| function(input)));
    });
    assert!(outcome.is_ok(), "{name}, {what} panics: {:?}", text());
    assert!(
        cpu_of_thread().unwrap() - started < ONE_INPUT,
        "{name}, {what} takes too long: {:?}",
        text()
    );
    // What is compressed may become this long before it is refused.
    let read = if name == "message" && input.first().is_some_and(|label| label & 0xc != 0) {
        LIMIT
    } else {
        input.len()
    };
    let most = u64::try_from(FIXED + PER_BYTE * read).unwrap();
    let held = counted.bytes_max;
    assert!(
        held <= most,
        "{name}, {what} holds {held} bytes, more than {most}: {:?}",
        text()
    );
}

fn run(name: &str) {
    let seeds = seeds(name).unwrap();
    assert!(seeds.len() > 5, "{name}: {} seeds", seeds.len());
    let mut random = StdRng::seed_from_u64(1);
    let inputs = seeds.iter().cloned().chain((0..ROUNDS).map(|_| {
        let mut input = seeds.choose(&mut random).unwrap().clone();
        for _ in 0..random.random_range(1..8_u8) {
            mutate(&mut input, &seeds, &mut random);
        }
        input
    }));
    for (number, input) in inputs.enumerate() {
        try_one(name, &format!("input {number}"), &input);
    }
}

#[test]
fn mutated_messages_do_no_harm() {
    run("message");
}

#[test]
fn mutated_objects_do_no_harm() {
    run("object");
}

#[test]
fn mutated_certificate_requests_do_no_harm() {
    run("csr");
}

#[test]
fn mutated_configuration_files_do_no_harm() {
    run("config");
}

#[test]
fn inputs_made_to_grow_stay_within_limits() {
    let zeros = vec![b'0'; 64 * 1024 * 1024];
    let mut gzip = ZlibEncoder::new(vec![1 << 2 | 1], flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    try_one("message", "a gzip bomb", &gzip.finish().unwrap());
    let mut bzip2 = BzEncoder::new(vec![2 << 2 | 1], bzip2::Compression::best());
    bzip2.write_all(&zeros).unwrap();
    try_one("message", "a bzip2 bomb", &bzip2.finish().unwrap());

    // A length of four billion with nothing behind it, for each kind that has one.
    for kind in [0xc6, 0xc9, 0xdb, 0xdd, 0xdf] {
        for prefix in [&[2_u8][..], &[2, 0x81, 0xa6, b'm', b'e', b't', b'h', b'o', b'd']] {
            let input = [prefix, &[kind, 0xff, 0xff, 0xff, 0xff], &[0xc0; 64]].concat();
            try_one("message", &format!("a length of kind {kind:#x}"), &input);
        }
    }

    let most = LIMIT - 64;
    for (what, label, piece) in [
        ("nested lists", 1, &b"["[..]),
        ("nested objects", 1, b"{\"a\":"),
        ("nested lists in MessagePack", 2, b"\x91"),
        ("nested maps in MessagePack", 2, b"\x81\xa1a"),
    ] {
        let nested = piece.repeat(most / piece.len());
        try_one("message", what, &[&[label], &nested[..]].concat());
        try_one("object", what, &nested);
    }
    // As many values as fit, each as small as can be.
    for piece in ["0,", "[],", "{},", "{\"\":0},", "\"\","] {
        let list = piece.repeat(most / piece.len());
        let list = format!("[{}]", list.trim_end_matches(','));
        try_one("message", piece, &[&[1], list.as_bytes()].concat());
        let arguments = format!("{{\"method\":\"m\",\"args\":{{\"a\":{list}}}}}");
        try_one("message", piece, &[&[1], arguments.as_bytes()].concat());
        try_one("object", piece, list.as_bytes());
    }

    try_one("csr", "a long text", &vec![b'-'; 4 * LIMIT]);
    let many = b"-----BEGIN CERTIFICATE REQUEST-----\n".repeat(20_000);
    try_one("csr", "many beginnings", &[&[0], &many[..]].concat());
    // 0x30 0x80 …: lists in lists, and a length of four billion.
    try_one(
        "csr",
        "nested parts",
        &[&[1], &[0x30, 0x82, 0xff, 0xff].repeat(20_000)[..]].concat(),
    );
    try_one(
        "csr",
        "a long length",
        &[&[2, 0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0; 99][..]].concat(),
    );
    let extension: &[u8] = &[0x30, 9, 6, 3, 0x55, 0x1d, 17, 4, 2, 0x30, 0];
    let extensions = extension.repeat(5_000);
    let length = u16::try_from(extensions.len()).unwrap().to_be_bytes();
    try_one(
        "csr",
        "many extensions",
        &[&[2, 0x30, 0x82][..], &length, &extensions].concat(),
    );

    try_one("config", "one long line", &vec![b'a'; LIMIT]);
    let sample = String::from_utf8(seeds("config").unwrap().swap_remove(0)).unwrap();
    // Each option names the one before twice.
    let (mut doubled, mut section, mut before) = (String::new(), "", String::new());
    for line in sample.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            doubled += &format!("{line}\n");
        } else if let Some((name, _)) = line.strip_prefix('#').and_then(|line| line.split_once(" ="))
            && !name.contains(' ')
        {
            let value = if before.is_empty() {
                "xxxxxxxxxxxxxxxx".to_owned()
            } else {
                before.repeat(2)
            };
            doubled += &format!("{name} = {value}\n");
            before = format!("${{{section}.{name}}}");
        }
    }
    assert!(doubled.lines().count() > 100, "{doubled}");
    try_one("config", "values that double", doubled.as_bytes());
    try_one(
        "config",
        "a value that names itself",
        b"[DEFAULT]\nhost = $host$host\n",
    );
}

fn target(name: &str) -> fn(&[u8]) {
    let found = TARGETS.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no target {name}")).1
}

#[test]
fn every_target_is_run_here_and_by_cargo_fuzz() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(tests.join("fuzz/Cargo.toml")).unwrap();
    let here = fs::read_to_string(tests.join("it/wire/fuzzing.rs")).unwrap();
    let files = fs::read_dir(tests.join("fuzz/fuzz_targets")).unwrap().count();
    assert_eq!(files, TARGETS.len());
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(here.contains(&format!("run(\"{name}\")")), "{name}");
        assert!(!seeds(name).unwrap().is_empty());
    }
}
