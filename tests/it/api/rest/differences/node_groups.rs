//! Node groups.

use super::Difference;
use super::Instead::{Accepted, Detail, Places, Refused};
use super::on;

pub const NODE_GROUPS: &[Difference] = &[
    on(
        "bounds of node groups in lists",
        Places(&[
            "/nodegroups/0/min_node_count",
            "/nodegroups/0/max_node_count",
            "/nodegroups/1/min_node_count",
            "/nodegroups/1/max_node_count",
        ]),
        &[
            "nodegroups/list/alice",
            "nodegroups/list/by-cluster-name",
            "nodegroups/list/reader",
            "nodegroups/list/root",
            "nodegroups/list-versions/v1.9",
            "nodegroups/list-versions/v1.13",
            "nodegroups/list-versions/v1.14",
            "nodegroups/list-paging/marker",
            "nodegroups/list-paging/sort",
        ],
    ),
    on(
        "a node group without a `name`, or with null for it or a count",
        Refused(400, "attribute name. Value: 'None'. Mandatory field missing."),
        &["nodegroups/create-no-name/post"],
    ),
    on(
        "an unknown image or flavor of a node group",
        Refused(400, "Image nope could not be found."),
        &["nodegroups/create-image-missing/post"],
    ),
    on(
        "`is_default`, `status`, `version`, `id` in a POST of a node group",
        Places(&["/status"]),
        &["nodegroups/create-status-given/post"],
    ),
    on(
        "`node_labels`, `node_taints` of a node group",
        Refused(400, "node_labels of a node group needs microversion 1.14"),
        &[
            "nodegroups/create-labels-taints/v1.13",
            "nodegroups/create-labels-taints/v1.9",
        ],
    ),
    on(
        "`node_labels`, `node_taints` after their removal by a patch",
        Places(&["/node_taints"]),
        &["nodegroups/patch-node-taints-remove/patch"],
    ),
    on(
        "`status_reason` of a cluster while one of its node groups changes",
        Places(&["/status_reason"]),
        &[
            "nodegroups/create/cluster",
            "nodegroups/patch-effect/cluster",
            "nodegroups/delete/cluster",
        ],
    ),
    on(
        "a method that a path does not take",
        Refused(405, "Method Not Allowed"),
        &[
            "nodegroups/x-methods/patch",
            "nodegroups/x-methods/delete",
            "nodegroups/x-methods/post-one",
        ],
    ),
    on(
        "OPTIONS without `[cors] allowed_origin`",
        Refused(405, "Method Not Allowed"),
        &["nodegroups/x-methods/options", "nodegroups/x-methods/options-one"],
    ),
    on(
        "true or false where a number is wanted",
        Refused(400, "got '<class 'bool'>'"),
        &[
            "nodegroups/x-patch-min_node_count-true/patch",
            "nodegroups/x-patch-max_node_count-true/patch",
        ],
    ),
    on(
        "a whole number beyond 2147483647",
        Refused(400, "lower or equal to 2147483647"),
        &[
            "nodegroups/x-create-node_count-2147483648/post",
            "nodegroups/x-create-min_node_count-2147483648/post",
            "nodegroups/x-create-max_node_count-2147483648/post",
            "nodegroups/x-create-docker_volume_size-2147483648/post",
            "nodegroups/x-patch-min_node_count-2147483648/patch",
            "nodegroups/x-patch-max_node_count-2147483648/patch",
        ],
    ),
    on(
        "bounds of node groups in lists",
        Places(&["/nodegroups/"]),
        &[
            "nodegroups/x-roles-alice/list",
            "nodegroups/x-roles-carol/list",
            "nodegroups/x-roles-rita/list",
            "nodegroups/x-list-clusters/slash",
            "nodegroups/x-list-clusters/upper",
            "nodegroups/x-delete-uuid/after",
        ],
    ),
    on(
        "a boolean that is none (`\"maybe\"`)",
        Refused(400, "Unrecognized value"),
        &[
            "nodegroups/x-create-merge_labels-maybe/post",
            "nodegroups/x-create-is_default-maybe/post",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid object"),
        &[
            "nodegroups/x-bodies/null",
            "nodegroups/x-bodies/list",
            "nodegroups/x-bodies/text",
            "nodegroups/x-bodies/number",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid list"),
        &["nodegroups/x-patch-body-null/patch"],
    ),
    on(
        "a resize, or a change of node groups, in a status that does not allow it",
        Refused(409, "when status is"),
        &[
            "nodegroups/x-create-deleting/post",
            "nodegroups/x-patch-state-delete_in_progress/patch",
            "nodegroups/x-delete-state-delete_in_progress/delete",
        ],
    ),
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
            "nodegroups/x-roles-patch-root/patch",
            "nodegroups/x-roles-create-root/post",
        ],
    ),
    on(
        "the choices in an error text",
        Detail("Value should be one of"),
        &["nodegroups/x-create-status-list-empty/post"],
    ),
    on(
        "null for `labels`, or inside of a dictionary or a list",
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
        &["nodegroups/x-create-created-given/post"],
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
        Detail("it is empty"),
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
            "nodegroups/x-patch-node-taints-7/patch",
            "nodegroups/x-patch-node-taints-8/patch",
        ],
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
        "a taint whose `value` is null",
        Accepted(202),
        &["nodegroups/x-create-node-taints-10/post"],
    ),
    on(
        "an unknown image or flavor of a node group",
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
];
