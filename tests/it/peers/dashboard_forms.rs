//! What the forms of magnum-ui send (`tests/peers/dashboard_forms.py`), asked of Magnum's API and of ours, each with our
//! conductor behind it: the answers are the same.
//!
//! magnum-ui makes text of every value, numbers and truth values too, and empty text of none. What is text Magnum takes for the
//! number or the truth value that it spells, but not in a change of a cluster; what is empty it refuses, with few exceptions.
//! The functions are called by themselves, without Horizon: that the dashboard works is in `clients::horizon`.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::little_environment;
use magnum_tests::python_magnum::{PythonMagnum, Served};
use magnum_tests::run_dir::base;
use serde_json::{Value, json};

use super::life::{Api, deployment, leaves};

const PATIENCE: Duration = Duration::from_secs(90);

/// The chapters that the peer can tell, each with how many operations it leaves under way. None makes more than a few clusters,
/// since all of it is one answer.
const CHAPTERS: &[(&str, usize)] = &[
    ("template", 0),
    ("empty_numbers", 0),
    ("empty_resources", 0),
    ("empty_others", 0),
    ("cluster", 0),
    ("resize", 1),
    ("upgrade", 1),
    ("certificate", 1),
    ("rest", 0),
];

/// What may differ.
struct Difference {
    steps: &'static [&'static str],
    /// Where in the exchange: the end of a JSON pointer. Empty: everywhere.
    place: &'static str,
    /// The row of `docs/differences.md`, by its first column.
    row: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        steps: &[
            "create a template",
            "list templates",
            "show a template",
            "update a template",
            "update a number of a template",
            "update a template, and leave out what it has",
        ],
        place: "/driver",
        row: "`driver` of a cluster template",
    },
    Difference {
        steps: &[
            "a template with an empty public",
            "a template with an empty tls_disabled",
            "a cluster with an empty floating_ip_enabled",
            "a cluster with an empty master_lb_enabled",
            "a cluster with an empty merge_labels",
        ],
        place: "",
        row: "a boolean that is none (`\"maybe\"`)",
    },
    Difference {
        steps: &["update a template"],
        place: "/updated_at",
        row: "`updated_at` in the answer to a PATCH",
    },
    Difference {
        steps: &["a cluster with a label that is null"],
        place: "",
        row: "null for `labels`, or inside of a dictionary or a list",
    },
    Difference {
        steps: &["update a number of a template", "update a cluster"],
        place: "/body/errors/0/detail",
        row: "a value of the wrong type in a patch or for `dns_nameserver`, null for `image_id`",
    },
];

/// What was said on the way, exchange by exchange.
async fn told(api: Api) -> Result<Vec<Value>> {
    let deployment = deployment().await?;
    let _conductor = deployment.conductor("one").await?;
    let python = PythonMagnum::beside(&deployment).await?;
    let (base_url, _program) = match api {
        Api::Magnums(served) => {
            let api = python.api(served).await?;
            (api.rest.base().to_owned(), api.program)
        }
        Api::Ours => {
            let api = deployment.api().await?;
            (api.rest.base().to_owned(), api.program)
        }
    };
    let program = base().join("horizon/bin/python");
    ensure!(
        program.exists(),
        "{} is missing: tests/run makes it",
        program.display()
    );
    let mut command = Command::new(program);
    little_environment(&mut command)
        .arg("-B")
        .arg(base().with_file_name("peers/dashboard_forms.py"))
        .arg(base_url);
    let mut client = OsloPeer::start_command("dashboard-forms", command).await?;
    let mut all = Vec::new();
    for (chapter, operations) in CHAPTERS {
        let before = deployment.operations().await?.len();
        let exchanges = client.ask(json!({"do": chapter})).await?;
        let exchanges = exchanges.with_context(|| format!("{chapter}, {api:?}"))?;
        all.extend(exchanges.as_array().context("a list")?.clone());
        deployment.settled_with(before + operations, PATIENCE).await?;
    }
    Ok(all)
}

/// An exchange without its answer.
fn question(exchange: &Value) -> String {
    let text = |key: &str| exchange[key].as_str().unwrap_or_default();
    format!("{}: {} {}", text("step"), text("asked"), exchange["sent"])
}

/// The places where the answers differ, and the rows of [`DIFFERENCES`] that were seen.
fn differences(theirs: &[Value], ours: &[Value]) -> (Vec<String>, BTreeSet<&'static str>) {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (their, our) in theirs.iter().zip(ours) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        leaves(their, "", &mut left);
        leaves(our, "", &mut right);
        for (whose, one, other) in [("Magnum", &left, &right), ("ours", &right, &left)] {
            for (path, value) in one.iter().filter(|leaf| !other.contains(leaf)) {
                let known = DIFFERENCES.iter().find(|known| {
                    known.steps.iter().any(|step| their["step"] == *step) && path.ends_with(known.place)
                });
                match known {
                    Some(known) => drop(seen.insert(known.row)),
                    None => found.push(format!("{}: {path}: {whose} {value}", question(their))),
                }
            }
        }
    }
    (found, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_forms_of_magnum_ui_are_answered_as_magnum_answers_them() -> Result<()> {
    let (theirs, ours) = tokio::try_join!(told(Api::Magnums(Served::Wsgi)), told(Api::Ours))?;
    let (found, seen) = differences(&theirs, &ours);
    ensure!(found.is_empty(), "{}", found.join("\n"));
    let questions = |exchanges: &[Value]| exchanges.iter().map(question).collect::<Vec<_>>();
    ensure!(
        questions(&theirs) == questions(&ours),
        "{:#?}\n{:#?}",
        questions(&theirs),
        questions(&ours)
    );
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/differences.md");
    let document = std::fs::read_to_string(document)?;
    for known in DIFFERENCES {
        ensure!(
            seen.contains(known.row),
            "there is no such difference any more: {}",
            known.row
        );
        let row = format!("| {} |", known.row);
        ensure!(
            document.lines().any(|line| line.starts_with(&row)),
            "docs/differences.md has no row {}",
            known.row
        );
    }
    Ok(())
}
