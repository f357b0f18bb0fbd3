//! JSON Schema of what is read and of what is shown, from the tables that read and show.

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType,
    Type,
};

use super::glossary;
use crate::microversion::Version;
use crate::validation::body::{Access, CLUSTER_NAME_PATTERN, Field, Kind, ONE_LINE_PATTERN};
use crate::validation::query::Argument;
use crate::views;
use crate::views::attribute::{Form, Shown, View};
use crate::views::operation::EventView;

/// Nothing besides what is named.
pub fn closed() -> Option<AdditionalProperties<Schema>> {
    Some(AdditionalProperties::FreeForm(false))
}

/// What a create request may hold.
pub fn given(fields: &[Field], version: Version) -> Object {
    let mut object = ObjectBuilder::new().additional_properties(closed());
    for field in fields.iter().filter(|field| field.is_given(version)) {
        let is_mandatory = field.access == Access::Mandatory;
        object = object.property(field.name, of_kind(field.kind, !is_mandatory, about(field)));
        if is_mandatory {
            object = object.required(field.name);
        }
    }
    object.build()
}

fn about(field: &Field) -> &'static str {
    match field.access {
        Access::Ignored => "Taken and ignored: the service sets it.",
        _ => glossary::about_field(field),
    }
}

/// What a view holds.
pub fn shown<R: Shown>(view: View, version: Version) -> Object {
    let mut object = ObjectBuilder::new().additional_properties(closed());
    for attribute in R::ATTRIBUTES
        .iter()
        .filter(|attribute| attribute.is_in(view, version))
    {
        object = object.property(
            attribute.name,
            of_form(attribute.form, attribute.null, glossary::about(attribute.name)),
        );
        if attribute.optional & view == 0 {
            object = object.required(attribute.name);
        }
    }
    object.build()
}

/// An argument of the query.
pub fn of_argument(argument: &Argument) -> RefOr<Schema> {
    of_kind(argument.kind, false, "")
}

fn types(of: Type, null: bool) -> SchemaType {
    if null {
        SchemaType::Array(vec![of, Type::Null])
    } else {
        SchemaType::Type(of)
    }
}

fn plain(of: Type, null: bool, about: &str) -> ObjectBuilder {
    let description = (!about.is_empty()).then_some(about);
    ObjectBuilder::new()
        .schema_type(types(of, null))
        .description(description)
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A dictionary of such values.
fn map(value: impl Into<AdditionalProperties<Schema>>, null: bool, about: &str) -> ObjectBuilder {
    plain(Type::Object, null, about).additional_properties(Some(value))
}

fn list(of: impl Into<RefOr<Schema>>, null: bool, about: &str) -> RefOr<Schema> {
    let (of, description): (RefOr<Schema>, _) = (of.into(), (!about.is_empty()).then_some(about));
    ArrayBuilder::new()
        .schema_type(types(Type::Array, null))
        .items(of)
        .description(description)
        .into()
}

fn choice(choices: &[&str], null: bool, about: &str) -> ObjectBuilder {
    let mut values: Vec<Value> = choices.iter().map(|text| Value::from(*text)).collect();
    if null {
        values.push(Value::Null);
    }
    plain(Type::String, null, about).enum_values(Some(values))
}

fn uuid(null: bool, about: &str) -> ObjectBuilder {
    plain(Type::String, null, about).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
}

fn of_kind(kind: Kind, null: bool, about: &str) -> RefOr<Schema> {
    match kind {
        Kind::Text { min, max } => plain(Type::String, null, about)
            .min_length((min > 0).then_some(min))
            .max_length(Some(max))
            .into(),
        Kind::Line { max } => plain(Type::String, null, about)
            .min_length(Some(1))
            .max_length(Some(max))
            .pattern(Some(ONE_LINE_PATTERN))
            .into(),
        Kind::Plain { max } => plain(Type::String, null, about)
            .max_length((max < usize::MAX).then_some(max))
            .into(),
        Kind::ClusterName => plain(Type::String, null, about)
            .max_length(Some(242))
            .pattern(Some(CLUSTER_NAME_PATTERN))
            .into(),
        Kind::Integer { min, max } => plain(Type::Integer, null, about)
            .minimum(Some(min))
            .maximum(Some(max))
            .into(),
        Kind::Boolean => plain(Type::Boolean, null, about).into(),
        Kind::Choice(choices) => choice(choices, null, about).into(),
        Kind::Uuid => uuid(null, about).into(),
        Kind::Labels => {
            let value = ObjectBuilder::new().schema_type(SchemaType::Array(vec![
                Type::String,
                Type::Number,
                Type::Boolean,
            ]));
            map(value, null, about).into()
        }
        Kind::Strings => map(text(), null, about).into(),
        Kind::ListOfStrings => list(map(text(), false, ""), null, about),
        Kind::Texts => list(text(), null, about),
        Kind::DnsServers => plain(Type::String, null, about).into(),
        Kind::Any => ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description((!about.is_empty()).then_some(about))
            .into(),
    }
}

fn of_form(form: Form, null: bool, about: &str) -> RefOr<Schema> {
    match form {
        Form::Text => plain(Type::String, null, about).into(),
        Form::Uuid => uuid(null, about).into(),
        Form::Choice(choices) => choice(choices, null, about).into(),
        Form::Integer => plain(Type::Integer, null, about).into(),
        Form::Boolean => plain(Type::Boolean, null, about).into(),
        Form::Time => plain(Type::String, null, about)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into(),
        Form::Strings => map(text(), null, about).into(),
        Form::Reasons => map(plain(Type::String, true, ""), null, about).into(),
        Form::Anything => plain(Type::Object, null, about)
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)))
            .into(),
        Form::Texts => list(text(), null, about),
        Form::ListOfStrings => list(map(text(), false, ""), null, about),
        Form::Links => list(link(), null, about),
        Form::Events => {
            let event = shown::<EventView>(views::operation::FOR_ADMINISTRATORS, Version::MAX);
            list(event, null, about)
        }
    }
}

fn link() -> ObjectBuilder {
    ObjectBuilder::new()
        .property(
            "href",
            text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uri))),
        )
        .property("rel", choice(&["self", "bookmark"], false, ""))
        .required("href")
        .required("rel")
}
