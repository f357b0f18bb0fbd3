//! The names of log and span fields: the only place where one is written; use as
//! `info!({ field::CLUSTER } = %uuid, "…")`.
//!
//! Names with a dot are for searching across programs. A field that explains only its own line has a plain name there
//! (`error`, `reason`).

/// The cluster's uuid.
pub const CLUSTER: &str = "magnum.cluster.uuid";
/// The node group's uuid.
pub const NODE_GROUP: &str = "magnum.node_group.uuid";
/// The operation's uuid.
pub const OPERATION: &str = "magnum.operation.id";
/// The operation's kind.
pub const OPERATION_KIND: &str = "magnum.operation.kind";
/// The operation's state.
pub const OPERATION_STATE: &str = "magnum.operation.state";
/// How often the operation's current step has failed, or an earlier one.
pub const FAILURES: &str = "magnum.operation.failures";
/// The step of an operation.
pub const STEP: &str = "magnum.operation.step";
/// The attempt's number, from 1.
pub const ATTEMPT: &str = "magnum.operation.attempt";
/// The conductor's id.
pub const CONDUCTOR: &str = "magnum.conductor";
/// The driver's name.
pub const DRIVER: &str = "magnum.driver.name";
/// The request's id, as the client got it.
pub const REQUEST: &str = "request.id";
/// The id that another service has given the undertaking that the request belongs to.
pub const GLOBAL_REQUEST: &str = "request.global_id";
/// The project of the client.
pub const PROJECT: &str = "project.id";
/// The user.
pub const USER: &str = "user.id";
/// The method of an RPC.
pub const RPC_METHOD: &str = "rpc.method";
/// The id that connects a call with its reply.
pub const CALL: &str = "rpc.msg_id";
/// The unique id of a message.
pub const MESSAGE: &str = "messaging.message.id";
/// A queue.
pub const QUEUE: &str = "messaging.queue";
/// The queue of messages that cannot be handled.
pub const DEAD_LETTER_QUEUE: &str = "messaging.dead_letter_queue";
/// A queue or an exchange.
pub const QUEUE_OR_EXCHANGE: &str = "messaging.name";
/// The broker's host.
pub const BROKER: &str = "messaging.host";
/// The HTTP method.
pub const HTTP_METHOD: &str = "http.method";
/// The HTTP path, without its query.
pub const HTTP_PATH: &str = "http.path";
/// The route's template, such as `/v1/clusters/{ident}`.
pub const HTTP_ROUTE: &str = "http.route";
/// The bytes of a response's body.
pub const HTTP_BYTES: &str = "http.response.bytes";
/// The HTTP status.
pub const HTTP_STATUS: &str = "http.status";
/// The address of a client.
pub const CLIENT: &str = "client.address";
/// Where a panic began: file, line and column.
pub const PANIC_PLACE: &str = "panic.place";
/// The id of the trace, as W3C's trace context has it.
pub const TRACE: &str = "trace_id";

/// The kind of a span in exported traces: `server`, `producer`, `consumer`, `client`. Not in log lines.
pub const SPAN_KIND: &str = "otel.kind";
/// `ERROR` where a span failed. Not in log lines.
pub const SPAN_STATUS: &str = "otel.status_code";

/// Whether a field speaks to the exporter of traces only.
pub(super) fn is_for_exporter(name: &str) -> bool {
    matches!(name, SPAN_KIND | SPAN_STATUS)
}
