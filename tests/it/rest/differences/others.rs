//! The same for the odd requests (`x-…`). Node groups, certificates, credentials, quotas, versions and paths.

use super::Difference;
use super::Instead::{Accepted, Detail, Places, Refused};
use super::on;

pub const OTHERS: &[Difference] = &[
    on(
        "JSON of the wrong kind",
        Refused(400, "should be a whole number"),
        &[
            "nodegroups/x-create-node_count-list-empty/post",
            "nodegroups/x-create-min_node_count-list-empty/post",
            "nodegroups/x-create-max_node_count-list-empty/post",
            "nodegroups/x-create-docker_volume_size-list-empty/post",
        ],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(202),
        &[
            "certificates/x-roles-rotate-root/patch",
            "credentials/x-roles-root/patch",
            "nodegroups/x-roles-patch-root/patch",
            "nodegroups/x-roles-create-root/post",
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
        "a path below a collection that has none",
        Refused(404, "Not Found"),
        &[
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
        "an unknown `ca_cert_type`",
        Refused(
            400,
            "Value should be one of: etcd, front-proxy, front_proxy, kubernetes",
        ),
        &[
            "certificates/x-sign-19/post",
            "certificates/x-sign-21/post",
            "certificates/x-get-idents/type-upper",
            "certificates/x-get-idents/type-kubelet",
        ],
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
        "a method that a path does not take",
        Refused(405, "Method Not Allowed"),
        &[
            "certificates/x-get-idents/post-one",
            "credentials/x-methods/get-1.11",
        ],
    ),
    on(
        "the choices in an error text",
        Detail("Value should be one of"),
        &["nodegroups/x-create-status-list-empty/post"],
    ),
    on(
        "null for `labels`, or for a label's value",
        Refused(400, "got '<class 'NoneType'>'"),
        &[
            "nodegroups/x-create-labels-3/post",
            "nodegroups/x-create-labels-merge-3/post",
            "nodegroups/x-create-node-labels-04/post",
            "nodegroups/x-patch-node-labels-2/patch",
        ],
    ),
    on(
        "a read-only attribute with a value of the wrong type",
        Detail("Cannot set read only field."),
        &[
            "nodegroups/x-create-created-given/post",
            "quotas/x-create-25/post",
        ],
    ),
    on(
        "a number as text in a patch",
        Detail("Wrong type. Expected '<class 'int'>', got '<class 'str'>'"),
        &[
            "nodegroups/x-patch-min_node_count-x/patch",
            "nodegroups/x-patch-min_node_count-text-2/patch",
            "nodegroups/x-patch-min_node_count-empty/patch",
            "nodegroups/x-patch-max_node_count-x/patch",
            "nodegroups/x-patch-max_node_count-text-2/patch",
            "nodegroups/x-patch-max_node_count-empty/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("the value ends too early"),
        &[
            "nodegroups/x-patch-node-labels-4/patch",
            "nodegroups/x-patch-node-taints-6/patch",
        ],
    ),
    on(
        "a dictionary as patch value",
        Detail("Wrong type. Expected"),
        &[
            "nodegroups/x-patch-node-labels-5/patch",
            "nodegroups/x-patch-node-taints-4/patch",
            "nodegroups/x-patch-node-taints-7/patch",
            "nodegroups/x-patch-node-taints-8/patch",
        ],
    ),
    on(
        "a boolean that is none",
        Refused(400, "unable to convert to boolean."),
        &["quotas/x-list-params/06-all_tenants="],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("is neither a value nor quoted"),
        &[
            "nodegroups/x-patch-node-labels-3/patch",
            "nodegroups/x-patch-node-taints-5/patch",
        ],
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
        "a node group without a `name`",
        Refused(400, "A value is needed."),
        &[
            "nodegroups/x-create-name-null/post",
            "nodegroups/x-create-node_count-null/post",
            "nodegroups/x-create-min_node_count-null/post",
        ],
    ),
    on(
        "null for `role`",
        Accepted(202),
        &["nodegroups/x-create-role-null/post"],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST",
        Places(&["/status"]),
        &["nodegroups/x-create-status-null/post"],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST",
        Places(&["/status_reason"]),
        &[
            "nodegroups/x-create-status_reason-null/post",
            "nodegroups/x-create-status_reason-empty/post",
            "nodegroups/x-create-status_reason-long-256/post",
        ],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST",
        Places(&["/version"]),
        &[
            "nodegroups/x-create-version-null/post",
            "nodegroups/x-create-version-empty/post",
            "nodegroups/x-create-version-long-256/post",
        ],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST",
        Places(&["/is_default"]),
        &[
            "nodegroups/x-create-is_default-true/post",
            "nodegroups/x-create-is_default-1/post",
            "nodegroups/x-create-is_default-null/post",
        ],
    ),
    on(
        "null for `labels`, or for a label",
        Refused(409, "node_taints[0].value must be a text"),
        &["nodegroups/x-create-node-taints-10/post"],
    ),
    on(
        "an unknown image of a node group",
        Refused(400, "lavor"),
        &["nodegroups/x-create-flavor-unknown/post"],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST",
        Places(&["/id"]),
        &["nodegroups/x-create-id-given/post"],
    ),
    on(
        "root disk of a node group",
        Refused(400, "boot_volume_size must be an integer"),
        &[
            "nodegroups/x-create-boot-label-bad/post",
            "nodegroups/x-create-boot-own-label/post",
        ],
    ),
    on(
        "`node_labels`, `node_taints` after their removal",
        Places(&["/node_labels"]),
        &["nodegroups/x-patch-node-labels-remove/patch"],
    ),
    on(
        "a dictionary as patch value",
        Accepted(202),
        &["nodegroups/x-patch-node-labels-object/patch"],
    ),
    on(
        "a list as patch value of `node_taints`",
        Accepted(202),
        &["nodegroups/x-patch-node-taints-list/patch"],
    ),
    on(
        "a dictionary as patch value",
        Refused(400, "Wrong type. Expected"),
        &["nodegroups/x-patch-node-taints-add/patch"],
    ),
    on(
        "`node_labels`, `node_taints` of a node group",
        Refused(
            400,
            "Couldn't apply patch '[{'path': '/node_labels', 'op': 'repla",
        ),
        &["nodegroups/x-patch-version-labels-1.13/patch"],
    ),
    on(
        "a resize, or a change of node groups",
        Refused(409, "Updating a nodegroup when its status is"),
        &[
            "nodegroups/x-patch-ng-state-create_in_progress/patch",
            "nodegroups/x-patch-ng-state-delete_in_progress/patch",
            "nodegroups/x-patch-ng-state-create_failed/patch",
        ],
    ),
    on(
        "bounds of node groups in lists",
        Places(&["/nodegroups/1/max_node_count", "/nodegroups/1/min_node_count"]),
        &[
            "nodegroups/x-roles-root/list",
            "nodegroups/x-list-params/04-role=",
            "nodegroups/x-list-params/12-limit=2_sort_key=name",
            "nodegroups/x-list-params/15-sort_key=node_count_sort_dir=desc",
            "nodegroups/x-list-params/16-sort_key=uuid",
            "nodegroups/x-list-params/17-sort_key=cluster_id",
            "nodegroups/x-list-params/22-limit=1001",
        ],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Refused(409, "already exists in the cluster"),
        &["nodegroups/x-roles-root/post"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Refused(400, "Deleting a default nodegroup"),
        &["nodegroups/x-roles-root/delete-default"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(204),
        &["nodegroups/x-roles-delete-root/delete"],
    ),
    on(
        "bounds of node groups in lists",
        Places(&["/nodegroups/0/max_node_count", "/nodegroups/0/min_node_count"]),
        &[
            "nodegroups/x-list-params/01-role=worker",
            "nodegroups/x-list-params/06-role=master_role=worker",
        ],
    ),
    on(
        "bounds of node groups in lists",
        Places(&[
            "/next",
            "/nodegroups/0/max_node_count",
            "/nodegroups/0/min_node_count",
        ]),
        &["nodegroups/x-list-params/07-role=worker_limit=1"],
    ),
    on(
        "bounds of node groups in lists",
        Places(&["/nodegroups/2/max_node_count", "/nodegroups/2/min_node_count"]),
        &["nodegroups/x-list-params/14-sort_key=role"],
    ),
    on(
        "A JSON column that is NULL in an old row",
        Places(&["/node_addresses", "/node_labels", "/node_taints"]),
        &["nodegroups/x-row-odd/get"],
    ),
    on(
        "A JSON column that is NULL in an old row",
        Places(&["/nodegroups/1/max_node_count", "/nodegroups/1/min_node_count"]),
        &["nodegroups/x-row-odd/list"],
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
        "`id` in a POST of a quota",
        Accepted(201),
        &["quotas/x-create-24/post"],
    ),
    on(
        "true or false where a number is wanted",
        Refused(400, "got '<class 'bool'>'"),
        &["quotas/x-patch-06/patch"],
    ),
    on(
        "true or false where a number is wanted",
        Places(&["/quotas/0/hard_limit", "/quotas/0/updated_at"]),
        &["quotas/x-patch-06/after"],
    ),
    on(
        "`id` in a POST of a quota",
        Accepted(202),
        &["quotas/x-patch-12/patch"],
    ),
    on(
        "`id` in a POST of a quota",
        Places(&["/quotas/0/hard_limit", "/quotas/0/updated_at"]),
        &["quotas/x-patch-12/after"],
    ),
    on(
        "`next` of a list that was filtered",
        Places(&["/next"]),
        &[
            "quotas/x-list-params/07-all_tenants=yes_limit=2",
            "quotas/x-list-params/14-all_tenants=true_sort_dir=desc_limit=1",
            "quotas/x-list-params/20-all_tenants=true_limit=1_sort_key=hard_l",
        ],
    ),
    on(
        "a stored `hard_limit` below 0",
        Accepted(200),
        &["quotas/x-odd-row/negative"],
    ),
    on(
        "highest microversion",
        Accepted(200),
        &["versions/x-header-04/clusters", "versions/x-header-04/v1"],
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
