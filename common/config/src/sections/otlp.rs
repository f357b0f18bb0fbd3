//! `[otlp]`: where spans go.

use std::path::PathBuf;
use std::time::Duration;

use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// Export of traces to an OpenTelemetry collector, by OTLP over HTTP. For programs that are built with the feature
    /// `otlp`.
    OtlpSection "otlp" {
        /// URL of the collector, such as http://127.0.0.1:4318; /v1/traces is appended. Unset: nothing is exported.
        endpoint: Option<String> as Opt<HttpUrl> = None, ours true;
        /// Headers of every export, such as credentials for the collector: name=value, separated by commas.
        headers: Option<Secret> as Opt<Password> = None, ours true;
        /// Share of the traces begun here that is recorded, 0 to 1. A trace begun by another service follows that
        /// service's decision.
        sampling_ratio: f64 as Float<0, 1> = 1.0, ours true;
        /// Service name in traces. Unset: the program's name.
        service_name: Option<String> as Opt<Text> = None, ours true;
        /// Time limit of an export, in seconds.
        timeout: Duration as SecondsMinMillis<100> = Duration::from_secs(10), ours true;
        /// File with the CAs of an https collector. Unset: the system's CAs.
        cafile: Option<PathBuf> as Opt<Path> = None, ours true;
    }
}
