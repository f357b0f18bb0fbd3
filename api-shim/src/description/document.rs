//! The document of one microversion, put together.

use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    ArrayBuilder, ComponentsBuilder, Object, ObjectBuilder, Ref, Schema, SchemaType, Type,
};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Required, Response, ResponseBuilder};

use crate::microversion::Version;
use crate::openapi::schemas::{closed, of_argument};
use crate::openapi::{Model, glossary};
use crate::routes::{Body, ROUTES, ResponseKind, Route};
use crate::validation::patch::{Rules, VERBS};

const JSON: &str = "application/json";
const TOKEN: &str = "token";
const FAULT: &str = "Fault";
const ACCEPTED: &str = "Accepted";

/// The document of a version.
pub fn document(version: Version) -> OpenApi {
    let mut components = ComponentsBuilder::new()
        .schema(FAULT, fault())
        .schema(ACCEPTED, accepted())
        .security_scheme(
            TOKEN,
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
                "X-Auth-Token",
                "A token of Keystone's.",
            ))),
        );
    let mut paths = PathsBuilder::new();
    for route in ROUTES.iter().filter(|route| route.is_in(version)) {
        for model in models(route) {
            components = components.schema(model.name, (model.schema)(version));
        }
        paths = paths.path(
            route.documented_path(),
            PathItem::new(method(route), operation(route, version)),
        );
    }
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Container Infrastructure Management API")
                .version(version.to_string())
                .description(Some(format!(
                    "OpenStack Magnum's API in microversion {version}: what requests with the header \
                     `OpenStack-API-Version: container-infra {version}` may carry and are answered."
                ))),
        )
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new(TOKEN, Vec::<String>::new())]))
        .build()
}

/// The shapes that a route refers to.
fn models(route: &Route) -> impl Iterator<Item = Model> {
    let answer = match route.answer {
        ResponseKind::One(_, model) | ResponseKind::Page(_, model) | ResponseKind::All(_, model) => {
            Some(model)
        }
        _ => None,
    };
    let body = match route.body {
        Body::Object(model, _) => Some(model),
        _ => None,
    };
    answer.into_iter().chain(body)
}

fn method(route: &Route) -> HttpMethod {
    match route.method {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(route: &Route, version: Version) -> OperationBuilder {
    let rules: Vec<&str> = route.rules().map(crate::policy::Rule::name).collect();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.name))
        .summary(Some(route.about))
        .extensions(Some(
            ExtensionsBuilder::new()
                .add("x-openstack-min-microversion", route.since.to_string())
                .add("x-openstack-policies", rules)
                .build(),
        ))
        .parameter(
            ParameterBuilder::new()
                .name("OpenStack-API-Version")
                .parameter_in(ParameterIn::Header)
                .description(Some("The microversion of this document."))
                .schema(Some(
                    ObjectBuilder::new()
                        .schema_type(Type::String)
                        .enum_values(Some([format!("container-infra {version}")])),
                ))
                .required(if version == Version::MIN {
                    Required::False
                } else {
                    Required::True
                }),
        );
    for name in route.parameters() {
        operation = operation.parameter(
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some(glossary::about(name)))
                .schema(Some(
                    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)),
                )),
        );
    }
    for argument in route.query.iter().filter(|argument| version >= argument.since) {
        operation = operation.parameter(
            ParameterBuilder::new()
                .name(argument.name)
                .parameter_in(ParameterIn::Query)
                .description(Some(glossary::about(argument.name)))
                .schema(Some(of_argument(argument))),
        );
    }
    operation = match route.body {
        Body::None => operation,
        Body::Object(model, _) => operation.request_body(Some(body(reference(model.name)))),
        Body::Patch(rules) => operation.request_body(Some(body(patch(rules)))),
        Body::Free => operation.request_body(Some(free_body())),
    };
    if let Some(status) = route.answer.status() {
        operation = operation.response(status.to_string(), success(route.answer));
    }
    for status in faults(route) {
        operation = operation.response(status.to_string(), failure(status));
    }
    operation
}

/// The statuses of errors that a route can have.
pub(super) fn faults(route: &Route) -> Vec<u16> {
    // The wrong header, no token, a version that does not exist, and what it needs being away.
    let mut statuses = vec![400, 401, 406, 500, 503];
    if route.rules().next().is_some() {
        statuses.push(403);
    }
    if route.parameters().next().is_some() || matches!(route.answer, ResponseKind::Page(..)) {
        statuses.push(404);
    }
    if route.parameters().next().is_some() {
        statuses.push(409);
    }
    if route.looks_at_a_body() {
        statuses.extend([413, 415]);
    }
    statuses.extend(route.faults);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn reference(name: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(name))
}

fn body(schema: RefOr<Schema>) -> RequestBody {
    RequestBodyBuilder::new()
        .content(JSON, ContentBuilder::new().schema(Some(schema)).build())
        .required(Some(Required::True))
        .build()
}

fn free_body() -> RequestBody {
    let any = ObjectBuilder::new().description(Some("What the driver documents."));
    RequestBodyBuilder::new()
        .content(JSON, ContentBuilder::new().schema(Some(any)).build())
        .required(Some(Required::False))
        .build()
}

fn success(answer: ResponseKind) -> Response {
    let (about, schema) = match answer {
        ResponseKind::Empty(_) | ResponseKind::Never => return Response::new("Done."),
        ResponseKind::Uuid(_) => ("Accepted.", reference(ACCEPTED)),
        ResponseKind::One(_, model) => ("The resource.", reference(model.name)),
        ResponseKind::Page(key, model) => ("A page.", page(key, model, true).into()),
        ResponseKind::All(key, model) => ("All of them.", page(key, model, false).into()),
        ResponseKind::Document(about) => (about, ObjectBuilder::new().into()),
    };
    ResponseBuilder::new()
        .description(about)
        .content(JSON, ContentBuilder::new().schema(Some(schema)).build())
        .build()
}

fn text(about: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(about))
}

fn page(key: &str, model: Model, has_next: bool) -> Object {
    let mut object = ObjectBuilder::new()
        .additional_properties(closed())
        .property(key, ArrayBuilder::new().items(reference(model.name)))
        .required(key);
    if has_next {
        object = object.property(
            "next",
            text("URL of the next page; absent on a page that is not full."),
        );
    }
    object.build()
}

fn accepted() -> Object {
    ObjectBuilder::new()
        .additional_properties(closed())
        .property("uuid", text(glossary::about("uuid")))
        .required("uuid")
        .build()
}

fn failure(status: u16) -> Response {
    let about = match status {
        400 => "The request is wrong; the detail names what.",
        401 => "No token, or one that is not valid.",
        403 => "Not allowed, or the quota is used up.",
        404 => "There is no such thing, or not for this caller.",
        405 => "The route has other methods; the header Allow names them.",
        406 => "This version does not exist, or does not have this route; or JSON is not acceptable.",
        409 => "The state of the resource does not allow it, or its name is not unique.",
        413 => "The body is too large.",
        415 => "The body is no JSON.",
        422 => "The driver understands the request and cannot do it.",
        501 => "Not implemented.",
        503 => "What is needed for an answer is away. Try again.",
        504 => "The driver has not replied in time.",
        _ => "An error in the service; its log tells more under the request's id.",
    };
    ResponseBuilder::new()
        .description(about)
        .content(JSON, ContentBuilder::new().schema(Some(reference(FAULT))).build())
        .build()
}

/// Both shapes of errors: the API's own, and the one of what stands before it and checks tokens.
fn fault() -> Object {
    let one = ObjectBuilder::new()
        .property(
            "request_id",
            text("Id of the request, as in the header x-openstack-request-id."),
        )
        .property("code", text("client, server, or what is wrong with the version."))
        .property("status", ObjectBuilder::new().schema_type(Type::Integer))
        .property("title", text("The detail up to its first dot."))
        .property("detail", text("What is wrong and what to do."))
        .property("links", ArrayBuilder::new().items(ObjectBuilder::new()))
        .required("title");
    let before = ObjectBuilder::new()
        .property("code", ObjectBuilder::new().schema_type(Type::Integer))
        .property("title", text("The status in words."))
        .property("message", text("What is wrong."));
    ObjectBuilder::new()
        .property("errors", ArrayBuilder::new().items(one))
        .property("error", before)
        .build()
}

fn patch(rules: &Rules) -> RefOr<Schema> {
    let changed: Vec<&str> = rules.refused().collect();
    let value = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .description(Some("The new value; needed for add and replace."));
    let operation = ObjectBuilder::new()
        .additional_properties(closed())
        .property(
            "op",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(VERBS.iter().copied())),
        )
        .property(
            "path",
            text(&format!(
                "A JSON pointer. These attributes cannot be changed: {}.",
                changed.join(", ")
            )),
        )
        .property("value", value)
        .required("op")
        .required("path");
    ArrayBuilder::new().items(operation).into()
}
