//! A sound history passes; broken on purpose in many ways, each is noticed, by its own rule and by name.

use std::time::Duration;

use super::history::{
    Call, ClusterRow, End, GroupRow, Heard, IdleSample, Operation, Overlap, RequestId, Told,
};
use super::{Bounds, History, Rule, check};

pub(super) const BOUNDS: Bounds = Bounds {
    after_limit: Duration::from_secs(30),
    waiting: Duration::from_secs(60),
    idle_statements: 5.0,
};

pub(super) const LIMIT: i64 = 60_000;

/// One request, carried out by one call in a second and a half.
struct Request {
    kind: &'static str,
    call: &'static str,
    cluster: &'static str,
    tenant: &'static str,
    at: i64,
    outcome: &'static str,
    says: Option<&'static str>,
}

fn carried_out(history: &mut History, request: &Request) {
    let number = history.operations.len();
    let (id, request_id) = (format!("operation-{number}"), format!("req-{number}"));
    let at = 1_000_000 + request.at;
    let is_done = request.says.is_none();
    history.told.push(Told {
        id: Some(RequestId::Rest(request_id.clone())),
        tenant: request.tenant.into(),
        kind: request.kind.into(),
        cluster: Some(request.cluster.into()),
        asked: at,
        limit: LIMIT,
        heard: Heard::Confirmed,
    });
    history.operations.push(Operation {
        id: id.clone(),
        message: Some(format!("message-{number}")),
        request: Some(request_id),
        kind: request.kind.into(),
        cluster: request.cluster.into(),
        tenant: request.tenant.into(),
        state: if is_done { "succeeded" } else { "failed" }.into(),
        reason: request.says.map(str::to_owned),
        attempts: 1,
        created: at + 10,
        ended: Some(at + 1500),
    });
    let began = 1000.0 + f64::from(i32::try_from(request.at).unwrap()) / 1000.0;
    history.calls.push(Call {
        call: request.call.into(),
        cluster: request.cluster.into(),
        operation: id,
        attempt: 1,
        conductor: "one".into(),
        pid: 100 + u32::try_from(number).unwrap(),
        began: began + 0.1,
        began_wall: at + 100,
        end: Some(End {
            at: began + 1.4,
            outcome: request.outcome.into(),
            says: request.says.map(str::to_owned),
        }),
    });
}

fn row(cluster: &str, status: &str, reason: Option<&str>, nodes: i64) -> ClusterRow {
    let group = |name: &str, nodes| GroupRow {
        name: name.into(),
        status: status.into(),
        nodes,
    };
    ClusterRow {
        uuid: cluster.into(),
        status: status.into(),
        reason: reason.map(str::to_owned),
        groups: vec![group("default-master", 1), group("default-worker", nodes - 1)],
    }
}

/// `a` is made and grows, `b` fails, `c` comes and goes, `d` is a message that nobody can read.
pub(super) fn sound() -> History {
    let mut history = History::default();
    let done = |kind, call, cluster, tenant, at, outcome| Request {
        kind,
        call,
        cluster,
        tenant,
        at,
        outcome,
        says: None,
    };
    for request in [
        done("cluster_create", "create", "a", "north", 0, "CREATE_COMPLETE"),
        Request {
            says: Some("no such flavor: m1.nano"),
            ..done("cluster_create", "create", "b", "south", 100, "permanent")
        },
        done("cluster_create", "create", "c", "north", 200, "CREATE_COMPLETE"),
        done("cluster_resize", "resize", "a", "north", 3000, "UPDATE_COMPLETE"),
        done("cluster_delete", "delete", "c", "north", 3000, "DELETE_COMPLETE"),
    ] {
        carried_out(&mut history, &request);
    }
    history.told.push(Told {
        id: Some(RequestId::Message("letter".into())),
        tenant: "south".into(),
        kind: "no_such_method".into(),
        cluster: None,
        asked: 1_000_000,
        limit: LIMIT,
        heard: Heard::Confirmed,
    });
    history.dead_letters.push(RequestId::Message("letter".into()));
    history.clusters = vec![
        row("a", "UPDATE_COMPLETE", None, 3),
        row("b", "CREATE_FAILED", Some("no such flavor: m1.nano"), 2),
    ];
    history.built.insert("a".into(), 3);
    history.idle.push(IdleSample {
        server: "database".into(),
        seconds: 10.0,
        conductors: 2,
        asked: vec![("SELECT what is due".into(), 60)],
    });
    history
}

/// What is broken, which rule sees it, whom it names, and how it is broken.
type Breakage = (&'static str, Rule, &'static str, fn(&mut History));

const BREAKAGES: &[Breakage] = &[
    (
        "a confirmed request is in no journal",
        Rule::Accepted,
        "req-3",
        |history| {
            history.operations.remove(3);
            history.calls.remove(3);
        },
    ),
    ("a dead letter is gone", Rule::Accepted, "letter", |history| {
        history.dead_letters.clear()
    }),
    (
        "a request became two operations",
        Rule::Accepted,
        "req-3",
        |history| {
            let mut twin = history.operations[3].clone();
            twin.id = "twin".into();
            history.operations.push(twin);
        },
    ),
    (
        "an operation that nobody asked for",
        Rule::Accepted,
        "operation-3",
        |history| {
            history.told.remove(3);
        },
    ),
    (
        "a caller was told of a success that was none",
        Rule::Accepted,
        "operation-1",
        |history| {
            history.told[1].heard = Heard::Result;
        },
    ),
    (
        "a request that was refused is carried out",
        Rule::Accepted,
        "req-3",
        |history| {
            history.told[3].heard = Heard::Refused {
                status: 409,
                text: "not now".into(),
            };
        },
    ),
    (
        "two drivers at work on one cluster",
        Rule::OneAtATime,
        "operation-3",
        |history| {
            history.calls[3].began = history.calls[0].began + 0.5;
        },
    ),
    (
        "a driver found another one",
        Rule::OneAtATime,
        "operation-3",
        |history| {
            history.overlaps.push(Overlap {
                cluster: "a".into(),
                operation: "operation-3".into(),
                pid: 1,
            });
        },
    ),
    (
        "two calls for one attempt",
        Rule::OneAtATime,
        "operation-3",
        |history| {
            let mut again = history.calls[3].clone();
            again.began += 10.0;
            history.calls[3].end = None;
            history.calls.push(again);
        },
    ),
    (
        "a success without a driver",
        Rule::Order,
        "operation-3",
        |history| {
            history.calls[3].end = None;
        },
    ),
    ("a call after the end", Rule::Order, "operation-3", |history| {
        history.calls[3].began_wall += 10_000;
    }),
    ("a call for no operation", Rule::Order, "stranger", |history| {
        history.calls[3].operation = "stranger".into();
    }),
    (
        "an operation that hangs",
        Rule::InTime,
        "operation-3",
        |history| {
            history.operations[3].state = "running".into();
            history.operations[3].ended = None;
        },
    ),
    (
        "an operation that ends too late",
        Rule::InTime,
        "operation-3",
        |history| {
            history.operations[3].ended = Some(history.operations[3].created + LIMIT + 31_000);
        },
    ),
    ("a wrong final status", Rule::Rows, "a", |history| {
        history.clusters[0].status = "UPDATE_FAILED".into();
    }),
    ("a missing row", Rule::Rows, "a", |history| {
        history.clusters.remove(0);
    }),
    ("a row that was deleted", Rule::Rows, "c", |history| {
        history.clusters.push(row("c", "DELETE_COMPLETE", None, 2));
    }),
    ("a row that nobody has made", Rule::Rows, "z", |history| {
        history.clusters.push(row("z", "CREATE_COMPLETE", None, 2));
    }),
    ("a cluster that was never built", Rule::Rows, "a", |history| {
        history.built.clear()
    }),
    (
        "a deleted cluster that is still built",
        Rule::Rows,
        "c",
        |history| {
            history.built.insert("c".into(), 2);
        },
    ),
    (
        "another number of nodes than was built",
        Rule::Rows,
        "a",
        |history| {
            history.built.insert("a".into(), 2);
        },
    ),
    ("a group that is not marked", Rule::Rows, "b", |history| {
        history.clusters[1].groups[1].status = "CREATE_COMPLETE".into();
    }),
    ("a group that stays in progress", Rule::Rows, "a", |history| {
        history.clusters[0].groups[1].status = "UPDATE_IN_PROGRESS".into();
    }),
    (
        "a failure that the cluster's row does not tell",
        Rule::Rows,
        "b",
        |history| {
            history.clusters[1].reason = None;
        },
    ),
    (
        "a reason that is the database's",
        Rule::Reasons,
        "operation-1",
        |history| {
            let reason = Some("Lock wait timeout exceeded; try restarting transaction".to_owned());
            history.operations[1].reason.clone_from(&reason);
            history.clusters[1].reason = reason;
        },
    ),
    (
        "a refusal for our own trouble",
        Rule::Reasons,
        "operation-3",
        |history| {
            history.operations[3].state = "refused".into();
            history.operations[3].reason =
                Some("The database does not take one of the request's values.".into());
        },
    ),
    (
        "a time limit that was not over",
        Rule::Reasons,
        "operation-1",
        |history| {
            let reason =
                Some("Timed out: the cluster was not created within 1 minutes (create_timeout).".to_owned());
            history.operations[1].reason.clone_from(&reason);
            history.clusters[1].reason = reason;
        },
    ),
    (
        "cancelled for a delete that nobody asked for",
        Rule::Reasons,
        "operation-3",
        |history| {
            history.operations[3].state = "cancelled".into();
            history.operations[3].reason = Some("The cluster is being deleted (operation x).".into());
        },
    ),
    (
        "an answer that shows the inside",
        Rule::Reasons,
        "req-9",
        |history| {
            history.told.push(Told {
                id: Some(RequestId::Rest("req-9".into())),
                heard: Heard::Refused {
                    status: 500,
                    text: "SQLSTATE[HY000]".into(),
                },
                ..history.told[0].clone()
            });
        },
    ),
    ("a tenant that starves", Rule::Waiting, "south", |history| {
        for told in &mut history.told {
            if told.tenant == "south" {
                told.asked -= 61_000;
                told.limit += 61_000;
            }
        }
    }),
    ("a busy loop", Rule::Idle, "database", |history| {
        history.idle[0].asked[0].1 = 13_280
    }),
];

#[test]
fn a_sound_history_passes() {
    assert_eq!(check(&sound(), &BOUNDS), []);
}

#[test]
fn each_broken_promise_is_reported_by_its_rule() {
    for (what, rule, named, breaks) in BREAKAGES {
        let mut history = sound();
        breaks(&mut history);
        let verdicts = check(&history, &BOUNDS);
        let is_noticed = verdicts
            .iter()
            .any(|verdict| verdict.rule == *rule && verdict.about.contains(named));
        assert!(is_noticed, "{what}: {verdicts:#?}");
    }
}

#[test]
fn an_unanswered_request_is_expected_at_most_once() {
    let mut history = sound();
    history.told[3].heard = Heard::Nothing;
    history.told[3].id = None;
    assert_eq!(check(&history, &BOUNDS), []);
    history.told[3].id = Some(RequestId::Rest("req-3".into()));
    history.told[3].heard = Heard::Refused {
        status: 503,
        text: "The message bus is away.".into(),
    };
    assert_eq!(check(&history, &BOUNDS), []);
}
