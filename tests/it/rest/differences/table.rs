//! The table: which recorded cases are answered otherwise, and how.

use super::{Difference, Instead};

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        row: "a path below a collection that has none",
        instead: Instead::Refused(404, "Not Found"),
        cases: &[
            "clusters/detail/under-one",
            "clustertemplates/detail/under-one",
            "mservices/one/get",
        ],
    },
    Difference {
        row: "JSON of the wrong kind",
        instead: Instead::Refused(400, "not a valid object"),
        cases: &["clusters/create-bad-bodies/array"],
    },
    Difference {
        row: "order of checks",
        instead: Instead::Refused(403, "clustertemplate:create"),
        cases: &["driver_resolution/reader-sees-driver-error-first/unknown"],
    },
    // Clusters.
    Difference {
        row: "`faults` of a cluster whose create or delete failed",
        instead: Instead::Places(&["/faults/"]),
        cases: &[
            "clusters/create-driver-fails/get",
            "clusters/delete-driver-fails/after",
        ],
    },
    Difference {
        row: "Several drivers for one cluster type",
        instead: Instead::Places(&["/stack_id"]),
        cases: &[
            "driver_resolution/old-template-without-driver/get",
            "driver_resolution/old-template-empty-driver/get",
        ],
    },
    Difference {
        row: "label `boot_volume_size` or `min_node_count` that is no number",
        instead: Instead::Refused(400, "boot_volume_size must be an integer"),
        cases: &["clusters/create-boot-size-bad/post"],
    },
    Difference {
        row: "a number as text in a patch",
        instead: Instead::Detail("Wrong type. Expected '<class 'int'>', got '<class 'str'>'"),
        cases: &[
            "clusters_patch/node-count-text/patch",
            "clusters_patch/node-count-bad/patch",
        ],
    },
    Difference {
        row: "PATCH of `node_count` outside the group's bounds",
        instead: Instead::Refused(400, "outside the allowed range"),
        cases: &["clusters_patch/node-count-0/patch"],
    },
    Difference {
        row: "the choices in an error text",
        instead: Instead::Detail("Value should be one of: HEALTHY, UNHEALTHY, UNKNOWN"),
        cases: &["clusters_patch/health-bad/patch"],
    },
    Difference {
        row: "text after a Python literal that does not parse",
        instead: Instead::Detail("'boom' is neither a value nor quoted"),
        cases: &["clusters_patch/health-reason-bad/patch"],
    },
    Difference {
        row: "a dictionary as patch value",
        instead: Instead::Accepted(202),
        cases: &["clusters_patch/health-reason-object/patch"],
    },
    Difference {
        row: "Which driver builds a template's clusters",
        instead: Instead::Accepted(202),
        cases: &[
            "driver_resolution/beta-last-on-shared-tuple-named-alpha/cluster-create",
            "driver_resolution/beta-last-on-shared-tuple-named-zeta/cluster-create",
        ],
    },
    Difference {
        row: "Which driver builds a template's clusters",
        instead: Instead::Detail("Cluster driver (k8s_fedora_coreos_v1) not supported."),
        cases: &["driver_resolution/old-distro-gone/create"],
    },
    // Cluster templates.
    Difference {
        row: "null for `labels`, or for a label's value",
        instead: Instead::Refused(400, "attribute labels"),
        cases: &["clustertemplates/create-labels-null-value/post"],
    },
    Difference {
        row: "null for `labels`, or for a label's value",
        instead: Instead::Accepted(201),
        cases: &["clustertemplates/create-null-attrs/null-labels"],
    },
    Difference {
        row: "explicit null for `flavor_id`, `master_flavor_id`",
        instead: Instead::Accepted(201),
        cases: &["clustertemplates/create-null-attrs/null-flavor"],
    },
    Difference {
        row: "`updated_at` in the answer to a PATCH",
        instead: Instead::Places(&["/updated_at"]),
        cases: &[
            "clustertemplates_patch/name/patch",
            "clustertemplates_patch/labels/patch",
            "clustertemplates_patch/label-one/patch",
            "clustertemplates_patch/label-add/patch",
            "clustertemplates_patch/remove-dns/patch",
            "clustertemplates_patch/add-null/patch",
            "clustertemplates_patch/volume-size/patch",
            "clustertemplates_patch/bool-text/patch",
            "clustertemplates_patch/bool/patch",
            "clustertemplates_patch/two-ops/patch",
            "clustertemplates_patch/referenced-name/member",
            "clustertemplates_patch/referenced-and-missing/referenced",
            "clustertemplates_patch/referenced-and-missing/by-name",
        ],
    },
    Difference {
        row: "a dictionary as patch value",
        instead: Instead::Accepted(200),
        cases: &["clustertemplates_patch/labels-json-true/patch"],
    },
    Difference {
        row: "a dictionary as patch value",
        instead: Instead::Places(&["/labels", "/updated_at"]),
        cases: &["clustertemplates_patch/labels-json-true/after"],
    },
    Difference {
        row: "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        instead: Instead::Refused(400, "Value should be one of: kubernetes"),
        cases: &["clustertemplates_patch/coe/patch"],
    },
    Difference {
        row: "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        instead: Instead::Refused(400, "Cluster type (vm, flatcar, kubernetes) not supported."),
        cases: &["clustertemplates_patch/cluster-distro/patch"],
    },
    Difference {
        row: "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        instead: Instead::Refused(400, "Cluster driver ("),
        cases: &[
            "driver_resolution/patch-unknown/patch",
            "driver_resolution/patch-beta/patch",
        ],
    },
    Difference {
        row: "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        instead: Instead::Places(&["/cluster_distro", "/driver", "/updated_at"]),
        cases: &[
            "clustertemplates_patch/cluster-distro/after",
            "driver_resolution/patch-unknown/after",
            "driver_resolution/patch-beta/after",
        ],
    },
    Difference {
        row: "an administrator patches a template of another project",
        instead: Instead::Accepted(200),
        cases: &[
            "clustertemplates_patch/referenced-name/root",
            "clustertemplates_patch/referenced-public/root",
            "clustertemplates_patch/referenced-hidden/root",
        ],
    },
    Difference {
        row: "an administrator patches a template of another project",
        instead: Instead::Refused(400, "is referenced by one or multiple clusters."),
        cases: &["clustertemplates_patch/referenced-labels/root"],
    },
    Difference {
        row: "an administrator patches a template of another project",
        instead: Instead::Places(&["/public", "/hidden", "/updated_at"]),
        cases: &[
            "clustertemplates_patch/referenced-public/after",
            "clustertemplates_patch/referenced-hidden/after",
        ],
    },
    Difference {
        row: "a template whose stored `driver` is an empty text",
        instead: Instead::Accepted(200),
        cases: &["driver_resolution/old-template-empty-driver/template"],
    },
    Difference {
        row: "Image without an operating system",
        instead: Instead::Detail("doesn't contain os_distro field. Set the image property magnum_distro"),
        cases: &[
            "driver_resolution/no-distro/post",
            "driver_resolution/no-distro-driver-given/post",
            "driver_resolution/no-distro-both-given/post",
            "driver_resolution/no-distro-image-driver/post",
        ],
    },
    Difference {
        row: "`ClusterTypeNotSupported`",
        instead: Instead::Detail("Cluster type (vm, ubuntu, kubernetes) not supported."),
        cases: &["driver_resolution/no-drivers/post"],
    },
    Difference {
        row: "Alphabetically first driver (nobody named one)",
        instead: Instead::Refused(400, "not supported."),
        cases: &[
            "driver_resolution/flatcar-fallback-wrong-tuple/post",
            "driver_resolution/bare-metal-fallback/post",
        ],
    },
    Difference {
        row: "`driver` of a template request, image property `magnum_driver`",
        instead: Instead::Refused(400, "Cluster driver ("),
        cases: &[
            "driver_resolution/user-disabled/post",
            "driver_resolution/user-beta-not-enabled/post",
            "driver_resolution/user-beta-and-disabled/post",
            "driver_resolution/image-driver-disabled/post",
            "driver_resolution/default-disabled/named",
            "driver_resolution/default-beta-not-enabled/post",
            "driver_resolution/default-beta-not-enabled/flatcar",
            "driver_resolution/no-drivers/named",
            "driver_resolution/no-drivers-image/post",
        ],
    },
    Difference {
        row: "A named driver that does not provide the template's (server type, OS, COE)",
        instead: Instead::Refused(400, "Cluster type (vm, flatcar, kubernetes) not supported."),
        cases: &["driver_resolution/default-driver-flatcar/post"],
    },
    // The template that the cluster would be made of was refused one step before.
    Difference {
        row: "`driver` of a template request, image property `magnum_driver`",
        instead: Instead::Refused(404, "could not be found."),
        cases: &[
            "driver_resolution/user-disabled/cluster-create",
            "driver_resolution/user-beta-not-enabled/cluster-create",
            "driver_resolution/user-beta-and-disabled/cluster-create",
            "driver_resolution/flatcar-fallback-wrong-tuple/cluster-create",
            "driver_resolution/bare-metal-fallback/cluster-create",
            "driver_resolution/default-beta-not-enabled/cluster-create",
            "driver_resolution/no-drivers/cluster-create",
            "driver_resolution/user-disabled/cluster-get",
            "driver_resolution/user-beta-and-disabled/cluster-get",
        ],
    },
    // Node groups.
    Difference {
        row: "bounds of node groups in lists",
        instead: Instead::Places(&[
            "/nodegroups/0/min_node_count",
            "/nodegroups/0/max_node_count",
            "/nodegroups/1/min_node_count",
            "/nodegroups/1/max_node_count",
        ]),
        cases: &[
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
    },
    Difference {
        row: "a node group without a `name`, or with null for it or a count",
        instead: Instead::Refused(400, "attribute name. Value: 'None'. Mandatory field missing."),
        cases: &["nodegroups/create-no-name/post"],
    },
    Difference {
        row: "an unknown image of a node group",
        instead: Instead::Refused(400, "Image nope could not be found."),
        cases: &["nodegroups/create-image-missing/post"],
    },
    Difference {
        row: "`is_default`, `status`, `version`, `id` in a POST of a node group",
        instead: Instead::Places(&["/status"]),
        cases: &["nodegroups/create-status-given/post"],
    },
    Difference {
        row: "`node_labels`, `node_taints` of a node group",
        instead: Instead::Refused(400, "node_labels of a node group needs microversion 1.14"),
        cases: &[
            "nodegroups/create-labels-taints/v1.13",
            "nodegroups/create-labels-taints/v1.9",
        ],
    },
    Difference {
        row: "`node_labels`, `node_taints` after their removal by a patch",
        instead: Instead::Places(&["/node_taints"]),
        cases: &["nodegroups/patch-node-taints-remove/patch"],
    },
    Difference {
        row: "`status_reason` of a cluster while one of its node groups changes",
        instead: Instead::Places(&["/status_reason"]),
        cases: &[
            "nodegroups/create/cluster",
            "nodegroups/patch-effect/cluster",
            "nodegroups/delete/cluster",
        ],
    },
    Difference {
        row: "`faults` of a cluster whose create or delete failed",
        instead: Instead::Places(&["/nodegroups/0/status", "/nodegroups/1/status"]),
        cases: &["clusters/create-driver-fails/ngs"],
    },
    // Actions.
    Difference {
        row: "Master count below 1",
        instead: Instead::Detail("size must be at least 1"),
        cases: &["actions/resize-master-supported/zero"],
    },
    Difference {
        row: "an upgrade without `max_batch_size`",
        instead: Instead::Accepted(202),
        cases: &[
            "actions/upgrade-versions/v1.8",
            "actions/upgrade-bodies/by-name",
            "actions/upgrade-rights/root",
        ],
    },
    Difference {
        row: "an upgrade without `max_batch_size`",
        instead: Instead::Refused(400, "Upgrading a cluster when status is \"UPDATE_IN_PROGRESS\""),
        cases: &["actions/upgrade-effect/again-in-progress"],
    },
    Difference {
        row: "an upgrade without `max_batch_size`",
        instead: Instead::Detail("fake driver was told to fail upgrade"),
        cases: &["actions/upgrade-driver-fails/post"],
    },
    Difference {
        row: "an upgrade without `max_batch_size`",
        instead: Instead::Places(&["/status", "/status_reason", "/faults", "/updated_at"]),
        cases: &["actions/upgrade-driver-fails/after"],
    },
    Difference {
        row: "`cluster_template` missing in an upgrade, `cluster_uuid` or `csr` in a certificate request",
        instead: Instead::Refused(
            400,
            "attribute cluster_template. Value: 'None'. Mandatory field missing.",
        ),
        cases: &["actions/upgrade-bodies/empty"],
    },
    // Certificates and credentials.
    Difference {
        row: "an unknown `ca_cert_type`",
        instead: Instead::Refused(
            400,
            "Value should be one of: etcd, front-proxy, front_proxy, kubernetes",
        ),
        cases: &["certificates/get-types/nope", "certificates/sign-types/nope"],
    },
    Difference {
        row: "an administrator changes node groups, resizes, or has certificates and credentials of another project",
        instead: Instead::Accepted(201),
        cases: &["certificates/sign-rights/root"],
    },
    Difference {
        row: "an administrator changes node groups, resizes, or has certificates and credentials of another project",
        instead: Instead::Accepted(202),
        cases: &["credentials/rights/root"],
    },
    Difference {
        row: "`rotate_ca_certificate`",
        instead: Instead::Places(&["/status", "/status_reason", "/faults", "/updated_at"]),
        cases: &["certificates/rotate-unsupported/after"],
    },
    Difference {
        row: "Refusal of `credential_rotate`",
        instead: Instead::Detail(
            "Rotating the credential of a cluster when status is \"CREATE_IN_PROGRESS\"",
        ),
        cases: &["credentials/errors/in-progress"],
    },
    // Quotas and federations.
    Difference {
        row: "`next` of a list that was filtered",
        instead: Instead::Places(&["/next"]),
        cases: &["quotas/list-paging/limit", "quotas/list-paging/marker"],
    },
    Difference {
        row: "a boolean that is none (`\"maybe\"`)",
        instead: Instead::Refused(400, "attribute all_tenants. Value: 'maybe'."),
        cases: &["quotas/list-paging/bad-bool"],
    },
    Difference {
        row: "JSON of the wrong kind",
        instead: Instead::Refused(400, "not a valid object"),
        cases: &["quotas/patch-errors/list"],
    },
    Difference {
        row: "an empty patch of a federation",
        instead: Instead::Refused(400, "at least one operation"),
        cases: &["federations/patch/empty"],
    },
];
