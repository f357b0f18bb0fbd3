//! Networks and subnets.

use serde_json::{Value, json};

use super::{StandIn, fault_of};
use crate::cloud::Named;

const INNER: &str = "0000000b-2222-4222-8222-222222222222";

/// A Neutron that looks at no filter.
fn neutron(path: &str, _: &str) -> (u16, Value) {
    let network =
        |id: &str, name: &str, external: bool| json!({"id": id, "name": name, "router:external": external});
    let subnet = |id: &str, name: &str, network: &str| json!({"id": id, "name": name, "network_id": network});
    match path {
        "/network/v2.0/networks" => (
            200,
            json!({"networks": [
                network("out", "public", true), network(INNER, "inner", false), network("c", "twin", false),
                network("d", "twin", false), network("e", "exits", true), network("f", "exits", true),
            ]}),
        ),
        "/network/v2.0/subnets" => (
            200,
            json!({"subnets": [
                subnet("s", "inner-subnet", INNER), subnet("t", "elsewhere", "c"), subnet("u", "pair", "c"),
                subnet("v", "pair", "d"),
            ]}),
        ),
        _ => (404, json!({})),
    }
}

#[tokio::test]
async fn networks_are_found_by_id_or_name_and_filtered_here_too() {
    let cloud = StandIn::start(neutron).await;
    let inquiry = cloud.inquire();
    inquiry.external_network("public").await.unwrap();
    for ident in ["inner", INNER] {
        assert_eq!(
            inquiry.fixed_network(ident).await.unwrap().as_deref(),
            Some(INNER)
        );
        assert_eq!(
            fault_of(inquiry.external_network(ident).await),
            (400, format!("Unable to find external network {ident}."))
        );
    }
    assert!(
        cloud.asked()[0].contains("router%3Aexternal=true"),
        "{:?}",
        cloud.asked()
    );
    let refusals = [
        (
            fault_of(inquiry.external_network("exits").await),
            409,
            "Multiple external networks exist with same name 'exits'. Please use the external network ID instead.",
        ),
        (
            fault_of(inquiry.fixed_network("twin").await),
            409,
            "Multiple networks exist with same name 'twin'. Please use the network ID instead.",
        ),
        (
            fault_of(inquiry.fixed_network("none").await),
            400,
            "Unable to find fixed network none.",
        ),
        (
            fault_of(inquiry.network_of_subnet("pair").await),
            409,
            "Multiple subnets exist with same name 'pair'. Please use the subnet ID instead.",
        ),
        (
            fault_of(inquiry.network_of_subnet("none").await),
            400,
            "Unable to find fixed subnet none.",
        ),
    ];
    for ((status, text), wanted, words) in refusals {
        assert_eq!((status, text.as_str()), (wanted, words));
    }
}

#[tokio::test]
async fn a_fixed_subnet_is_one_of_the_fixed_network() {
    let cloud = StandIn::start(neutron).await;
    let check = async |network: Option<&str>, subnet: &str| {
        let named = Named {
            fixed_network: network,
            fixed_subnet: Some(subnet),
            ..Named::default()
        };
        cloud.inquire().look_up(&named).await.check_existence()
    };
    check(Some("inner"), "inner-subnet").await.unwrap();
    check(Some(INNER), "inner-subnet").await.unwrap();
    check(None, "elsewhere").await.unwrap();
    let (status, text) = fault_of(check(Some("inner"), "elsewhere").await);
    assert_eq!(
        (status, text.as_str()),
        (
            400,
            "The fixed subnet elsewhere is not one of the fixed network inner."
        )
    );
}
