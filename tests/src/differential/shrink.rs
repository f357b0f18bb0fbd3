//! Makes a sequence of requests smaller, as long as its last one still differs at the same place.

use serde_json::Value;

use super::request::{Body, Request};

/// Every sequence that is this one without one part, the largest parts first.
pub fn smaller(sequence: &[Request]) -> Vec<Vec<Request>> {
    let mut found = Vec::new();
    let last = sequence.len() - 1;
    for gone in 0..last {
        let mut rest = sequence.to_vec();
        rest.remove(gone);
        found.push(rest);
    }
    for (at, request) in sequence.iter().enumerate() {
        for request in simpler(request) {
            let mut changed = sequence.to_vec();
            changed[at] = request;
            found.push(changed);
        }
    }
    found
}

fn simpler(request: &Request) -> Vec<Request> {
    let mut found = Vec::new();
    let mut push = |change: &dyn Fn(&mut Request)| {
        let mut changed = request.clone();
        change(&mut changed);
        if changed != *request {
            found.push(changed);
        }
    };
    for at in 0..request.query.len() {
        push(&|request| drop(request.query.remove(at)));
    }
    push(&|request| request.accept = Some("application/json"));
    push(&|request| request.version = Some("1.14".to_owned()));
    push(&|request| request.user = "anna");
    if let Some(Body::Json(body)) = &request.body {
        for body in without_one_part(body) {
            push(&|request| request.body = Some(Body::Json(body.clone())));
        }
    }
    found
}

/// The value without a member or an element, anywhere in it.
fn without_one_part(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let mut found = Vec::new();
            for key in members.keys() {
                let mut rest = members.clone();
                rest.shift_remove(key);
                found.push(rest.into());
            }
            for (key, inner) in members {
                for inner in without_one_part(inner) {
                    let mut changed = members.clone();
                    changed.insert(key.clone(), inner);
                    found.push(changed.into());
                }
            }
            found
        }
        Value::Array(items) => {
            let mut found = Vec::new();
            for at in 0..items.len() {
                let mut rest = items.clone();
                rest.remove(at);
                found.push(rest.into());
            }
            for (at, inner) in items.iter().enumerate() {
                for inner in without_one_part(inner) {
                    let mut changed = items.clone();
                    changed[at] = inner;
                    found.push(changed.into());
                }
            }
            found
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_part_of_a_body_goes_once() {
        let found = without_one_part(&json!({"a": [1, 2], "b": 3}));
        assert_eq!(
            found,
            [
                json!({"b": 3}),
                json!({"a": [1, 2]}),
                json!({"a": [2], "b": 3}),
                json!({"a": [1], "b": 3})
            ]
        );
    }
}
