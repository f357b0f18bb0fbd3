//! The section of the library before the API: `[oslo_middleware]`.

use crate::config::schema::section;

section! {
    /// Request handling before the API.
    OsloMiddlewareSection "oslo_middleware" {
        /// Whether forwarding headers of a proxy decide the scheme and host of links.
        enable_proxy_headers_parsing: bool as Bool = false;
        /// Largest request body, in bytes.
        max_request_body_size: usize as Int<1, 1_073_741_824> = 114_688,
            was [("DEFAULT", "max_request_body_size"), ("DEFAULT", "osapi_max_request_body_size")];
    }
}
