//! What a conductor answers: certificates, credentials, upgrades.

use super::{OF_ROUTE, OTHER_PROJECT, Rule, of_administrator, rule, when};

const MISSING: &str =
    "`cluster_template` missing in an upgrade, `cluster_uuid` or `csr` in a certificate request";
const NO_CA: &str = "a certificate of a cluster that has no CA";

pub const RULES: &[Rule] = &[
    when(
        rule(OTHER_PROJECT, "* /v1/certificates*", "*", "4*", "*"),
        of_administrator,
    ),
    when(
        rule(OTHER_PROJECT, "* /v1/credentials*", "*", "4*", "*"),
        of_administrator,
    ),
    when(
        rule(
            OTHER_PROJECT,
            "* /v1/c*",
            "*",
            "*",
            "409 Multiple clusters exist with same name*",
        ),
        of_administrator,
    ),
    rule(
        NO_CA,
        "* /v1/certificates*",
        "error",
        "404 A key pair None could not be found.",
        "404 Cluster * has no * CA: *",
    ),
    rule(
        MISSING,
        "POST /v1/c*",
        "status",
        "*",
        "400 *Mandatory field missing.",
    ),
    rule(
        MISSING,
        "POST /v1/c*",
        "error",
        "400 *Unset*",
        "400 *Mandatory field missing.",
    ),
    rule(
        "Message of `InvalidCsr`",
        "POST /v1/certificates",
        "error",
        "400 Received invalid csr *",
        "400 Received invalid csr: *",
    ),
    rule(
        "a value of the wrong type in a patch or for `dns_nameserver`, null for `image_id`",
        "POST /v1/certificates",
        "error",
        "400 *",
        "400 *attribute cluster_uuid. *Value should be string",
    ),
    rule(
        MISSING,
        "POST /v1/c*",
        "status",
        "404 *Unset*",
        "400 *attribute cluster_uuid. *",
    ),
    rule(
        "Message of `InvalidCsr`",
        "POST /v1/certificates",
        "status",
        "500 * codec can't encode *",
        "400 Received invalid csr: *",
    ),
    rule(
        "`pem` in a POST of a certificate",
        "POST /v1/certificates",
        "*",
        "400 *attribute pem. *",
        "*",
    ),
    rule(
        "an exception that a conductor raises and that is not Magnum's",
        "* /v1/certificates*",
        "error",
        "500 *",
        "500 The cluster's certificate cannot be read from its store; *",
    ),
    rule(
        "an unknown `ca_cert_type`",
        "* /v1/certificates*",
        "error",
        "400 *attribute ca_cert_type. *",
        "400 *",
    ),
    // It is no mistake there: another one is told, or none.
    rule(
        "an unknown `ca_cert_type`",
        "* /v1/certificates*",
        "*",
        "*",
        "400 *attribute ca_cert_type. *",
    ),
    rule(
        "`ca_cert_type: null` in a POST of a certificate",
        "POST /v1/certificates",
        "/ca_cert_type",
        "null",
        "",
    ),
    rule(
        "Refusal of `credential_rotate`",
        "PATCH /v1/credentials/{cluster}",
        "error",
        "400 magnum.conductor.handlers.credential_conductor when *",
        "400 Rotating the credential of a cluster when *",
    ),
    when(
        rule(
            OF_ROUTE,
            "GET /v1/certificates/{cluster}*",
            "status",
            "*",
            "400 Unknown argument: \"ca_cert_type\"",
        ),
        |request| request.query.iter().any(|(name, _)| name == "ca_cert_type"),
    ),
    rule(
        "an upgrade without `max_batch_size`, or with null",
        "POST /v1/clusters/{ident}/actions/upgrade",
        "status",
        "500 *",
        "*",
    ),
];
