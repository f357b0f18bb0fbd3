//! Images.

use serde_json::{Value, json};

use super::{StandIn, fault_of};

const ID: &str = "00000001-1111-4111-8111-111111111111";

fn glance(path: &str, query: &str) -> (u16, Value) {
    let image = |id: &str, name: &str| json!({"id": id, "name": name, "os_distro": "ubuntu", "size": 1});
    match path {
        "/image/v2/images/00000001-1111-4111-8111-111111111111" => (200, image(ID, "plain")),
        "/image/v2/images/00000003-1111-4111-8111-111111111111" => (403, json!({})),
        "/image/v2/images" if query.contains("refused") => (403, json!({})),
        "/image/v2/images" if query.contains("hidden") => {
            let found = vec![image("5", "old"), image("6", "other")];
            (200, json!({"images": found}))
        }
        // A Glance that does not look at the filter.
        "/image/v2/images" => (
            200,
            json!({"images": [image("1", "plain"), image("2", "twin"), image("3", "twin"), image("7", ID)]}),
        ),
        _ => (404, json!({})),
    }
}

#[tokio::test]
async fn an_image_is_found_by_id_then_by_name_then_among_the_hidden_ones() {
    let cloud = StandIn::start(glance).await;
    for (ident, id) in [(ID, ID), ("plain", "1"), ("old", "5")] {
        let image = cloud.inquire().image(ident).await.unwrap();
        assert_eq!(image.id, id);
        assert_eq!(image.properties["os_distro"], "ubuntu");
        assert_eq!(image.properties.len(), 1);
    }
    assert_eq!(
        cloud.asked(),
        [
            format!("/image/v2/images/{ID}"),
            "/image/v2/images?name=plain".to_owned(),
            "/image/v2/images?name=old".to_owned(),
            "/image/v2/images?name=old&os%5Fhidden=true".to_owned(),
        ]
    );
}

#[tokio::test]
async fn ambiguous_or_invisible_image_is_refused_in_magnums_words() {
    let cloud = StandIn::start(glance).await;
    let find = async |ident: &str| fault_of(cloud.inquire().image(ident).await);
    assert_eq!(
        find("twin").await,
        (
            409,
            "Multiple images exist with same name 'twin'. Please use the image ID instead.".to_owned()
        )
    );
    assert_eq!(
        find("none").await,
        (400, "Image none could not be found.".to_owned())
    );
    let hidden = "00000003-1111-4111-8111-111111111111";
    assert_eq!(
        find(hidden).await,
        (400, format!("Image {hidden} could not be found."))
    );
    assert_eq!(
        find("refused").await,
        (403, "Not authorized for image refused.".to_owned())
    );
}
