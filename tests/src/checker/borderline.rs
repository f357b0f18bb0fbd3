//! Histories that look broken and are sound, each beside one that is broken.

use super::broken::{BOUNDS, LIMIT, sound};
use super::history::{GroupRow, Heard, Operation, RequestId, Told};
use super::{History, Rule, check};

#[test]
fn a_call_that_was_killed_is_made_again_by_the_next_owner() {
    let mut history = sound();
    let mut again = history.calls[3].clone();
    history.calls[3].end = None;
    again.attempt = 2;
    again.began += 4.0;
    again.began_wall += 200;
    history.calls.push(again);
    assert_eq!(check(&history, &BOUNDS), []);
}

#[test]
fn an_operation_refused_at_its_turn_needs_a_failed_one_before_it() {
    let reason = "Upgrading a cluster when status is \"CREATE_FAILED\" is not supported.";
    let refused = |cluster: &str| {
        let mut history = sound();
        history.told.push(Told {
            id: Some(RequestId::Rest("req-late".into())),
            tenant: "south".into(),
            kind: "cluster_upgrade".into(),
            cluster: Some(cluster.into()),
            asked: 1_000_500,
            limit: LIMIT,
            heard: Heard::Refused {
                status: 400,
                text: serde_json::json!({ "detail": reason }).to_string(),
            },
        });
        history.operations.push(Operation {
            id: "late".into(),
            message: Some("message-late".into()),
            request: Some("req-late".into()),
            kind: "cluster_upgrade".into(),
            cluster: cluster.into(),
            tenant: "south".into(),
            state: "failed".into(),
            reason: Some(reason.into()),
            attempts: 1,
            created: 1_000_510,
            ended: Some(1_005_000),
        });
        history
    };
    let of_its_own = |history: &History| {
        let verdicts = check(history, &BOUNDS).into_iter();
        let rules = verdicts.filter(|verdict| verdict.about.ends_with("late"));
        rules.map(|verdict| verdict.rule).collect::<Vec<_>>()
    };
    assert_eq!(of_its_own(&refused("b")), [], "it waited behind a failed create");
    assert_eq!(
        of_its_own(&refused("a")),
        [Rule::Reasons],
        "nothing failed before it"
    );
    let mut history = refused("b");
    history.operations.last_mut().unwrap().reason = Some("no room".into());
    assert_eq!(
        of_its_own(&history),
        [Rule::Accepted, Rule::Reasons],
        "it is not what was told"
    );
}

/// The caller of a call has its answer when the driver has reported the cluster; a delete may stop what the cloud does after that.
#[test]
fn a_result_shows_the_cluster_as_its_driver_has_reported_it() {
    let stopped = |outcome: &str| {
        let mut history = sound();
        history.told[3].heard = Heard::Result;
        history.operations[3].state = "cancelled".into();
        let end = history.calls[3].end.as_mut().unwrap();
        end.outcome = outcome.into();
        let verdicts = check(&history, &BOUNDS).into_iter();
        verdicts
            .filter(|verdict| verdict.rule == Rule::Accepted)
            .map(|verdict| verdict.about)
            .collect::<Vec<_>>()
    };
    assert_eq!(stopped("UPDATE_IN_PROGRESS"), Vec::<String>::new());
    assert_eq!(stopped("UPDATE_FAILED"), Vec::<String>::new());
    assert_eq!(stopped("UPDATE_COMPLETE"), ["operation-3"]);
}

/// A node group whose turn to be made never came has nodes in its row that no driver has built, unless a later call has shown it.
#[test]
fn nodes_of_a_group_that_was_never_made_may_be_missing() {
    let built = |nodes: i64| {
        let mut history = sound();
        let mut waited = history.operations[3].clone();
        waited.id = "waited".into();
        waited.request = Some("req-waited".into());
        waited.message = None;
        waited.kind = "nodegroup_create".into();
        waited.state = "failed".into();
        waited.reason = Some("No running conductor has this driver loaded.".into());
        history.operations.push(waited);
        history.clusters[0].groups.push(GroupRow {
            name: "pool".into(),
            status: "CREATE_FAILED".into(),
            nodes: 2,
        });
        history.built.insert("a".into(), nodes);
        let verdicts = check(&history, &BOUNDS).into_iter();
        verdicts.filter(|verdict| verdict.rule == Rule::Rows).count()
    };
    assert_eq!([built(3), built(5), built(4)], [0, 0, 1]);
}

/// A delete takes the place of one that the cloud still carries out, and finds the cluster gone.
#[test]
fn a_delete_needs_no_call_when_another_one_has_deleted_the_cluster() {
    let again = |cluster: &str| {
        let mut history = sound();
        let mut again = history.operations[4].clone();
        again.id = "again".into();
        again.request = Some("req-again".into());
        again.message = None;
        again.cluster = cluster.into();
        history.operations.push(again);
        let verdicts = check(&history, &BOUNDS).into_iter();
        let of_it = verdicts.filter(|verdict| verdict.rule == Rule::Order && verdict.about == "again");
        of_it.count()
    };
    assert_eq!([again("c"), again("a")], [0, 1]);
}

/// What a conductor had that was cut off ends when its lease has, and a delete may be done by then.
#[test]
fn an_update_that_a_delete_has_overtaken_may_find_the_cluster_gone() {
    let overtaken = |cluster: &str, later: i64| {
        let mut history = sound();
        let deleted = history.operations[4].clone();
        let mut overtaken = history.operations[4].clone();
        overtaken.id = "overtaken".into();
        overtaken.request = Some("req-overtaken".into());
        overtaken.message = None;
        overtaken.kind = "cluster_update".into();
        overtaken.state = "cancelled".into();
        overtaken.reason = Some("The cluster's row is gone.".into());
        overtaken.cluster = cluster.into();
        overtaken.ended = deleted.ended.map(|ended| ended + later);
        history.operations.push(overtaken);
        let verdicts = check(&history, &BOUNDS).into_iter();
        let of_it = verdicts.filter(|verdict| verdict.rule == Rule::Reasons && verdict.about == "overtaken");
        of_it.count()
    };
    assert_eq!(
        [overtaken("c", 1), overtaken("c", -1), overtaken("a", 1)],
        [0, 1, 1]
    );
}

/// A client that heard nothing asks once more: the second delete waits behind the first, or is told that there is one.
#[test]
fn a_repeated_delete_of_a_node_group_needs_no_call_while_the_first_is_open() {
    let again = |state: &str, reason: &str, created: i64| {
        let mut history = sound();
        let (mut asked, mut first) = (history.told[3].clone(), history.operations[3].clone());
        history.told[3].kind = "nodegroup_delete".into();
        history.operations[3].kind = "nodegroup_delete".into();
        history.calls[3].call = "delete_nodegroup".into();
        asked.id = Some(RequestId::Rest("req-again".into()));
        asked.kind = "nodegroup_delete".into();
        (first.id, first.kind) = ("again".into(), "nodegroup_delete".into());
        (first.request, first.message) = (Some("req-again".into()), Some("message-again".into()));
        (first.state, first.reason) = (state.into(), Some(reason.into()));
        (first.created, first.ended) = (created, Some(created + 2000));
        history.told.push(asked);
        history.operations.push(first);
        let verdicts = check(&history, &BOUNDS).into_iter();
        let of_it = verdicts.filter(|verdict| verdict.about == "again");
        of_it.map(|verdict| verdict.rule).collect::<Vec<_>>()
    };
    let (meanwhile, afterwards) = (1_003_500, 1_005_000);
    let gone = "The node group's row is gone.";
    assert_eq!(again("succeeded", gone, meanwhile), []);
    assert_eq!(again("succeeded", gone, afterwards), [Rule::Order]);
    let named = "operation operation-3 is deleting the node group already";
    assert_eq!(again("cancelled", named, meanwhile), []);
    assert_eq!(again("cancelled", named, afterwards), [Rule::Reasons]);
    let unnamed = "operation operation-9 is deleting the node group already";
    assert_eq!(again("cancelled", unnamed, meanwhile), [Rule::Reasons]);
}
