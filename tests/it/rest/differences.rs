//! Where we answer otherwise on purpose: case by case, each with its row in `docs/differences.md`.

use super::case::Case;
use super::world::Answer;

/// What the answer must be instead.
pub enum Instead {
    /// This status, and this text in the error's detail.
    Refused(u16, &'static str),
    /// This status, whatever the body says.
    Accepted(u16),
    /// The recorded status, with this text in the error's detail.
    Detail(&'static str),
    /// Only these places of the body may differ (a prefix each).
    Places(&'static [&'static str]),
}

/// A row of the table with its cases. A `*` at the end of a name stands for any rest.
pub struct Difference {
    /// The row's first column.
    pub row: &'static str,
    pub instead: Instead,
    pub cases: &'static [&'static str],
}

/// How an answer compares.
pub enum Verdict {
    /// As recorded.
    Equal,
    /// As the table says.
    Differs,
    /// Neither.
    Wrong(Vec<String>),
}

impl Verdict {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differ on purpose",
            Self::Wrong(_) => "wrong",
        }
    }
}

/// Whether a name in the table means a case.
pub fn matches(name: &str, case: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => case.starts_with(start),
        None => name == case,
    }
}

/// Every named case with its row.
pub fn named() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIFFERENCES
        .iter()
        .flat_map(|difference| difference.cases.iter().map(|case| (*case, difference.row)))
}

/// Judges what the comparison found.
pub fn judge(case: &Case, answer: &Answer, findings: &[String]) -> Verdict {
    let difference = DIFFERENCES
        .iter()
        .find(|difference| difference.cases.iter().any(|name| matches(name, &case.case)));
    match difference {
        None if findings.is_empty() => Verdict::Equal,
        None => Verdict::Wrong(findings.to_vec()),
        Some(_) if findings.is_empty() => Verdict::Wrong(vec![
            "named as a difference, but the answer is the recorded one".to_owned(),
        ]),
        Some(difference) => match unmet(difference, case, answer, findings) {
            None => Verdict::Differs,
            Some(why) => Verdict::Wrong([vec![why], findings.to_vec()].concat()),
        },
    }
}

fn unmet(difference: &Difference, case: &Case, answer: &Answer, findings: &[String]) -> Option<String> {
    let refusal = |status: u16, text: &str| {
        let detail = answer
            .body
            .pointer("/errors/0/detail")
            .and_then(|detail| detail.as_str());
        let detail = detail.unwrap_or_default();
        (answer.status != status || !detail.contains(text))
            .then(|| format!("{} {detail:?} instead of {status} with {text:?}", answer.status))
    };
    match difference.instead {
        Instead::Refused(status, text) => refusal(status, text),
        Instead::Detail(text) => refusal(case.response.status, text),
        Instead::Accepted(status) => {
            (answer.status != status).then(|| format!("status {} instead of {status}", answer.status))
        }
        Instead::Places(places) => findings
            .iter()
            .find(|finding| !places.iter().any(|place| finding.starts_with(place)))
            .map(|finding| format!("differs beyond {places:?}: {finding}")),
    }
}

const DIFFERENCES: &[Difference] = &[
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
];
