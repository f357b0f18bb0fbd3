//! Certificates, credentials, quotas, statistics, services, federations, versions and paths.

use super::Difference;
use super::Instead::{Accepted, Detail, Places, Refused};
use super::on;

pub const OTHERS: &[Difference] = &[
    on(
        "a path below a collection that has none",
        Refused(404, "Not Found"),
        &[
            "mservices/one/get",
            "mservices/x-methods/one",
            "mservices/x-methods/alice-one",
            "credentials/x-methods/list",
            "federations/x-list-params/12",
            "stats/x-params/09",
            "versions/x-methods/post-nope",
            "versions/x-methods/put-nope",
            "versions/x-methods/delete-nope",
            "versions/x-methods/patch-nope",
            "versions/x-methods/options-nope",
        ],
    ),
    on(
        "an unknown `ca_cert_type`",
        Refused(
            400,
            "Value should be one of: etcd, front-proxy, front_proxy, kubernetes",
        ),
        &[
            "certificates/get-types/nope",
            "certificates/sign-types/nope",
            "certificates/x-sign-19/post",
            "certificates/x-sign-21/post",
            "certificates/x-get-idents/type-upper",
            "certificates/x-get-idents/type-kubelet",
        ],
    ),
    on(
        "an administrator changes node groups, resizes, or has certificates and credentials of another project",
        Accepted(201),
        &["certificates/sign-rights/root"],
    ),
    on(
        "an administrator changes node groups, resizes, or has certificates and credentials of another project",
        Accepted(202),
        &["credentials/rights/root"],
    ),
    on(
        "`rotate_ca_certificate`",
        Places(&["/status", "/status_reason", "/faults", "/updated_at"]),
        &["certificates/rotate-unsupported/after"],
    ),
    on(
        "Refusal of `credential_rotate`",
        Detail("Rotating the credential of a cluster when status is \"CREATE_IN_PROGRESS\""),
        &["credentials/errors/in-progress"],
    ),
    on(
        "`next` of a list that was filtered",
        Places(&["/next"]),
        &[
            "quotas/list-paging/limit",
            "quotas/list-paging/marker",
            "quotas/x-list-params/07-all_tenants=yes_limit=2",
            "quotas/x-list-params/14-all_tenants=true_sort_dir=desc_limit=1",
            "quotas/x-list-params/20-all_tenants=true_limit=1_sort_key=hard_l",
        ],
    ),
    on(
        "a boolean that is none (`\"maybe\"`)",
        Refused(400, "attribute all_tenants. Value: 'maybe'."),
        &["quotas/list-paging/bad-bool"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "not a valid object"),
        &["quotas/patch-errors/list"],
    ),
    on(
        "an empty patch of a federation",
        Refused(400, "at least one operation"),
        &["federations/patch/empty"],
    ),
    on(
        "a method that a path does not take",
        Refused(405, "Method Not Allowed"),
        &[
            "certificates/x-rotate-errors/no-id",
            "federations/x-methods/patch",
            "federations/x-methods/delete",
            "federations/x-methods/post-one",
            "quotas/x-methods/patch",
            "quotas/x-methods/delete",
            "quotas/x-methods/post-one",
            "certificates/x-get-idents/post-one",
            "credentials/x-methods/get-1.11",
        ],
    ),
    on(
        "true or false where a number is wanted",
        Refused(400, "got '<class 'bool'>'"),
        &["quotas/x-create-08/post", "quotas/x-patch-06/patch"],
    ),
    on(
        "a whole number beyond 2147483647",
        Refused(400, "lower or equal to 2147483647"),
        &["quotas/x-create-10/post", "quotas/x-patch-05/patch"],
    ),
    on(
        "POST of a federation",
        Refused(501, "no release of Magnum implements them"),
        &[
            "federations/x-create-01/post",
            "federations/x-create-03/post",
            "federations/x-create-08/post",
            "federations/x-create-09/post",
            "federations/x-create-10/post",
            "federations/x-create-12/post",
            "federations/x-create-21/post",
            "federations/x-create-23/post",
            "federations/x-create-27/post",
            "federations/x-create-28/post",
            "federations/x-create-30/post",
            "federations/x-create-36/post",
            "federations/x-roles-create-alice/post",
            "federations/x-roles-create-carol/post",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid object"),
        &[
            "certificates/x-bodies/null",
            "certificates/x-bodies/list",
            "certificates/x-bodies/text",
            "quotas/x-patch-14/patch",
            "quotas/x-patch-15/patch",
            "quotas/x-bodies/null",
            "quotas/x-bodies/list",
            "quotas/x-bodies/text",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid list"),
        &["federations/x-patch-body-null/patch"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Missing argument"),
        &["federations/x-patch-body-empty/patch", "quotas/x-patch-13/patch"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(202),
        &[
            "certificates/x-roles-rotate-root/patch",
            "credentials/x-roles-root/patch",
        ],
    ),
    on(
        "`cluster_template` missing in an upgrade",
        Refused(400, "Mandatory field missing."),
        &[
            "certificates/x-sign-00/post",
            "certificates/x-sign-01/post",
            "certificates/x-sign-02/post",
            "certificates/x-sign-07/post",
            "certificates/x-sign-11/post",
        ],
    ),
    on(
        "an unknown word before a collection",
        Refused(404, "Not Found"),
        &[
            "credentials/x-methods/patch-none",
            "versions/x-paths/13",
            "versions/x-paths/18",
            "versions/x-paths/19",
            "versions/x-paths/20",
            "versions/x-paths/52",
        ],
    ),
    on(
        "Message of `InvalidCsr`",
        Detail("Received invalid csr: "),
        &["certificates/x-sign-04/post", "certificates/x-sign-05/post"],
    ),
    on(
        "`cluster_template` missing in an upgrade",
        Detail("Invalid input for field/attribute cluster_uuid."),
        &["certificates/x-sign-12/post"],
    ),
    on(
        "`cluster_template` missing in an upgrade",
        Refused(400, "Invalid input for field/attribute cluster_uuid."),
        &["certificates/x-sign-13/post"],
    ),
    on(
        "A CA that a cluster does not have",
        Detail("has no kubernetes CA"),
        &[
            "certificates/x-sign-15/post",
            "certificates/x-get-idents/in-progress",
            "certificates/x-get-idents/failed",
            "certificates/x-no-cert/get",
            "certificates/x-no-cert/sign",
        ],
    ),
    on(
        "an unknown `ca_cert_type`",
        Detail("Value should be one of: etcd, front-proxy, front_proxy, kubernetes"),
        &["certificates/x-sign-18/post"],
    ),
    on(
        "`ca_cert_type: null`",
        Places(&["/ca_cert_type"]),
        &["certificates/x-sign-20/post"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(200),
        &["certificates/x-roles-root/get"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Refused(409, "Multiple clusters exist"),
        &["certificates/x-roles-root/get-name"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(201),
        &["certificates/x-roles-root/sign"],
    ),
    on(
        "a read-only attribute with a value of the wrong type",
        Detail("Cannot set read only field."),
        &["quotas/x-create-25/post"],
    ),
    on(
        "a boolean that is none",
        Refused(400, "unable to convert to boolean."),
        &["quotas/x-list-params/06-all_tenants="],
    ),
    on(
        "Refusal of `credential_rotate`",
        Detail("Rotating the credential of a cluster when status is"),
        &[
            "credentials/x-ident-failed/patch",
            "credentials/x-ident-deleting/patch",
            "credentials/x-state-create_in_progress/patch",
            "credentials/x-state-create_failed/patch",
            "credentials/x-state-delete_in_progress/patch",
            "credentials/x-state-delete_failed/patch",
        ],
    ),
    on(
        "a path below a collection that has none",
        Refused(404, "Federation FED could not be found."),
        &["federations/x-list-params/13"],
    ),
    on(
        "a quota for no project",
        Refused(400, "Must provide a valid project ID."),
        &[
            "quotas/x-create-00/post",
            "quotas/x-create-01/post",
            "quotas/x-create-18/post",
        ],
    ),
    on(
        "null for `hard_limit`",
        Refused(400, "hard_limit. Value: 'None'"),
        &["quotas/x-create-06/post", "quotas/x-patch-03/patch"],
    ),
    on("null for `role`", Accepted(201), &["quotas/x-create-13/post"]),
    on(
        "`id` in a POST or PATCH of a quota",
        Accepted(201),
        &["quotas/x-create-24/post"],
    ),
    on(
        "true or false where a number is wanted",
        Places(&["/quotas/0/hard_limit", "/quotas/0/updated_at"]),
        &["quotas/x-patch-06/after"],
    ),
    on(
        "`id` in a POST or PATCH of a quota",
        Accepted(202),
        &["quotas/x-patch-12/patch"],
    ),
    on(
        "`id` in a POST or PATCH of a quota",
        Places(&["/quotas/0/hard_limit", "/quotas/0/updated_at"]),
        &["quotas/x-patch-12/after"],
    ),
    on(
        "a stored `hard_limit` below 0",
        Accepted(200),
        &["quotas/x-odd-row/negative"],
    ),
    on(
        "highest microversion",
        Accepted(200),
        &[
            "versions/x-header-04/clusters",
            "versions/x-header-04/v1",
            "versions/x-header-05/clusters",
            "versions/x-header-05/v1",
        ],
    ),
    on(
        "highest microversion",
        Places(&["header openstack-api-version"]),
        &[
            "versions/x-header-32/clusters",
            "versions/x-header-32/v1",
            "versions/x-header-33/clusters",
            "versions/x-header-33/v1",
            "versions/x-header-37/clusters",
            "versions/x-header-37/v1",
        ],
    ),
    on(
        "406 for a version out of range, at a path",
        Refused(404, "Not Found"),
        &["versions/x-header-where/not-found"],
    ),
    on(
        "an escaped slash",
        Refused(404, "Not Found"),
        &["versions/x-paths/28", "versions/x-paths/29"],
    ),
    on("HEAD of `/`", Accepted(200), &["versions/x-methods/head-top"]),
    on(
        "OPTIONS without `[cors] allowed_origin`",
        Refused(405, "Method Not Allowed"),
        &["versions/x-methods/options-top", "versions/x-methods/options-v1"],
    ),
    on(
        "a body of a GET",
        Places(&["/clusters", "/next"]),
        &["versions/x-get-content-type/with-body"],
    ),
];
