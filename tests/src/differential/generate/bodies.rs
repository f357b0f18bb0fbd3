//! Bodies and arguments, from their schemas.

use serde_json::{Map, Value, json};

use super::super::request::Body;
use super::dice::Dice;
use super::values;

/// An attribute of a body, or an argument of a query.
#[derive(Debug, Clone)]
pub struct Attribute {
    pub name: String,
    pub schema: Value,
    pub required: bool,
}

impl Attribute {
    /// One of which nothing is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            schema: Value::Null,
            required: false,
        }
    }
}

/// A schema, or what it refers to.
pub fn resolved<'a>(schema: &'a Value, description: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        Some(place) => description.pointer(place).unwrap_or(schema),
        None => schema,
    }
}

/// The attributes of an object's schema.
pub fn attributes(schema: &Value, description: &Value) -> Vec<Attribute> {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Attribute {
            name: name.clone(),
            schema: resolved(schema, description).clone(),
            required: required(name),
        })
        .collect()
}

/// The arguments of an operation's query.
pub fn arguments(operation: &Value, description: &Value) -> Vec<Attribute> {
    let parameters = operation["parameters"].as_array();
    parameters
        .into_iter()
        .flatten()
        .map(|parameter| resolved(parameter, description))
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| Attribute {
            name: parameter["name"].as_str().unwrap_or_default().to_owned(),
            schema: resolved(&parameter["schema"], description).clone(),
            required: parameter["required"] == true,
        })
        .collect()
}

/// What is needed, and up to three more.
pub fn object(attributes: &[Attribute], dice: &mut Dice) -> Body {
    let mut body = Map::new();
    for attribute in attributes.iter().filter(|attribute| attribute.required) {
        if !dice.mistake(15) {
            body.insert(attribute.name.clone(), values::value(attribute, dice));
        }
    }
    for (name, value) in values::usual_companions(attributes) {
        if !dice.once_in(4) {
            body.insert(name.to_owned(), value);
        }
    }
    for _ in 0..dice.below(4) {
        if let Some(attribute) = dice.one(attributes) {
            body.insert(attribute.name.clone(), values::value(attribute, dice));
        }
    }
    if dice.mistake(15) {
        let name = dice.pick(&["unknown", "id", "links", "project_id", "created_at", ""]);
        body.insert(name.to_owned(), values::broken(dice));
    }
    Body::Json(body.into())
}

/// One to three changes.
pub fn patch(attributes: &[Attribute], dice: &mut Dice) -> Body {
    let changes = if dice.mistake(30) {
        0
    } else {
        [1, 1, 1, 2, 3][dice.below(5)]
    };
    Body::Json(
        (0..changes)
            .map(|_| change(attributes, dice))
            .collect::<Vec<_>>()
            .into(),
    )
}

fn change(attributes: &[Attribute], dice: &mut Dice) -> Value {
    let unknown = Attribute::named("unknown");
    let attribute = match values::changeable(attributes, dice) {
        Some(attribute) if !dice.mistake(25) => attribute,
        _ => &unknown,
    };
    let mut path = format!("/{}", attribute.name);
    let mut value = values::value(attribute, dice);
    if attribute.name.contains("labels") && dice.once_in(2) {
        path.push_str(dice.pick(&["/kube_tag", "/boot_volume_size", "/new", "/note"]));
        if dice.mistake(5) {
            path.push_str(dice.pick(&["/", "~1b", ".b", " ", "/-"]));
        }
        value = values::label(dice);
    }
    if dice.mistake(12) {
        path = dice
            .pick(&[
                "", "/", "name", "//name", "/name/", "/links/0", "/-", "/name/x", "/0", "/tags/-",
            ])
            .to_owned();
    }
    let operation = if dice.mistake(15) {
        dice.pick(&["move", "copy", "test", "ADD", "", "replace "])
    } else {
        dice.pick(&["replace", "replace", "add", "remove"])
    };
    let mut change = json!({"op": operation, "path": path});
    if operation != "remove" {
        change["value"] = value;
    }
    if dice.mistake(8) {
        let gone = dice.pick(&["op", "path", "value"]);
        match dice.below(6) {
            0..=2 => drop(change.as_object_mut().map(|change| change.shift_remove(gone))),
            3 => change["unknown"] = json!(1),
            4 => change["path"] = values::broken(dice),
            _ => change = values::broken(dice),
        }
    }
    change
}
