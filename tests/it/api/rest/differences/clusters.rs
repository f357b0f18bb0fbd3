//! Clusters and their actions.

use super::Difference;
use super::Instead::{Accepted, Detail, Places, Refused};
use super::on;

pub const CLUSTERS: &[Difference] = &[
    on(
        "a path below a collection that has none",
        Refused(404, "Not Found"),
        &["clusters/detail/under-one", "actions/x-paths/deeper"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "not a valid object"),
        &["clusters/create-bad-bodies/array"],
    ),
    on(
        "`faults` of a cluster whose create or delete failed",
        Places(&["/faults/"]),
        &[
            "clusters/create-driver-fails/get",
            "clusters/delete-driver-fails/after",
        ],
    ),
    on(
        "label `boot_volume_size` or `min_node_count` that is no number",
        Refused(400, "boot_volume_size must be an integer"),
        &["clusters/create-boot-size-bad/post"],
    ),
    on(
        "a number as text in a patch",
        Detail("Wrong type. Expected '<class 'int'>', got '<class 'str'>'"),
        &[
            "clusters_patch/node-count-text/patch",
            "clusters_patch/node-count-bad/patch",
            "clusters_patch/x-node_count-empty/patch",
            "clusters_patch/x-node_count-x/patch",
        ],
    ),
    on(
        "PATCH of `node_count` outside the group's bounds",
        Refused(400, "outside the allowed range"),
        &[
            "clusters_patch/node-count-0/patch",
            "clusters_patch/x-node_count-0/patch",
            "clusters_patch/x-node_count-6/patch",
            "clusters_patch/x-node_count-100/patch",
            "clusters_patch/x-over-max/patch",
            "clusters_patch/x-under-min/patch",
        ],
    ),
    on(
        "the choices in an error text",
        Detail("Value should be one of: HEALTHY, UNHEALTHY, UNKNOWN"),
        &[
            "clusters_patch/health-bad/patch",
            "clusters/x-create-health_status-7/post",
            "clusters/x-create-health_status-true/post",
            "clusters/x-create-health_status-list-empty/post",
            "clusters/x-create-health_status-object-empty/post",
            "clusters/x-create-health_status-long-300/post",
            "clusters/x-create-health_status-empty/post",
            "clusters_patch/x-health-healthy/patch",
            "clusters_patch/x-health-empty/patch",
            "clusters_patch/x-health-5/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("unexpected EOF while parsing"),
        &["clusters_patch/health-reason-bad/patch"],
    ),
    on(
        "a dictionary as patch value",
        Accepted(202),
        &["clusters_patch/health-reason-object/patch"],
    ),
    on(
        "`faults` of a cluster whose create or delete failed",
        Places(&["/nodegroups/0/status", "/nodegroups/1/status"]),
        &["clusters/create-driver-fails/ngs"],
    ),
    on(
        "Master count below 1",
        Detail("size must be at least 1"),
        &["actions/resize-master-supported/zero"],
    ),
    on(
        "an upgrade without `max_batch_size`",
        Accepted(202),
        &[
            "actions/upgrade-versions/v1.8",
            "actions/upgrade-bodies/by-name",
            "actions/upgrade-rights/root",
            "actions/x-upgrade-template-text-000000c7-0000-4000-8000-000000000001/post",
            "actions/x-upgrade-template-k8s-1.31/post",
        ],
    ),
    on(
        "an upgrade without `max_batch_size`",
        Refused(400, "Upgrading a cluster when status is \"UPDATE_IN_PROGRESS\""),
        &["actions/upgrade-effect/again-in-progress"],
    ),
    on(
        "an upgrade without `max_batch_size`",
        Detail("fake driver was told to fail upgrade"),
        &["actions/upgrade-driver-fails/post"],
    ),
    on(
        "an upgrade without `max_batch_size`",
        Places(&["/status", "/status_reason", "/faults", "/updated_at"]),
        &["actions/upgrade-driver-fails/after"],
    ),
    on(
        "`cluster_template` missing in an upgrade, `cluster_uuid` or `csr` in a certificate request",
        Refused(
            400,
            "attribute cluster_template. Value: 'None'. Mandatory field missing.",
        ),
        &["actions/upgrade-bodies/empty"],
    ),
    on(
        "a method that a path does not take",
        Refused(405, "Method Not Allowed"),
        &[
            "clusters/x-methods/patch",
            "clusters/x-methods/delete",
            "clusters/x-methods/post-one",
            "clusters/x-detail-params/post",
            "clusters/x-detail-params/delete",
            "clusters/x-detail-params/patch",
        ],
    ),
    on(
        "OPTIONS without `[cors] allowed_origin`",
        Refused(405, "Method Not Allowed"),
        &["clusters/x-methods/options", "clusters/x-methods/options-one"],
    ),
    on(
        "true or false where a number is wanted",
        Refused(400, "got '<class 'bool'>'"),
        &[
            "actions/x-resize-count-true/post",
            "actions/x-upgrade-batch-true/post",
            "clusters/x-create-node_count-true/post",
            "clusters/x-create-master_count-true/post",
            "clusters/x-create-docker_volume_size-true/post",
            "clusters/x-create-create_timeout-true/post",
            "clusters_patch/x-node_count-true/patch",
        ],
    ),
    on(
        "a whole number beyond 2147483647",
        Refused(400, "lower or equal to 2147483647"),
        &[
            "clusters/x-create-docker_volume_size-2147483648/post",
            "clusters/x-create-create_timeout-2147483648/post",
            "clusters_patch/x-node_count-2147483648/patch",
        ],
    ),
    on(
        "a boolean that is none (`\"maybe\"`)",
        Refused(400, "Unrecognized value"),
        &[
            "clusters/x-create-floating_ip_enabled-maybe/post",
            "clusters/x-create-floating_ip_enabled-list-empty/post",
            "clusters/x-create-master_lb_enabled-maybe/post",
            "clusters/x-create-master_lb_enabled-list-empty/post",
            "clusters/x-create-merge_labels-maybe/post",
            "clusters/x-create-merge_labels-list-empty/post",
            "clusters_patch/x-replace-floating_ip_enabled/patch",
            "clusters_patch/x-replace-master_lb_enabled/patch",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid object"),
        &[
            "actions/x-resize-list/post",
            "actions/x-upgrade-list/post",
            "clusters/x-bodies/null",
            "clusters/x-bodies/list-one",
            "clusters/x-bodies/text",
            "clusters/x-bodies/number",
        ],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid list"),
        &["clusters_patch/x-body-null/patch"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Missing argument"),
        &["clusters_patch/x-body-empty/patch"],
    ),
    on(
        "PATCH in a status that does not allow it",
        Refused(409, "Updating a cluster when status is"),
        &[
            "clusters_patch/x-state-create_in_progress/patch",
            "clusters_patch/x-state-create_failed/patch",
            "clusters_patch/x-state-update_in_progress/patch",
            "clusters_patch/x-state-update_failed/patch",
            "clusters_patch/x-state-delete_in_progress/patch",
            "clusters_patch/x-state-delete_failed/patch",
        ],
    ),
    on(
        "a resize, or a change of node groups, in a status that does not allow it",
        Refused(409, "when status is"),
        &[
            "actions/x-resize-state-create_in_progress/post",
            "actions/x-resize-state-create_failed/post",
            "actions/x-resize-state-delete_in_progress/post",
            "actions/x-resize-state-delete_failed/post",
        ],
    ),
    on(
        "a resize with null for `node_count` or in `nodes_to_remove`",
        Refused(400, "Mandatory field missing."),
        &["actions/x-resize-count-null/post"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "should be a whole number"),
        &[
            "actions/x-resize-count-list-empty/post",
            "clusters/x-create-node_count-list-empty/post",
            "clusters/x-create-master_count-list-empty/post",
            "clusters/x-create-docker_volume_size-list-empty/post",
            "clusters/x-create-create_timeout-list-empty/post",
        ],
    ),
    on(
        "a whole number beyond 2147483647",
        Detail("lower or equal to 2147483647"),
        &[
            "actions/x-resize-count-2147483648/post",
            "clusters/x-create-master_count-2147483648/post",
        ],
    ),
    on(
        "a resize with null for `node_count` or in `nodes_to_remove`",
        Refused(400, "got '<class 'NoneType'>'"),
        &["actions/x-resize-remove-3/post"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(202),
        &["actions/x-resize-roles-root/post"],
    ),
    on(
        "`cluster_template` missing in an upgrade",
        Refused(400, "Mandatory field missing."),
        &["actions/x-upgrade-none/post"],
    ),
    on(
        "an unknown word before a collection",
        Refused(404, "Not Found"),
        &["actions/x-paths/no-cluster"],
    ),
    on(
        "a text that its column cannot hold",
        Refused(400, "Value should have a maximum character requirement of 255"),
        &["clusters/x-create-discovery_url-long-300/post"],
    ),
    on(
        "the choices in an error text",
        Detail("Value should be one of"),
        &[
            "clusters/x-create-status-list-empty/post",
            "clusters/x-create-status-object-empty/post",
        ],
    ),
    on(
        "`master_count: null`",
        Refused(400, "Value should be greater or equal to 1"),
        &["clusters/x-create-master_count-null/post"],
    ),
    on(
        "`node_count: null`",
        Places(&["/master_lb_enabled"]),
        &["clusters/x-create-master_lb_enabled-null/get"],
    ),
    on(
        "null for `labels`, or inside of a dictionary or a list",
        Refused(400, "got '<class 'NoneType'>'"),
        &[
            "clusters/x-create-labels-04/post",
            "clusters_patch/x-health-reason-4/patch",
        ],
    ),
    on(
        "label `boot_volume_size` or `min_node_count`",
        Refused(400, "boot_volume_size must be an integer"),
        &["clusters/x-create-labels-11/post"],
    ),
    on(
        "label `boot_volume_size` or `min_node_count`",
        Refused(400, "The label min_node_count must be a whole number"),
        &["clusters/x-create-labels-13/post"],
    ),
    on(
        "a name that ends with a line break",
        Refused(400, "Value should match the pattern"),
        &["clusters/x-create-name-a-2/post"],
    ),
    on(
        "a uuid without dashes, in braces or as a URN",
        Accepted(202),
        &["clusters/x-create-template-no-dashes/post"],
    ),
    on(
        "`faults` in a POST",
        Accepted(202),
        &["clusters/x-create-faults-bad/post"],
    ),
    on(
        "a read-only attribute with a value of the wrong type",
        Detail("Cannot set read only field."),
        &[
            "clusters/x-create-given-master_addresses/post",
            "clusters/x-create-given-created_at/post",
            "clusters/x-create-given-updated_at/post",
        ],
    ),
    on(
        "Template row with a COE that was removed",
        Refused(400, "Cluster type (vm, ubuntu, swarm) not supported"),
        &["clusters/x-create-template-swarm/post"],
    ),
    on(
        "a semicolon in a query",
        Detail("is an invalid field for sorting"),
        &["clusters/x-list-params/27-sort_key=uuid_drop"],
    ),
    on(
        "A page after a marker whose sort key is null",
        Places(&["/clusters"]),
        &["clusters/x-list-marker/root-null-sort"],
    ),
    on(
        "a uuid without dashes, in braces or as a URN",
        Accepted(200),
        &[
            "clusters/x-list-marker/no-dashes",
            "clusters/x-get-idents/no-dashes",
        ],
    ),
    on("`/detail/`", Accepted(200), &["clusters/x-detail-params/slash"]),
    on(
        "a status or a health in a row",
        Accepted(200),
        &[
            "clusters/x-state-odd/unknown",
            "clusters/x-state-odd/list",
            "clusters/x-row-health/bad",
            "clusters/x-row-health/list",
        ],
    ),
    on(
        "a template that the caller does not see any more",
        Accepted(200),
        &[
            "clusters/x-row-odd/no-template",
            "clusters/x-row-odd/list",
            "clusters/x-row-odd/detail",
        ],
    ),
    on(
        "A JSON column that is NULL in an old row",
        Accepted(200),
        &["clusters/x-row-null-labels/get"],
    ),
    on(
        "A JSON column that is NULL in an old row",
        Places(&["/clusters/0/labels"]),
        &["clusters/x-row-null-labels/list"],
    ),
    on(
        "a cluster row without node groups, or whose group of masters has no nodes",
        Accepted(200),
        &[
            "clusters/x-row-no-nodegroups/get",
            "clusters/x-row-no-nodegroups/list",
        ],
    ),
    on(
        "a cluster row without node groups, or whose group of masters has no nodes",
        Refused(404, "Nodegroup default-worker could not be found"),
        &["clusters/x-row-no-nodegroups/resize"],
    ),
    on(
        "a cluster row without node groups, or whose group of masters has no nodes",
        Accepted(202),
        &["clusters/x-row-no-nodegroups/patch"],
    ),
    on(
        "form-encoded bodies",
        Refused(415, "Unknown mimetype: "),
        &["clusters/x-bodies/no-type", "clusters/x-bodies/form"],
    ),
    on(
        "`remove` of a dictionary",
        Refused(400, "cannot change cluster property(ies) labels."),
        &["clusters_patch/x-remove-labels/patch"],
    ),
    on(
        "`remove` of a dictionary",
        Accepted(202),
        &[
            "clusters_patch/x-remove-health_status/patch",
            "clusters_patch/x-remove-health_status_reason/patch",
            "clusters_patch/x-effect-remove-health/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("it is empty"),
        &["clusters_patch/x-health-reason-6/patch"],
    ),
    on(
        "a dictionary as patch value",
        Detail("Wrong type. Expected"),
        &["clusters_patch/x-health-reason-7/patch"],
    ),
    on(
        "a dictionary as patch value",
        Detail("got '<class 'bool'>'"),
        &["clusters_patch/x-health-reason-9/patch"],
    ),
    on(
        "a patch inside of an internal attribute",
        Detail("is an internal attribute and can not be updated"),
        &["clusters_patch/x-op-dash/patch"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "should be an object"),
        &["clusters_patch/x-op-not-objects/patch"],
    ),
    on(
        "a boolean that is none",
        Refused(400, "unable to convert to boolean."),
        &[
            "clusters_patch/x-query-rollback-maybe/patch",
            "clusters_patch/x-query-rollback-/patch",
        ],
    ),
    on(
        "`cluster:update_health_status`",
        Refused(403, "cluster:update_health_status"),
        &["clusters_patch/x-roles-health-carol/patch"],
    ),
];
