//! Services that are away, slow, or not what they should be.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{StandIn, fault_of};
use crate::cloud::Named;

fn nothing(_: &str, _: &str) -> (u16, Value) {
    (404, json!({}))
}

#[tokio::test]
async fn failing_service_is_a_503_that_names_it_only() {
    let ways: [super::Say; 6] = [
        |_, _| (500, json!({"error": {"message": "SELECT secret FROM images"}})),
        |_, _| (503, Value::Null),
        |_, _| (429, json!({})),
        |_, _| (200, Value::Null),
        |_, _| (200, json!({"unexpected": []})),
        |_, _| (302, json!({})),
    ];
    for say in ways {
        let cloud = StandIn::start(say).await;
        let inquiry = cloud.inquire();
        for (service, outcome) in [
            ("Glance", fault_of(inquiry.image("x").await)),
            ("Nova", fault_of(inquiry.flavor("x").await)),
            ("Neutron", fault_of(inquiry.fixed_network("x").await)),
        ] {
            assert_eq!(outcome.0, 503, "{}", outcome.1);
            assert!(outcome.1.starts_with(service), "{}", outcome.1);
            assert!(
                !outcome.1.contains("SELECT") && !outcome.1.contains("http"),
                "{}",
                outcome.1
            );
        }
    }
}

#[tokio::test]
async fn a_list_that_is_not_there_is_not_an_empty_list() {
    let cloud = StandIn::start(nothing).await;
    assert_eq!(fault_of(cloud.inquire().flavor("x").await).0, 503);
    assert_eq!(fault_of(cloud.inquire().image("x").await).0, 503);
    assert_eq!(fault_of(cloud.inquire().network_of_subnet("x").await).0, 503);
}

#[tokio::test]
async fn a_refused_token_is_a_401_so_that_clients_get_a_new_one() {
    let cloud = StandIn::start(|_, _| (401, json!({}))).await;
    let (status, text) = fault_of(cloud.inquire().image("x").await);
    assert_eq!(status, 401);
    assert!(text.starts_with("Glance does not accept the token"), "{text}");
}

#[tokio::test]
async fn all_look_ups_of_a_request_end_within_one_limit() {
    let cloud = StandIn::start(|_, _| (0, Value::Null)).await;
    let inquiry = cloud.inquire();
    let named = Named {
        flavor: Some("a"),
        external_network: Some("b"),
        fixed_subnet: Some("c"),
        ..Named::default()
    };
    let began = Instant::now();
    let (image, found) = tokio::join!(inquiry.image("d"), inquiry.look_up(&named));
    let late = inquiry.key_pair("e").await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for outcome in [fault_of(image), fault_of(found.check_existence()), fault_of(late)] {
        assert_eq!(outcome.0, 503, "{}", outcome.1);
    }
}

#[tokio::test]
async fn a_service_that_is_down_or_not_in_the_catalog_is_a_503() {
    let cloud = StandIn::start(nothing).await;
    let inquiry = cloud.inquire_of(&["compute"]);
    let (status, text) = fault_of(inquiry.image("x").await);
    assert_eq!(status, 503);
    assert!(text.contains("Glance cannot be asked"), "{text}");
    let inquiry = cloud.inquire();
    drop(cloud);
    tokio::task::yield_now().await;
    let (status, text) = fault_of(inquiry.image("x").await);
    assert_eq!(status, 503);
    assert!(text.contains("Glance is not available"), "{text}");
}
