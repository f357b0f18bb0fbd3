//! W3C trace context: which trace the work at hand belongs to.
//!
//! A trace begins at the HTTP request, or is taken from its `traceparent` and `tracestate`; it goes in headers of the
//! AMQP message, in the journal and in the driver's environment. It goes there whether or not anything is exported:
//! without export this program adds no spans of its own, and hands on the ids that it was given. With it ([`Export`])
//! each span is the parent of what it hands on to.

mod context;

pub use context::TraceContext;

use std::sync::OnceLock;

use tracing::Span;
use tracing_subscriber::registry::LookupSpan as _;
use tracing_subscriber::{Layer, Registry};

use super::field;

/// Lets `span` continue the trace that was received, or begin one. To be called before the span is entered.
///
/// Returns what to hand on from inside of the span. Its field [`field::TRACE`], if it has one, gets the trace's id.
pub fn begin(span: &Span, received: Option<TraceContext>) -> TraceContext {
    let recorded = RECORDER.get().and_then(|recorder| {
        recorder.begin(span, received.as_ref());
        recorder.place(span)
    });
    let context = recorded.or(received).unwrap_or_else(TraceContext::random);
    span.record(field::TRACE, context.trace_id());
    span.with_subscriber(|(id, subscriber)| {
        if let Some(span) = subscriber
            .downcast_ref::<Registry>()
            .and_then(|spans| spans.span(id))
        {
            span.extensions_mut().replace(context.clone());
        }
    });
    context
}

/// The trace of the current span, to hand on; none outside of all traces.
pub fn current() -> Option<TraceContext> {
    let span = Span::current();
    if let Some(recorded) = RECORDER.get().and_then(|recorder| recorder.place(&span)) {
        return Some(recorded);
    }
    span.with_subscriber(|(id, subscriber)| {
        let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
        span.scope()
            .find_map(|span| span.extensions().get::<TraceContext>().cloned())
    })
    .flatten()
}

/// Names the span in exported traces, where its name depends on what happened in it.
pub fn name(span: &Span, name: impl FnOnce() -> String) {
    if let Some(recorder) = RECORDER.get() {
        recorder.name(span, name());
    }
}

/// Records spans to export them. There is one in a process, or none.
pub trait Recorder: Send + Sync {
    /// Lets `span`, which was not entered yet, continue what was received, or begin a trace.
    fn begin(&self, span: &Span, received: Option<&TraceContext>);

    /// The span's own place in its trace; none for a span that is not there.
    fn place(&self, span: &Span) -> Option<TraceContext>;

    /// Gives a span that was begun another name.
    fn name(&self, span: &Span, name: String);

    /// Exports what is recorded and not exported yet, within few seconds. Blocks.
    fn finish(&self);
}

static RECORDER: OnceLock<Box<dyn Recorder>> = OnceLock::new();

/// What exports this process's spans: given to [`init`](crate::init).
pub struct Export {
    /// Sees the spans.
    pub layer: Box<dyn Layer<Registry> + Send + Sync>,
    /// Knows their places.
    pub recorder: Box<dyn Recorder>,
}

/// Spans are recorded from here on.
pub(super) fn record_with(recorder: Box<dyn Recorder>) {
    // The second subscriber of a process was refused before.
    let _ = RECORDER.set(recorder);
}

/// At the end of the process: exports the last spans, if spans are exported. Blocks for at most a few seconds.
pub fn finish() {
    if let Some(recorder) = RECORDER.get() {
        recorder.finish();
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn spans_inside_of_a_trace_belong_to_it() {
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(crate::spans::SpanFields),
            || {
                assert_eq!(current(), None);
                let outer = tracing::info_span!("outer");
                let trace = begin(&outer, None);
                outer.in_scope(|| {
                    assert_eq!(current().as_ref(), Some(&trace));
                    tracing::info_span!("inner").in_scope(|| assert_eq!(current().as_ref(), Some(&trace)));
                });
                assert_eq!(current(), None);
            },
        );
    }
}
