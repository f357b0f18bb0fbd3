//! Places of spans, between OpenTelemetry's words and ours.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use magnum_telemetry::trace::{Recorder, TraceContext};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// How long the last export may hold the process.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// Knows spans by the layer of `tracing_opentelemetry`.
pub(super) struct OtlpRecorder {
    provider: SdkTracerProvider,
    /// Exports run on it.
    _runtime: Arc<Runtime>,
}

impl OtlpRecorder {
    pub(super) fn new(provider: SdkTracerProvider, runtime: Arc<Runtime>) -> Self {
        Self {
            provider,
            _runtime: runtime,
        }
    }
}

impl Recorder for OtlpRecorder {
    fn begin(&self, span: &Span, received: Option<&TraceContext>) {
        let parent = match received {
            Some(received) => opentelemetry::Context::new().with_remote_span_context(span_context(received)),
            None => opentelemetry::Context::new(),
        };
        // A span that is not there has no parent.
        let _ = span.set_parent(parent);
    }

    fn place(&self, span: &Span) -> Option<TraceContext> {
        let context = span.context();
        let context = context.span().span_context().clone();
        let parent = format!(
            "00-{}-{}-{:02x}",
            context.trace_id(),
            context.span_id(),
            context.trace_flags()
        );
        TraceContext::parse(&parent, Some(&context.trace_state().header()))
    }

    fn name(&self, span: &Span, name: String) {
        span.context().span().update_name(name);
    }

    fn finish(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_EXPORT) {
            tracing::debug!(%error, "the last spans could not be exported");
        }
    }
}

fn span_context(context: &TraceContext) -> SpanContext {
    let parent = context.parent();
    let state = context.state().map(TraceState::from_str).transpose();
    SpanContext::new(
        TraceId::from_hex(&parent[3..35]).unwrap_or(TraceId::INVALID),
        SpanId::from_hex(&parent[36..52]).unwrap_or(SpanId::INVALID),
        TraceFlags::new(u8::from_str_radix(&parent[53..], 16).unwrap_or_default()),
        true,
        state.ok().flatten().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_ids_flags_and_state() {
        let place = TraceContext::parse(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            Some("a=1,b=2"),
        )
        .unwrap();
        let context = span_context(&place);
        assert!(context.is_valid() && context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_id().to_string(), place.trace_id());
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert_eq!(context.trace_state().header(), "a=1,b=2");
    }
}
