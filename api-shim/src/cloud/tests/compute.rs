//! Flavors, key pairs, volume types, projects.

use magnum_common::model::StringMap;
use serde_json::{Value, json};

use super::{StandIn, fault_of};
use crate::cloud::{Flavor, Named};

fn flavor(id: &str, name: &str, disk: i64) -> Value {
    json!({"id": id, "name": name, "disk": disk})
}

/// Two pages of flavors, and no look-up by id but of one.
fn nova(path: &str, query: &str) -> (u16, Value) {
    match path {
        "/compute/v2.1/flavors/1" => (200, json!({"flavor": flavor("1", "small", 20)})),
        "/compute/v2.1/flavors/detail" if query.is_empty() => (
            200,
            json!({"flavors": [flavor("1", "small", 20), flavor("2", "diskless", 0)],
                   "flavors_links": [{"rel": "next", "href": "http://elsewhere"}]}),
        ),
        "/compute/v2.1/flavors/detail" => {
            assert_eq!(query, "marker=2");
            (200, json!({"flavors": [flavor("3", "large", 80)]}))
        }
        "/compute/v2.1/os-keypairs/my%20key" => (200, json!({"keypair": {}})),
        "/volumev3/v3/types" if query.is_empty() => (
            200,
            json!({"volume_types": [{"id": "a", "name": "fast"}], "volume_type_links": [{"rel": "next"}]}),
        ),
        "/volumev3/v3/types" => (200, json!({"volume_types": [{"id": "b", "name": "slow"}]})),
        "/identity/v3/projects/here" => (200, json!({"project": {}})),
        "/identity/v3/projects/secret" => (403, json!({})),
        _ => (404, json!({})),
    }
}

#[tokio::test]
async fn a_flavor_is_found_by_id_or_by_name_on_any_page_of_the_list() {
    let cloud = StandIn::start(nova).await;
    let inquiry = cloud.inquire();
    for (ident, disk) in [("1", 20), ("small", 20), ("large", 80), ("3", 80)] {
        assert_eq!(inquiry.flavor(ident).await.unwrap(), Some(Flavor { disk }));
    }
    assert_eq!(
        fault_of(inquiry.flavor("none").await),
        (400, "Unable to find flavor none.".to_owned())
    );
    let lists = cloud
        .asked()
        .iter()
        .filter(|path| path.contains("detail"))
        .count();
    assert_eq!(lists, 2, "each page is asked for once: {:?}", cloud.asked());
}

#[tokio::test]
async fn nothing_is_asked_twice_and_no_ident_leaves_its_place_in_the_path() {
    let cloud = StandIn::start(nova).await;
    let inquiry = cloud.inquire();
    let named = Named {
        flavor: Some("small"),
        master_flavor: Some("small"),
        ..Named::default()
    };
    let found = inquiry.look_up(&named).await;
    found.check_existence().unwrap();
    found.check_root_disks(0).unwrap();
    assert_eq!(cloud.asked().len(), 2, "{:?}", cloud.asked());
    for ident in ["..", "a/b", "../servers", "x?y"] {
        assert_eq!(fault_of(inquiry.flavor(ident).await).0, 400);
    }
    let asked = cloud.asked();
    assert_eq!(
        asked[2..],
        [
            "/compute/v2.1/flavors/detail?marker=2",
            "/compute/v2.1/flavors/x%3Fy"
        ]
    );
}

#[tokio::test]
async fn a_flavor_without_a_disk_needs_a_boot_volume() {
    let cloud = StandIn::start(nova).await;
    let named = Named {
        master_flavor: Some("diskless"),
        ..Named::default()
    };
    let found = cloud.inquire().look_up(&named).await;
    assert!(found.has_flavors());
    found.check_root_disks(1).unwrap();
    let (status, text) = fault_of(found.check_root_disks(0));
    assert_eq!(status, 400);
    assert!(text.starts_with("Flavor with zero root volume size"), "{text}");
}

#[tokio::test]
async fn a_key_pair_is_the_callers_or_missing() {
    let cloud = StandIn::start(nova).await;
    cloud.inquire().key_pair("my key").await.unwrap();
    for name in ["other", ".."] {
        assert_eq!(
            fault_of(cloud.inquire().key_pair(name).await),
            (404, format!("Unable to find keypair {name}."))
        );
    }
}

#[tokio::test]
async fn labels_name_volume_types_that_exist_where_there_is_a_cinder() {
    let labels = |name: &str| StringMap::from_iter([("boot_volume_type".to_owned(), name.to_owned())]);
    let cloud = StandIn::start(nova).await;
    for name in ["fast", "a", "slow", ""] {
        cloud.inquire().volume_types(&labels(name)).await.unwrap();
    }
    let (status, text) = fault_of(cloud.inquire().volume_types(&labels("none")).await);
    assert_eq!(status, 400);
    assert!(
        text.starts_with("Valid volume type could not be found. The label boot_volume_type"),
        "{text}"
    );
    let without = cloud.inquire_of(&["image"]);
    without.volume_types(&labels("none")).await.unwrap();
}

#[tokio::test]
async fn a_project_is_keystones_to_know() {
    let cloud = StandIn::start(nova).await;
    cloud.inquire().project("here").await.unwrap();
    assert_eq!(
        fault_of(cloud.inquire().project("nowhere").await),
        (404, "The project_id nowhere could not be found.".to_owned())
    );
    assert_eq!(fault_of(cloud.inquire().project("secret").await).0, 403);
}
