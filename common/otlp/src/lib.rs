//! Export of traces to an OpenTelemetry collector: OTLP over HTTP, as protobuf, by `[otlp]` of `magnum.conf`.
//!
//! Guarantees: recording never waits for the collector; spans that it does not take in time are dropped, at most 2048
//! wait; that it is away is logged once, and once more when it is back. Only this project's spans are exported: no
//! events, so nothing of log lines. Exports run on a thread of their own, so that the last ones get out after the
//! program's runtime has ended.
//!
//! TLS is rustls with AWS-LC, as everywhere.

mod http;
mod recorder;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use magnum_config::OtlpSection;
use magnum_telemetry::trace::Export;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing_subscriber::Layer as _;

use http::Collector;
use recorder::OtlpRecorder;

/// Why nothing can be exported. Names the option.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// A header is not `name=value`. The value may be a secret, so it is not quoted.
    #[error("[otlp] headers: part {0} is not name=value")]
    Header(usize),
    /// The file of CAs cannot be used.
    #[error("[otlp] cafile: {}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The thread cannot be started, or the exporter does not take the options.
    #[error("[otlp]: {0}")]
    Start(String),
}

/// What exports this process's spans; none without `endpoint`.
///
/// # Errors
/// An option cannot be used. A collector that is away is none.
pub fn export(options: &OtlpSection, program: &str) -> Result<Option<Export>, OtlpError> {
    let Some(endpoint) = &options.endpoint else {
        return Ok(None);
    };
    let start = |error: &dyn std::fmt::Display| OtlpError::Start(error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("otlp")
        .enable_all()
        .build()
        .map_err(|error| start(&error))?;
    let collector = Collector::new(options, runtime.handle().clone())?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(collector)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(traces_of(endpoint))
        .with_timeout(options.timeout)
        .with_headers(headers(options)?)
        .build()
        .map_err(|error| start(&error))?;
    let service = options.service_name.clone().unwrap_or_else(|| program.to_owned());
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(
            options.sampling_ratio,
        ))))
        .with_resource(
            Resource::builder_empty()
                .with_service_name(service)
                .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                .build(),
        )
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("magnum"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .boxed();
    Ok(Some(Export {
        layer,
        recorder: Box::new(OtlpRecorder::new(provider, Arc::new(runtime))),
    }))
}

/// The address for traces below a collector's.
fn traces_of(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    if endpoint.ends_with("/v1/traces") {
        endpoint.to_owned()
    } else {
        format!("{endpoint}/v1/traces")
    }
}

fn headers(options: &OtlpSection) -> Result<HashMap<String, String>, OtlpError> {
    let text = options.headers.as_ref().map_or("", |headers| headers.expose());
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .enumerate()
        .map(|(at, part)| {
            let (name, value) = part.split_once('=').ok_or(OtlpError::Header(at + 1))?;
            let (name, value) = (name.trim(), value.trim());
            let is_usable = hyper::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && hyper::header::HeaderValue::from_str(value).is_ok();
            is_usable
                .then(|| (name.to_owned(), value.to_owned()))
                .ok_or(OtlpError::Header(at + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use magnum_common::secret::Secret;

    use super::*;

    #[test]
    fn the_path_for_traces_is_appended_once() {
        for endpoint in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(traces_of(endpoint), "http://c:4318/v1/traces");
        }
        assert_eq!(traces_of("https://c/otlp"), "https://c/otlp/v1/traces");
    }

    #[test]
    fn headers_are_read_and_a_wrong_one_is_not_quoted() {
        let options = |text: &str| OtlpSection {
            headers: Some(Secret::new(text)),
            ..OtlpSection::default()
        };
        let read = headers(&options("authorization=Bearer a=b, x-tenant = 1,")).unwrap();
        assert_eq!(read["authorization"], "Bearer a=b");
        assert_eq!(read["x-tenant"], "1");
        assert!(headers(&OtlpSection::default()).unwrap().is_empty());
        for wrong in ["a=1,hunter2", "a=1,h\u{e4}nter2=1", "a=1,b=hun\nter2"] {
            let error = headers(&options(wrong)).unwrap_err().to_string();
            assert_eq!(error, "[otlp] headers: part 2 is not name=value", "{wrong}");
        }
    }

    #[test]
    fn without_an_endpoint_nothing_is_exported() {
        assert!(export(&OtlpSection::default(), "magnum-api").unwrap().is_none());
    }
}
