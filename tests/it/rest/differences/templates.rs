//! The same for the odd requests (`x-…`). Cluster templates, and the drivers that they resolve to.

use super::Difference;
use super::Instead::{Accepted, Detail, Places, Refused};
use super::on;

pub const TEMPLATES: &[Difference] = &[
    on(
        "JSON of the wrong kind",
        Refused(400, "should be a whole number"),
        &["clustertemplates/x-create-docker_volume_size-list-empty/post"],
    ),
    on(
        "a path below a collection that has none",
        Refused(404, "Not Found"),
        &["clustertemplates/x-detail-params/under-name"],
    ),
    on(
        "resize, node groups, certificates and credentials of another project",
        Accepted(200),
        &[
            "clustertemplates_patch/x-roles-root/own",
            "clustertemplates_patch/x-roles-root/hidden",
            "clustertemplates_patch/x-roles-root/publish",
        ],
    ),
    on(
        "a method that a path does not take",
        Refused(405, "Method Not Allowed"),
        &[
            "clustertemplates/x-detail-params/post",
            "clustertemplates/x-detail-params/delete",
        ],
    ),
    on(
        "the choices in an error text",
        Detail("Value should be one of"),
        &[
            "clustertemplates/x-create-server_type-list-empty/post",
            "clustertemplates/x-create-coe-list-empty/post",
            "clustertemplates/x-create-coe-object-empty/post",
        ],
    ),
    on(
        "null for `labels`, or for a label's value",
        Refused(400, "got '<class 'NoneType'>'"),
        &[
            "clustertemplates/x-create-labels-abcnull-21/post",
            "clustertemplates_patch/x-labels-v2-a_None/patch",
        ],
    ),
    on(
        "label `boot_volume_size` or `min_node_count`",
        Refused(400, "boot_volume_size must be an integer"),
        &["clustertemplates_patch/x-labels-boot/patch"],
    ),
    on(
        "a semicolon in a query",
        Detail("is an invalid field for sorting"),
        &["clustertemplates/x-list-params/27-sort_key=uuid_drop"],
    ),
    on(
        "a uuid without dashes, in braces or as a URN",
        Accepted(200),
        &[
            "clustertemplates/x-get-idents/no-dashes",
            "clustertemplates/x-get-idents/braces",
            "clustertemplates/x-get-idents/urn",
        ],
    ),
    on(
        "`/detail/`",
        Accepted(200),
        &["clustertemplates/x-detail-params/slash"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "Value not a valid object"),
        &[
            "clustertemplates/x-bodies/null",
            "clustertemplates/x-bodies/list",
            "clustertemplates/x-bodies/list-one",
            "clustertemplates/x-bodies/text",
            "clustertemplates/x-bodies/number",
            "clustertemplates/x-bodies/true",
        ],
    ),
    on(
        "form-encoded bodies",
        Refused(415, "Unknown mimetype: "),
        &[
            "clustertemplates/x-bodies/form",
            "clustertemplates/x-bodies/no-type",
        ],
    ),
    on(
        "a number as text in a patch",
        Detail("Wrong type. Expected '<class 'int'>', got '<class 'str'>'"),
        &[
            "clustertemplates_patch/x-docker_volume_size-v0-text-9/patch",
            "clustertemplates_patch/x-apiserver_port-v2-text-7000/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("the value ends too early"),
        &["clustertemplates_patch/x-labels-v4-empty/patch"],
    ),
    on(
        "JSON of the wrong kind",
        Refused(400, "should be an object"),
        &[
            "clustertemplates_patch/x-not-objects/patch",
            "clustertemplates_patch/x-null-item/patch",
            "clustertemplates_patch/x-nested/patch",
        ],
    ),
    on(
        "a value of the wrong type in a patch",
        Detail("Value should be string"),
        &[
            "clustertemplates/x-create-image_id-null/post",
            "clustertemplates_patch/x-network_driver-5/patch",
            "clustertemplates_patch/x-volume_driver-5/patch",
        ],
    ),
    on(
        "explicit null for `flavor_id`",
        Accepted(201),
        &["clustertemplates/x-create-master_flavor_id-null/post"],
    ),
    on(
        "a value of the wrong type in a patch",
        Refused(400, "Value should be string"),
        &[
            "clustertemplates/x-create-dns_nameserver-7/post",
            "clustertemplates/x-create-dns_nameserver-true/post",
            "clustertemplates/x-create-dns_nameserver-list-empty/post",
            "clustertemplates_patch/x-dns_nameserver-5/patch",
        ],
    ),
    on(
        "true or false where a number is wanted",
        Detail("got '<class 'bool'>'"),
        &["clustertemplates/x-create-apiserver_port-true/post"],
    ),
    on(
        "a fixed subnet that is not one of",
        Refused(
            400,
            "The fixed subnet private-subnet is not one of the fixed netw",
        ),
        &["clustertemplates/x-create-subnet-of-public/post"],
    ),
    on(
        "a public template read without any role",
        Refused(403, "clustertemplate:get"),
        &[
            "clustertemplates/x-roles-norole/get",
            "clustertemplates/x-roles-norole/get-name",
        ],
    ),
    on(
        "`NaN` and `Infinity`",
        Detail("Request is not in valid JSON format"),
        &["clustertemplates/x-bodies/nan"],
    ),
    on(
        "media types in capital letters",
        Refused(400, "Mandatory field missing."),
        &["clustertemplates/x-bodies/json-upper"],
    ),
    on(
        "a template without flavors",
        Accepted(200),
        &[
            "clustertemplates_patch/x-remove-flavor_id/patch",
            "clustertemplates_patch/x-remove-master_flavor_id/patch",
        ],
    ),
    on(
        "`labels` after `remove /labels`",
        Places(&["/labels", "/updated_at"]),
        &["clustertemplates_patch/x-remove-labels/patch"],
    ),
    on(
        "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        Places(&["/driver", "/updated_at"]),
        &["clustertemplates_patch/x-remove-driver/patch"],
    ),
    on(
        "a text that its column cannot hold",
        Detail("Value should have a maximum character requirement of 255"),
        &[
            "clustertemplates_patch/x-network_driver-long-256/patch",
            "clustertemplates_patch/x-volume_driver-long-256/patch",
        ],
    ),
    on(
        "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        Refused(400, "not supported."),
        &[
            "clustertemplates_patch/x-cluster_distro-nope/patch",
            "clustertemplates_patch/x-server_type-v0-bm/patch",
            "clustertemplates_patch/x-image-other/patch",
        ],
    ),
    on(
        "a number as text in a patch",
        Refused(400, "Wrong type. Expected '<class 'int'>', got '<class 'str'>'"),
        &[
            "clustertemplates_patch/x-docker_volume_size-v1-x/patch",
            "clustertemplates_patch/x-apiserver_port-v3-x/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("is neither a value nor quoted"),
        &["clustertemplates_patch/x-labels-v3-a_b/patch"],
    ),
    on(
        "a dictionary as patch value",
        Detail("not a valid dict"),
        &["clustertemplates_patch/x-labels-v5-7/patch"],
    ),
    on(
        "null for `labels`, or for a label's value",
        Refused(400, "got '<class 'list'>'"),
        &["clustertemplates_patch/x-labels-v6-a_b/patch"],
    ),
    on(
        "a dictionary as patch value",
        Refused(400, "not a valid dict"),
        &["clustertemplates_patch/x-labels-v7-chars/patch"],
    ),
    on(
        "text after a Python literal that does not parse",
        Refused(400, "a key must be a text"),
        &["clustertemplates_patch/x-labels-v8-text-1_x/patch"],
    ),
    on(
        "a value of the wrong type in a patch",
        Refused(400, "Value should be one of: kubernetes"),
        &[
            "clustertemplates_patch/x-coe-v1-nope/patch",
            "clustertemplates_patch/x-coe-v2-7/patch",
        ],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("there is nothing at"),
        &[
            "clustertemplates_patch/x-label-deep/patch",
            "clustertemplates_patch/x-name-dash/patch",
        ],
    ),
    on(
        "a label whose key has `.` or `/` in a patch path",
        Accepted(200),
        &["clustertemplates_patch/x-label-dot/patch"],
    ),
    on(
        "text after a Python literal that does not parse",
        Detail("can't replace a non-existent object"),
        &[
            "clustertemplates_patch/x-name-sub/patch",
            "clustertemplates_patch/x-tilde/patch",
        ],
    ),
    on(
        "a dictionary as patch value",
        Accepted(200),
        &["clustertemplates_patch/x-value-object/patch"],
    ),
    on(
        "a patch that leaves `devicemapper`",
        Refused(400, "expecting minimum value 3GB"),
        &["clustertemplates_patch/x-devicemapper/patch"],
    ),
    on(
        "`updated_at` in the answer to a PATCH",
        Places(&["/updated_at"]),
        &["clustertemplates_patch/x-roles-root/public"],
    ),
    on(
        "`save` of a template that clusters use",
        Accepted(200),
        &["clustertemplates_patch/x-in-use-hidden/patch"],
    ),
    on(
        "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        Detail("not supported."),
        &["clustertemplates_patch/x-in-use-driver/patch"],
    ),
    on(
        "`ClusterTypeNotSupported`",
        Detail("not supported."),
        &[
            "driver_resolution/x-base-cluster-flatcar/post",
            "driver_resolution/x-beta_shared-cluster-flatcar/post",
            "driver_resolution/x-default_unknown-cluster-flatcar/post",
            "driver_resolution/x-default_zeta-cluster-flatcar/post",
            "driver_resolution/x-no_drivers-ubuntu-plain/post",
            "driver_resolution/x-no_drivers-flatcar-plain/post",
        ],
    ),
    on(
        "Alphabetically first driver",
        Places(&["/driver"]),
        &[
            "driver_resolution/x-beta_enabled-flatcar-plain/post",
            "driver_resolution/x-nothing_disabled-flatcar-plain/post",
        ],
    ),
    on(
        "Which driver builds a template's clusters",
        Accepted(202),
        &["driver_resolution/x-beta_shared-cluster-1/post"],
    ),
    on(
        "Which driver builds a template's clusters",
        Detail("size of 2 is invalid"),
        &["driver_resolution/x-beta_shared-cluster-masters-2/post"],
    ),
    on(
        "Which driver builds a template's clusters",
        Detail("not supported"),
        &[
            "driver_resolution/x-no_drivers-cluster-1/post",
            "driver_resolution/x-no_drivers-cluster-flatcar/post",
            "driver_resolution/x-no_drivers-cluster-masters-2/post",
        ],
    ),
    on(
        "`ClusterTypeNotSupported`",
        Refused(400, "not supported."),
        &["driver_resolution/x-nothing_disabled-cluster-flatcar/post"],
    ),
];
