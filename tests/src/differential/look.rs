//! What a conductor has made of a request, read back: the cluster, the list of its node groups, and each of them.

use super::request::Request;
use super::saved::{Saved, Side};
use super::stage::Answer;

const CLUSTER: &str = "/v1/clusters/{ident}";
const GROUPS: &str = "/v1/clusters/{ident}/nodegroups";
const GROUP: &str = "/v1/clusters/{ident}/nodegroups/{group}";

/// What to read after a request and our answer to it.
pub fn after(request: &Request, ours: &Answer, saved: &Saved) -> Vec<Request> {
    if ours.status >= 300 {
        return Vec::new();
    }
    if request.route == GROUPS && request.method == "GET" {
        let groups = ours.body["nodegroups"].as_array().into_iter().flatten();
        let uuids = groups.filter_map(|group| group["uuid"].as_str());
        return uuids
            .map(|uuid| look(request, GROUP, &format!("{}/{uuid}", request.path), saved))
            .collect();
    }
    let is_write = matches!(request.method.as_str(), "POST" | "PATCH" | "DELETE");
    let Some(of_cluster) = request.path.strip_prefix("/v1/clusters").filter(|_| is_write) else {
        return Vec::new();
    };
    // A new one is in the answer, any other in the path.
    let ident = match of_cluster.trim_start_matches('/').split('/').next() {
        Some(ident) if !ident.is_empty() => ident,
        _ => ours.body["uuid"].as_str().unwrap_or_default(),
    };
    let path = format!("/v1/clusters/{ident}");
    vec![
        look(request, CLUSTER, &path, saved),
        look(request, GROUPS, &format!("{path}/nodegroups"), saved),
    ]
}

/// By whoever has asked for the change, at the highest version that both have.
fn look(after: &Request, route: &str, path: &str, saved: &Saved) -> Request {
    let mut request = Request::new(after.user, "GET", &saved.general(path, Side::Ours));
    request.route = route.to_owned();
    request
}

/// Where an answer has what each side makes up: identities and names of what is new.
pub fn made_up(request: &Request, ours: &Answer) -> Vec<String> {
    if matches!(ours.status, 201 | 202) {
        return ["/uuid", "/name"].map(str::to_owned).into();
    }
    let groups = ours.body["nodegroups"].as_array().map_or(0, Vec::len);
    let has_a_made_up_name = ours.body["name"]
        .as_str()
        .is_some_and(|name| name.ends_with("-cluster"));
    match request.route.as_str() {
        GROUPS => (0..groups).map(|at| format!("/nodegroups/{at}/uuid")).collect(),
        CLUSTER if has_a_made_up_name => vec!["/name".to_owned()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer {
            status,
            headers: BTreeMap::new(),
            body,
            base: String::new(),
        }
    }

    fn paths(method: &str, path: &str, ours: &Answer) -> Vec<String> {
        let looks = after(&Request::new("anna", method, path), ours, &Saved::default());
        looks.into_iter().map(|look| look.path).collect()
    }

    #[test]
    fn a_change_is_followed_by_a_look_at_its_cluster_and_a_list_by_one_at_each_group() {
        let looked = ["/v1/clusters/c1", "/v1/clusters/c1/nodegroups"];
        let made = answer(202, json!({"uuid": "c1"}));
        assert_eq!(paths("POST", "/v1/clusters", &made), looked);
        assert_eq!(paths("POST", "/v1/clusters/c1/nodegroups", &made), looked);
        assert_eq!(
            paths("DELETE", "/v1/clusters/c1", &answer(204, Value::Null)),
            looked
        );
        assert_eq!(paths("GET", "/v1/clusters/c1", &made), [""; 0]);
        assert_eq!(paths("POST", "/v1/clusters", &answer(400, Value::Null)), [""; 0]);

        let mut list = Request::new("anna", "GET", "/v1/clusters/c1/nodegroups");
        list.route = GROUPS.to_owned();
        let groups = answer(200, json!({"nodegroups": [{"uuid": "g1"}]}));
        let looks = after(&list, &groups, &Saved::default());
        assert_eq!(looks[0].path, "/v1/clusters/c1/nodegroups/g1");
    }
}
