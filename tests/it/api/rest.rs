//! The REST API answers as a recorded Magnum 23.0.0 does, or differs on purpose.
//!
//! Every recorded request is sent to the API in this process (SQLite, in-process messaging, a stand-in for the recorded
//! cloud), and status, headers and body are compared. Where the recording shows what became of a request, a
//! conductor with drivers like the recorded ones carries it out. A difference fails the test unless
//! [`differences`] names the case together with its row in `docs/differences.md`; a named difference that no
//! longer shows fails it too, so that the table cannot rot.
//! Nothing is skipped.

mod asking;
mod bad_input;
mod case;
mod changing;
mod compare;
mod differences;
mod drivers;
mod paging;
mod promised;
mod records;
pub(crate) mod world;

use std::collections::BTreeMap;

use case::Case;
use differences::Verdict;
use world::World;

/// Replays one file and reports every case that is neither equal nor named.
async fn replay(file: &str) {
    let cases = case::load(file);
    let mut scenarios: Vec<(String, Vec<Case>)> = Vec::new();
    for case in cases {
        let scenario = case.scenario();
        match scenarios.last_mut() {
            Some((name, cases)) if *name == scenario => cases.push(case),
            _ => scenarios.push((scenario, vec![case])),
        }
    }
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, cases) in scenarios {
        // Requests whose effect is recorded meet a conductor, and those that it answers; of the others, only the API's
        // answer is.
        let world = match cases.iter().any(Case::needs_a_conductor) {
            true => World::with_conductor(&cases[0].profile).await,
            false => World::start(&cases[0].profile).await,
        };
        if cases.iter().any(Case::signs) {
            world.make_keys().await;
        }
        let mut saved = BTreeMap::new();
        for case in &cases {
            let answer = world.send(case, &mut saved).await;
            let findings = compare::compare(case, &answer, &saved);
            let verdict = differences::judge(case, &answer, &findings);
            *counts.entry(verdict.word()).or_default() += 1;
            if let Verdict::Wrong(why) = verdict {
                wrong.push(format!("{}\n    {}", case.case, why.join("\n    ")));
            }
        }
        world.stop().await;
    }
    println!("{file}: {counts:?}");
    assert!(
        wrong.is_empty(),
        "{} of {file} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

macro_rules! files {
    ($($name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                replay(stringify!($name)).await;
            }
        )*

        const FILES: &[&str] = &[$(stringify!($name),)*];
    };
}

files! {
    versions,
    clustertemplates,
    clustertemplates_patch,
    clusters,
    clusters_patch,
    mservices,
    driver_resolution,
    nodegroups,
    actions,
    certificates,
    credentials,
    quotas,
    stats,
    federations,
}

#[test]
fn every_recorded_file_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/rest");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if let Some(file) = name.strip_suffix(".jsonl") {
            assert!(FILES.contains(&file), "{name} is not replayed");
        }
    }
}

#[test]
fn every_named_case_exists_and_every_row_stands_in_the_table() {
    let cases: Vec<String> = FILES
        .iter()
        .flat_map(|file| case::load(file))
        .map(|case| case.case)
        .collect();
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/differences.md")).unwrap();
    for (name, row) in differences::named() {
        assert!(cases.iter().any(|case| case == name), "no case {name}");
        let begins = format!("\n| {row}");
        assert!(
            table.contains(&begins),
            "docs/differences.md has no row \"{row}\""
        );
    }
}
