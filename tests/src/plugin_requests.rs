//! Messages from the people of the double of a cloud ([`crate::plugin_world`]), as an API publishes them.

use serde_json::{Value, json};

use crate::raw_rpc;

/// The project of the people.
pub const PROJECT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// The user id of `alice`.
pub const USER: &str = "11111111111111111111111111111111";

/// A message from somebody with a token of this cloud.
pub fn from_person(mut message: Value, cloud: &str, who: &str) -> Value {
    let user = if who == "alice" { "1" } else { "3" }.repeat(32);
    for (name, value) in [
        ("auth_token", json!(format!("tok-{who}"))),
        ("auth_url", json!(format!("{cloud}/identity/v3"))),
        ("user_name", json!(who)),
        ("user_id", json!(user)),
        ("project_id", json!(PROJECT)),
        ("project_name", json!("alpha")),
        ("user_domain_id", json!("default")),
        ("user_domain_name", json!("Default")),
        ("is_admin", json!(false)),
        ("read_only", json!(false)),
        ("show_deleted", json!(false)),
        ("all_tenants", json!(false)),
    ] {
        message[format!("_context_{name}")] = value;
    }
    message
}

/// An object that is sent to be created: whatever is set has changed.
pub fn new_object<M: magnum_objects::WireModel>(model: &M) -> Value {
    let mut object = magnum_objects::encode_with_changes(model, &[]);
    let name = object["magnum_object.name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let version = object["magnum_object.version"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut fields = object["magnum_object.data"].take();
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    raw_rpc::object(&name, &version, fields)
}
