//! A user's life with Magnum, told by python-magnumclient (`tests/peers/magnum_life.py`) twice: once with the Python
//! conductor behind the API, once with ours. What the client sees must be the same but for the rows of
//! [`DIFFERENCES`], each of which stands in `docs/differences.md`.
//!
//! The APIs are Magnum's, under a WSGI server (which reads the database) and as the command `magnum-api` (which asks
//! a conductor for every object), and ours.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::python_magnum::{PythonMagnum, Served};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// The chapters that Magnum's API can tell with our conductor, in an order in which they can be told.
const WITH_MAGNUMS_API: &[&str] = &[
    "templates",
    "create",
    "cloud",
    "update",
    "resize",
    "node_groups",
    "upgrade",
    "certificates",
    "credentials",
    "quotas",
    "statistics",
    "services",
    "failing",
    "delete",
];

/// Those that our API can tell: all but what is asked of Nova.
const WITH_OUR_API: &[&str] = &[
    "templates",
    "create",
    "update",
    "resize",
    "node_groups",
    "upgrade",
    "certificates",
    "credentials",
    "quotas",
    "statistics",
    "services",
    "failing",
    "delete",
];

/// Which API the client talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Magnums(Served),
    Ours,
}

/// Which conductor stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conductor {
    Python,
    Ours,
}

/// A deployment whose API knows the images that the stand-in cloud has.
pub(super) async fn deployment() -> Result<Deployment> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let image =
        |id: &str, name: &str, properties: Value| json!({"id": id, "name": name, "properties": properties});
    let images = json!([
        image(
            "0c6bd6d8-4ac2-4e5e-9f24-0d5d1e4f8d6f",
            "ubuntu-24.04",
            json!({"os_distro": "ubuntu"})
        ),
        image(
            "5b7f4f52-8c1f-4d0e-9a55-6a0f6f1b3c11",
            "ubuntu-26.04",
            json!({"os_distro": "ubuntu"})
        ),
        image(
            "9e0e3b58-3b53-4c7b-8ac9-3d8a1f9b7a10",
            "unknown-system",
            json!({})
        ),
    ]);
    let catalog = deployment.folder.join("life-images.json");
    std::fs::write(&catalog, images.to_string())?;
    deployment.set("api", "image_catalog_file", catalog.display());
    // As Magnum makes them.
    deployment.set("certificates", "key_type", "rsa-2048");
    Ok(deployment)
}

/// One told life: every exchange, with its chapter.
async fn told(api: Api, conductor: Conductor, chapters: &[&str]) -> Result<Vec<Value>> {
    let deployment = deployment().await?;
    let mut python = PythonMagnum::beside(&deployment).await?;
    python.set("DEFAULT", "host", "one");
    let _conductor = match conductor {
        Conductor::Python => python.conductor(&deployment.vhost).await?,
        Conductor::Ours => deployment.conductor("one").await?,
    };
    let (base, _api) = match api {
        Api::Magnums(served) => {
            let api = python.api(served).await?;
            (api.rest.base().to_owned(), api.program)
        }
        Api::Ours => {
            let api = deployment.api().await?;
            (api.rest.base().to_owned(), api.program)
        }
    };
    let mut client = OsloPeer::start("magnum_life.py", &[&base]).await?;
    let mut all = Vec::new();
    for chapter in chapters {
        let exchanges = client.ask(json!({"do": chapter})).await?;
        let exchanges = exchanges.with_context(|| format!("{chapter}, {api:?}, {conductor:?}"))?;
        for mut exchange in exchanges.as_array().context("a list")?.clone() {
            exchange["chapter"] = json!(chapter);
            all.push(exchange);
        }
    }
    if conductor == Conductor::Ours {
        deployment.settled(PATIENCE).await?;
    }
    Ok(all)
}

/// What may differ.
struct Difference {
    chapter: &'static str,
    /// Empty: every one.
    step: &'static str,
    /// Where in the exchange: a JSON pointer, and everything below it.
    place: &'static str,
    /// The row of `docs/differences.md`, by its first column.
    row: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        chapter: "failing",
        step: "show",
        place: "/body/faults",
        row: "`faults` of a cluster whose create or delete failed",
    },
    Difference {
        chapter: "certificates",
        step: "",
        place: "/body/pem/extensions/authorityKeyIdentifier",
        row: "Authority key identifier",
    },
    Difference {
        chapter: "certificates",
        step: "sign",
        place: "/body/pem/days",
        row: "Validity",
    },
    Difference {
        chapter: "certificates",
        step: "sign nonsense",
        place: "/body",
        row: "Message of `InvalidCsr`",
    },
];

/// Every leaf of a value, by its path.
pub(super) fn leaves(value: &Value, path: &str, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                leaves(inner, &format!("{path}/{key}"), into);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, inner) in list.iter().enumerate() {
                leaves(inner, &format!("{path}/{index}"), into);
            }
        }
        leaf => into.push((path.to_owned(), leaf.to_string())),
    }
}

fn steps(life: &[Value]) -> Vec<String> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    life.iter()
        .map(|one| {
            format!(
                "{} / {}: {}",
                text(one, "chapter"),
                text(one, "step"),
                text(one, "asked")
            )
        })
        .collect()
}

/// Every place where two lives of the same steps differ, as text, and the rows of [`DIFFERENCES`] that were seen.
fn differences(theirs: &[Value], ours: &[Value]) -> Result<(Vec<String>, BTreeSet<&'static str>)> {
    let names = steps(theirs);
    ensure!(
        names == steps(ours),
        "other exchanges: Python's conductor\n{names:#?}\nours\n{:#?}",
        steps(ours)
    );
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for ((their, our), name) in theirs.iter().zip(ours).zip(names) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        leaves(their, "", &mut left);
        leaves(our, "", &mut right);
        let both = [("Python", &left, &right), ("ours", &right, &left)];
        for (whose, one, other) in both {
            for (path, value) in one.iter().filter(|leaf| !other.contains(leaf)) {
                let known = DIFFERENCES.iter().find(|known| {
                    their["chapter"] == known.chapter
                        && (known.step.is_empty() || their["step"] == known.step)
                        && path.starts_with(known.place)
                });
                match known {
                    Some(known) => drop(seen.insert(known.row)),
                    None => found.push(format!("{name}: {path}: {whose} {value}")),
                }
            }
        }
    }
    Ok((found, seen))
}

async fn no_difference(api: Api, chapters: &[&str]) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(
        told(api, Conductor::Python, chapters),
        told(api, Conductor::Ours, chapters)
    )?;
    let (found, seen) = differences(&theirs, &ours)?;
    ensure!(found.is_empty(), "{}", found.join("\n"));
    for known in DIFFERENCES
        .iter()
        .filter(|known| chapters.contains(&known.chapter))
    {
        ensure!(
            seen.contains(known.row),
            "there is no such difference any more: {}",
            known.row
        );
    }
    Ok(())
}

#[test]
fn every_difference_stands_in_the_document() -> Result<()> {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/differences.md");
    let document = std::fs::read_to_string(document)?;
    for known in DIFFERENCES {
        ensure!(
            document
                .lines()
                .any(|line| line.starts_with(&format!("| {} |", known.row))),
            "docs/differences.md has no row {}",
            known.row
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_magnums_api_under_wsgi_sees_no_other_conductor() -> Result<()> {
    no_difference(Api::Magnums(Served::Wsgi), WITH_MAGNUMS_API).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_command_magnum_api_sees_no_other_conductor() -> Result<()> {
    no_difference(Api::Magnums(Served::Script), WITH_MAGNUMS_API).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_our_api_sees_no_other_conductor() -> Result<()> {
    no_difference(Api::Ours, WITH_OUR_API).await
}
