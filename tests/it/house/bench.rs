//! The benchmarks measure what they say: every contestant handles all that it is given. Nothing is asserted about
//! speed; a debug build on a busy machine has none.

use std::time::Duration;

use anyhow::Result;
use magnum_tests::bench::{Calls, Casts, Create, Environment, Objects, Sweep};
use magnum_tests::mariadb::Mariadb;
use magnum_tests::process::built;
use magnum_tests::rabbitmq::Rabbitmq;
use serde_json::{Value, json};

async fn environment() -> Result<Environment<'static>> {
    Ok(Environment {
        program: built("bench")?,
        broker: Rabbitmq::shared().await?,
        database: Mariadb::shared().await?,
    })
}

/// One column of all rows.
fn column(report: &Value, name: &str) -> Vec<Value> {
    let rows = report["results"].as_array().expect("rows");
    rows.iter().map(|row| row[name].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_contestant_handles_all_casts_and_reports_latencies() -> Result<()> {
    let casts = Casts {
        messages: 200,
        peer_messages: 50,
        journalled_messages: 150,
        probes: 10,
        pace: 100,
        limit: Duration::from_secs(60),
    };
    let report = casts.run(&environment().await?).await?;
    let json = report.json();
    let names = ["bare consumer", "ours", "oslo.messaging", "journalled"];
    assert_eq!(column(&json, "contestant"), names);
    assert_eq!(column(&json, "casts"), [210.0, 210.0, 60.0, 160.0]);
    for figure in ["handled/s", "p50 ms", "p99 ms", "RSS MiB", "start s"] {
        let figures = column(&json, figure);
        assert!(
            figures.iter().all(|value| value.as_f64() > Some(0.0)),
            "{figure}: {figures:?}"
        );
    }
    assert_eq!(json["goals"].as_array().map(Vec::len), Some(4));
    assert!(names.iter().all(|name| report.text().contains(name)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_answered() -> Result<()> {
    let calls = Calls {
        messages: 160,
        peer_messages: 32,
        limit: Duration::from_secs(60),
    };
    let json = calls.run(&environment().await?).await?.json();
    assert_eq!(column(&json, "callers"), [1.0, 1.0, 16.0, 16.0]);
    assert_eq!(column(&json, "calls"), [160.0, 32.0, 160.0, 32.0]);
    assert_eq!(json["goals"].as_array().map(Vec::len), Some(9));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_ends_calls_and_completed_ones_are_measured() -> Result<()> {
    let calls = Calls {
        messages: u64::MAX,
        peer_messages: u64::MAX,
        limit: Duration::from_secs(1),
    };
    let made = column(&calls.run(&environment().await?).await?.json(), "calls");
    assert!(made.iter().all(|calls: &Value| *calls != json!(0.0)), "{made:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_conductors_answer_every_question_about_a_cluster() -> Result<()> {
    let objects = Objects {
        messages: 160,
        peer_messages: 32,
        limit: Duration::from_secs(60),
    };
    let json = objects.run(&environment().await?).await?.json();
    assert_eq!(column(&json, "contestant"), ["ours", "ours", "Magnum", "Magnum"]);
    assert_eq!(column(&json, "calls"), [160.0, 160.0, 32.0, 32.0]);
    assert_eq!(json["goals"].as_array().map(Vec::len), Some(7));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_contestant_creates_all_clusters_with_their_certificates() -> Result<()> {
    let create = Create {
        clusters: 20,
        rsa_clusters: 3,
        peer_clusters: 3,
        limit: Duration::from_secs(120),
    };
    let json = create.run(&environment().await?).await?.json();
    let names = [
        "bare RSA keys",
        "ours, EC",
        "ours, RSA-2048, from the pool",
        "ours, RSA-2048, no pool",
        "magnum 23",
    ];
    assert_eq!(column(&json, "contestant"), names);
    assert_eq!(column(&json, "clusters"), [3.0, 20.0, 3.0, 3.0, 3.0]);
    assert_eq!(json["goals"].as_array().map(Vec::len), Some(4));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cluster_in_progress_is_swept_once_however_many_conductors_there_are() -> Result<()> {
    let sweep = Sweep {
        few: 20,
        many: 60,
        limit: Duration::from_secs(120),
    };
    // Its statements are counted.
    let database = Mariadb::dedicated().await?;
    let environment = Environment {
        database: &database,
        ..environment().await?
    };
    let json = sweep.run(&environment).await?.json();
    assert_eq!(column(&json, "clusters"), [0.0, 20.0, 60.0, 60.0, 60.0, 20.0]);
    assert_eq!(column(&json, "conductors"), [1.0, 1.0, 1.0, 2.0, 4.0, 1.0]);
    assert_eq!(json["goals"].as_array().map(Vec::len), Some(6));
    Ok(())
}
