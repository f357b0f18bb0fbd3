//! What is said of each thing that does not go on, and of nothing else.

use magnum_common::clock::utc_now;
use magnum_drivers::Announcement;
use magnum_rpc::QueueState;

use super::*;
use crate::admin::services::Queues;

const NOW_MS: i64 = 10_000_000;

fn operation(state: &str) -> Operation {
    Operation {
        id: 1,
        uuid: "o-1".to_owned(),
        message_id: None,
        kind: "cluster_update".to_owned(),
        cluster_uuid: "c-1".to_owned(),
        project_id: None,
        user_id: None,
        request_id: None,
        state: state.to_owned(),
        step: None,
        stop_requested: false,
        driver: None,
        driver_version: None,
        reply_pending: false,
        attempts: 3,
        failures: 2,
        next_attempt_ms: None,
        owner: Some("ctl1".to_owned()),
        lease_epoch: 1,
        lease_expires_ms: None,
        deadline_ms: None,
        progress_text: None,
        reason: None,
        created_ms: NOW_MS - 300_000,
        updated_ms: NOW_MS,
        ended_ms: None,
    }
}

fn service(seen: Timestamp) -> MagnumService {
    MagnumService {
        id: None,
        host: Some("ctl1".to_owned()),
        binary: None,
        disabled: false,
        disabled_reason: None,
        last_seen_up: Some(seen),
        forced_down: false,
        report_count: 1,
        created_at: None,
        updated_at: None,
    }
}

fn driver(error: Option<&str>) -> AnnouncedDriver {
    AnnouncedDriver {
        conductor: "ctl1:1".to_owned(),
        host: "ctl1".to_owned(),
        announcement: Announcement {
            name: "disk".to_owned(),
            version: "1.2.0".to_owned(),
            beta: false,
            cluster_types: "[]".to_owned(),
            capabilities: "{}".to_owned(),
            master_size_rule: "odd".to_owned(),
            api_routes: None,
        },
        error: error.map(str::to_owned),
        announced_ms: NOW_MS,
    }
}

/// What is said of this operation while a conductor with a driver is up.
fn said_of(operation: Operation) -> Vec<(bool, String)> {
    let now = utc_now().naive_utc();
    let seen = Overview {
        now_ms: NOW_MS,
        services: vec![service(now)],
        drivers: vec![driver(None)],
        stuck: vec![operation],
        ..Overview::default()
    };
    let concerns = of_overview(&seen, now, Duration::from_secs(60));
    concerns
        .into_iter()
        .map(|concern| (concern.is_broken, concern.why))
        .collect()
}

#[test]
fn an_operation_that_waits_longer_than_normal_says_for_how_long() {
    let expected = "has been waiting for a conductor for 5 min".to_owned();
    assert_eq!(said_of(operation("queued")), [(false, expected)]);
}

#[test]
fn a_retry_says_its_last_error_and_when_it_is_tried_again() {
    let retrying = Operation {
        reason: Some("the cloud is busy".to_owned()),
        next_attempt_ms: Some(NOW_MS + 30_000),
        ..operation("retrying")
    };
    let expected = "has failed 2 times and is tried again in 30 s: the cloud is busy".to_owned();
    assert_eq!(said_of(retrying), [(false, expected)]);
}

#[test]
fn one_over_its_time_and_one_that_was_lost_say_since_when() {
    let late = Operation {
        deadline_ms: Some(NOW_MS - 240_000),
        ..operation("observing")
    };
    assert_eq!(
        said_of(late),
        [(false, "is 4 min over its time limit".to_owned())]
    );
    let lost = Operation {
        lease_expires_ms: Some(NOW_MS - 120_000),
        ..operation("running")
    };
    let expected = "was lost by ctl1 2 min ago, and no other has taken it".to_owned();
    assert_eq!(said_of(lost), [(true, expected)]);
}

#[test]
fn one_whose_driver_nobody_has_is_broken_and_names_the_driver() {
    let waits = Operation {
        driver: Some("heat".to_owned()),
        driver_version: Some("2.0".to_owned()),
        ..operation("queued")
    };
    let expected = "waits for a conductor that has the driver heat 2.0".to_owned();
    assert_eq!(said_of(waits), [(true, expected)]);
}

#[test]
fn without_a_conductor_that_is_said_once_and_not_for_each_operation() {
    let now = utc_now().naive_utc();
    let seen = Overview {
        now_ms: NOW_MS,
        services: vec![service(now - chrono::TimeDelta::hours(1))],
        drivers: vec![driver(None)],
        stuck: vec![operation("queued"), operation("retrying")],
        ..Overview::default()
    };
    let concerns = of_overview(&seen, now, Duration::from_secs(60));
    assert_eq!(concerns.len(), 1, "{concerns:?}");
    assert!(concerns[0].is_broken && concerns[0].why.contains("none is up"));
}

#[test]
fn a_queue_that_nobody_takes_from_and_dead_letters_need_somebody() {
    let queue = |messages, consumers| Some(QueueState { messages, consumers });
    let of = |requests, dead_letters, keystone: Result<Option<String>, String>| {
        let services = ServicesState {
            database_place: String::new(),
            broker_place: String::new(),
            database: Ok(()),
            queues: Ok(Queues {
                requests,
                dead_letters,
            }),
            keystone,
        };
        let concerns = of_services(&services);
        concerns
            .into_iter()
            .map(|concern| (concern.is_broken, concern.why))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(queue(9, 1), queue(0, 0), Ok(None)), []);
    let nobody = "3 requests in its queue, and nobody takes them".to_owned();
    assert_eq!(of(queue(3, 0), None, Ok(None)), [(true, nobody)]);
    let dead = "4 messages were set aside".to_owned();
    assert_eq!(of(queue(0, 1), queue(4, 0), Ok(None)), [(false, dead)]);
    let away = "it is away".to_owned();
    assert_eq!(of(queue(0, 1), None, Err(away.clone())), [(true, away)]);
}

#[test]
fn a_driver_that_does_not_load_says_why() {
    let concerns = drivers(&[driver(None), driver(Some("line 3"))]);
    assert_eq!(concerns.len(), 1);
    assert_eq!(concerns[0].why, "disk on ctl1 does not load: line 3");
    assert!(drivers(&[driver(Some("line 3"))])[0].is_broken);
}
