//! Lists come page by page; `next` leads through all of them, and each page costs the same few queries.

use super::world::World;

async fn pages(world: &World, key: &str, first: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut path = first.to_owned();
    loop {
        let answer = world.ask("root", "GET", &path, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let items = answer.body[key].as_array().unwrap();
        pages.push(
            items
                .iter()
                .map(|item| item["uuid"].as_str().unwrap().to_owned())
                .collect(),
        );
        let Some(next) = answer.body.get("next").and_then(|next| next.as_str()) else {
            return pages;
        };
        let base = format!("{}/v1/{key}", world.base());
        assert!(next.starts_with(&base), "{next}");
        path = next[world.base().len()..].to_owned();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_leads_through_the_whole_list_in_every_order() {
    let world = World::start("base").await;
    for key in ["clusters", "clustertemplates"] {
        let all = pages(&world, key, &format!("/v1/{key}")).await.concat();
        assert!(all.len() >= 3);
        for order in [
            "sort_key=id",
            "sort_key=name&sort_dir=desc",
            "sort_key=updated_at",
            "sort_key=created_at",
        ] {
            let one = pages(&world, key, &format!("/v1/{key}?{order}")).await.concat();
            for detail in ["", "/detail"] {
                for limit in [1, 2, 3] {
                    let path = format!("/v1/{key}{detail}?{order}&limit={limit}");
                    let by_page = pages(&world, key, &path).await;
                    assert!(by_page.iter().all(|page| page.len() <= limit));
                    assert_eq!(by_page.concat(), one, "{path}");
                }
            }
            let mut sorted = (all.clone(), one);
            sorted.0.sort();
            sorted.1.sort();
            assert_eq!(sorted.0, sorted.1, "{order} loses nothing");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_with_a_hidden_or_missing_template_is_still_shown() {
    let world = World::start("base").await;
    for change in [
        "update cluster_template set hidden = 1, public = 0, project_id = 'x'",
        "delete from cluster_template",
    ] {
        world.sql(change).await;
        for path in ["/v1/clusters/prod", "/v1/clusters", "/v1/clusters/detail"] {
            let answer = world.ask("alice", "GET", path, "").await;
            assert_eq!(answer.status, 200, "{change}, {path}: {}", answer.body);
        }
    }
    world.stop().await;
}
