//! W3C trace context: which trace the work at hand belongs to.
//!
//! A trace begins at the HTTP request, or is taken from its `traceparent` and `tracestate`; it goes in headers of the
//! AMQP message, in the journal and in the driver's environment. It goes there whether or not anything is exported:
//! without export this program adds no spans of its own, and hands on the ids that it was given.

mod context;

pub use context::TraceContext;

use tracing::Span;
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan as _;

use super::field;

/// Lets `span` continue the trace that was received, or begin one. To be called before the span is entered.
///
/// Returns what to hand on from inside of the span. Its field [`field::TRACE`], if it has one, gets the trace's id.
pub fn begin(span: &Span, received: Option<TraceContext>) -> TraceContext {
    let context = received.unwrap_or_else(TraceContext::random);
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
    Span::current()
        .with_subscriber(|(id, subscriber)| {
            let span = subscriber.downcast_ref::<Registry>()?.span(id)?;
            span.scope()
                .find_map(|span| span.extensions().get::<TraceContext>().cloned())
        })
        .flatten()
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
