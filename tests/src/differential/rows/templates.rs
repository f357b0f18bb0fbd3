//! Cluster templates.

use super::{CLUSTER_PATCH, Rule, SEVERAL, TEMPLATE_PATCH, of_administrator, rule, when};

const OTHER_TEMPLATE: &str = "an administrator patches a template of another project";
const DICTIONARY: &str = "a dictionary as patch value";

pub const RULES: &[Rule] = &[
    when(
        rule(OTHER_TEMPLATE, TEMPLATE_PATCH, "*", "404 *", "*"),
        of_administrator,
    ),
    rule(
        "`updated_at` in the answer to a PATCH",
        TEMPLATE_PATCH,
        "/updated_at",
        "*",
        "*",
    ),
    rule(
        "a patch of a template in use that changes nothing",
        TEMPLATE_PATCH,
        "status",
        "400 *is referenced by one or multiple clusters.",
        "200",
    ),
    rule(
        "a public template read without any role",
        "GET /v1/clustertemplates*",
        "status",
        "200",
        "403 *",
    ),
    rule(
        "patch of `driver`, `cluster_distro`, `image_id`, `coe`",
        TEMPLATE_PATCH,
        "status",
        "500 Field value * is invalid",
        "400 *attribute coe. *",
    ),
    rule(
        "a template without flavors",
        TEMPLATE_PATCH,
        "*",
        "400 Unable to find flavor *",
        "*",
    ),
    rule(
        "Alphabetically first driver (nobody named one)",
        "* /v1/clustertemplates*",
        "*",
        "*",
        "400 Cluster type (*) not supported.*",
    ),
    rule(
        "a patch of a cluster's flavor",
        CLUSTER_PATCH,
        "*",
        "400 Unable to find flavor *",
        "400 cannot change *",
    ),
    when(
        rule(
            "a driver or a cluster type that is refused, told to an administrator",
            "* /v1/c*",
            "error",
            "400 Cluster * not supported.",
            "400 Cluster * not supported. Drivers: *",
        ),
        of_administrator,
    ),
    rule(
        SEVERAL,
        "POST /v1/clustertemplates",
        "error",
        "400 Requested COE type Unset is not supported.",
        "400 *",
    ),
    rule(
        "explicit null for `flavor_id`, `master_flavor_id`",
        "POST /v1/clustertemplates",
        "*",
        "400 Unable to find flavor None.",
        "*",
    ),
    rule(
        "`labels` after `remove /labels`",
        TEMPLATE_PATCH,
        "/labels",
        "null",
        "{}",
    ),
    rule(
        DICTIONARY,
        "PATCH *",
        "*",
        "*Wrong type. Expected '(<class 'str'>, <class 'int'>)', got '<class 'dict'>'",
        "*",
    ),
];
