//! Where our driver does not do what magnum-capi-helm was recorded to do, and why.

use serde_json::{Value, json};

use super::super::replay::Difference;
use super::case::{Case, titled};
use super::differences::{
    CREDENTIAL_ALONE, LABEL_IS_NO_NUMBER, REFUSED_BEFOREHAND, TEMPLATE_AFTERWARDS, TOO_FEW_MASTERS,
};
use super::expected::Expected;

/// All of them. Those that users can see are in `docs/differences.md`, too.
pub const OUR_DIFFERENCES: &[Difference<Case, Expected>] = &[
    REFUSED_BEFOREHAND,
    TOO_FEW_MASTERS,
    // Before the label, which is read before anything of this is.
    FLAVORS_ONCE,
    ALL_AT_ONCE,
    IMAGE_BY_NAME,
    LABEL_IS_NO_NUMBER,
    TEMPLATE_AFTERWARDS,
    CREDENTIAL_ALONE,
    SAME_CREDENTIAL_AGAIN,
    NO_TOKEN_FOR_A_TOKEN,
    WORDS,
    DENIED_IS_NO_END,
    GROUPS_THAT_DID_NOT_BEGIN,
    CREDENTIAL_OF_ITS_OWNER,
    EACH_KIND_OF_ADD_ON,
    WHOLE_LOOKS,
    BOTH_SPELLINGS,
    REGION_BEFORE_THE_CREDENTIAL,
    CREDENTIAL_BEFORE_THE_SECRETS,
];

const FLAVORS: &str = "/compute/v2.1/flavors/detail?is_public=None&minRam=2048 as alice";
const VOLUME_TYPES: &str = "/volume/v3/types as alice";

fn reads(case: &Case, what: &str) -> Option<u64> {
    case.recorded["cloud_reads"][what].as_u64()
}

const FLAVORS_ONCE: Difference<Case, Expected> = Difference {
    reason: "Nova's flavors are asked for once, not once for each flavor",
    is_in: |case| reads(case, FLAVORS).is_some_and(|count| count > 1),
    instead: |_, expected| {
        expected.cloud_reads.insert(FLAVORS.to_owned(), 1);
    },
};

fn is_image_read(case: &Case) -> bool {
    let reads = case.recorded["cloud_reads"].as_object();
    reads.is_some_and(|reads| reads.keys().any(|path| path.starts_with("/image/")))
}

const ALL_AT_ONCE: Difference<Case, Expected> = Difference {
    reason: "what the cloud has is asked for at once, not one thing after the other until one is missing",
    is_in: |case| is_image_read(case) && reads(case, VOLUME_TYPES).is_none(),
    instead: |case, expected| {
        let network = &case.given()["template"]["external_network_id"];
        let network = network.as_str().unwrap_or_default();
        let path = format!("/network/v2.0/networks?name={network}&router:external=True as alice");
        expected.cloud_reads.insert(path, 1);
        expected.cloud_reads.insert(VOLUME_TYPES.to_owned(), 1);
    },
};

const IMAGE_BY_NAME: Difference<Case, Expected> = Difference {
    reason: "Glance is not asked for an id that is none, and for hidden images by their name alone",
    is_in: |case| {
        let image = case.given()["template"]["image_id"].as_str();
        let is_name = image.is_some_and(|image| uuid::Uuid::try_parse(image).is_err());
        is_name && is_image_read(case)
    },
    instead: |case, expected| {
        let image = &case.given()["template"]["image_id"];
        let image = image.as_str().unwrap_or_default();
        expected
            .cloud_reads
            .remove(&format!("/image/v2/images/{image} as alice"));
        if let Some(count) = expected
            .cloud_reads
            .remove("/image/v2/images?os_hidden=True as alice")
        {
            let by_name = format!("/image/v2/images?name={image}&os_hidden=true as alice");
            expected.cloud_reads.insert(by_name, count);
        }
    },
};

const SAME_CREDENTIAL_AGAIN: Difference<Case, Expected> = Difference {
    reason: "a create that is made again goes on with the credential that its secret has",
    is_in: |case| case.name() == "create/again-after-a-crash",
    instead: |_, expected| {
        // The credential and its secret.
        expected.steps.drain(1..3);
        expected.cloud_reads.remove("/identity/v3/regions as alice");
    },
};

const NO_TOKEN_FOR_A_TOKEN: Difference<Case, Expected> = Difference {
    reason: "the request's token is used as it is: a Keystone that gives no tokens is not noticed",
    is_in: |case| case.name() == "errors/keystone-503",
    instead: |_, expected| {
        let minimal = titled("capi-helm/create/minimal").expect("it is recorded");
        *expected = Expected::of(&minimal, &expected.before);
        expected.cloud_reads.insert(FLAVORS.to_owned(), 1);
    },
};

/// What a case's failure is called by us.
fn words(case: &Case) -> Option<&'static str> {
    Some(match case.name() {
        "errors/image-unknown" => "Unable to find image no-such-image.",
        "errors/helm-busy" => {
            "helm: Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
        }
        "errors/helm-unreachable" => "helm: Error: Kubernetes cluster unreachable: connection refused",
        "errors/namespace-500" => {
            "Namespace magnum-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa cannot be applied: HTTP 500: as told"
        }
        "errors/secret-403" => {
            "Secret my-cluster-1-RANDOM-cloud-credentials cannot be applied: HTTP 403: as told"
        }
        "errors/credential-403" | "credential/rotate-refused" => "Keystone refuses what it was asked for",
        "errors/nova-503" => "Nova is not available: HTTP 503: as told",
        "errors/cinder-500" => "Cinder is not available: HTTP 500: as told",
        "upgrade/helm-fails" => "Error: values do not meet the schema",
        _ => return None,
    })
}

const WORDS: Difference<Case, Expected> = Difference {
    reason: "users are told what failed, not the address or the command line with which it did",
    is_in: |case| words(case).is_some(),
    instead: |case, expected| {
        let reason = std::mem::replace(&mut expected.reason, json!(words(case)));
        let cluster = expected.after.cluster.iter_mut();
        for row in cluster.chain(expected.after.groups.values_mut()) {
            if row["status_reason"] == reason {
                row.insert("status_reason".to_owned(), json!(words(case)));
            }
        }
    },
};

const DENIED_IS_NO_END: Difference<Case, Expected> = Difference {
    reason: "what the management cluster does not allow is tried again: an operator can allow it",
    is_in: |case| case.name() == "errors/secret-403",
    instead: |_, expected| {
        expected.state = "retrying".to_owned();
        let cluster = expected.after.cluster.iter_mut();
        for row in cluster.chain(expected.after.groups.values_mut()) {
            row.insert("status".to_owned(), json!("CREATE_IN_PROGRESS"));
            row.insert("status_reason".to_owned(), Value::Null);
        }
    },
};

const GROUPS_THAT_DID_NOT_BEGIN: Difference<Case, Expected> = Difference {
    reason: "an upgrade that fails before its release is changed leaves the other groups as they were",
    is_in: |case| case.call() == "upgrade_cluster" && !case.is_done() && case.saves().next().is_some(),
    instead: |_, expected| {
        for (name, group) in &mut expected.after.groups {
            if name != "default-worker"
                && let Some(before) = expected.before.groups.get(name)
            {
                group.clone_from(before);
            }
        }
    },
};

const CREDENTIAL_OF_ITS_OWNER: Difference<Case, Expected> = Difference {
    reason: "the credential that is replaced is removed from the user who has it",
    is_in: |case| case.name() == "credential/rotate-by-another-user",
    instead: |_, expected| {
        const WRONG: &str = "/users/33333333333333333333333333333333/application_credentials/";
        const RIGHT: &str = "/users/11111111111111111111111111111111/application_credentials/";
        for step in &mut expected.steps {
            if let Some(request) = step["cloud"]["request"].as_str() {
                step["cloud"]["request"] = json!(request.replace(WRONG, RIGHT));
            }
        }
        expected.cloud_reads = std::mem::take(&mut expected.cloud_reads)
            .into_iter()
            .map(|(path, count)| (path.replace(WRONG, RIGHT), count))
            .collect();
    },
};

const EACH_KIND_OF_ADD_ON: Difference<Case, Expected> = Difference {
    reason: "add-ons of one kind are waited for, too, where another kind is not installed",
    is_in: |case| case.name() == "update/only-one-addon-kind-missing",
    instead: |_, expected| {
        expected
            .cluster()
            .insert("status".to_owned(), json!("UPDATE_IN_PROGRESS"));
    },
};

const WHOLE_LOOKS: Difference<Case, Expected> = Difference {
    reason: "a look is written as a whole: one that cannot read everything writes nothing",
    is_in: |case| case.name() == "error/management-403",
    instead: |_, expected| expected.after = expected.before.clone(),
};

fn allowed_addresses(step: &Value) -> &Value {
    &step["helm"]["values"]["apiServer"]["allowedCidrs"]
}

const BOTH_SPELLINGS: Difference<Case, Expected> = Difference {
    reason: "who may reach a cluster's API is written in both spellings that charts have for it",
    is_in: |case| {
        case.effects()
            .iter()
            .any(|step| allowed_addresses(step).is_array())
    },
    instead: |_, expected| {
        for step in &mut expected.steps {
            let allowed = allowed_addresses(step).clone();
            if allowed.is_array() {
                step["helm"]["values"]["apiServer"]["allowedCIDRs"] = allowed;
            }
        }
    },
};

const REGION_BEFORE_THE_CREDENTIAL: Difference<Case, Expected> = Difference {
    reason: "a credential is made when all is known that is written down with it: none is left behind by what fails there",
    is_in: |case| matches!(case.name(), "errors/credential-403" | "credential/rotate-refused"),
    instead: |_, expected| {
        expected
            .cloud_reads
            .insert("/identity/v3/regions as alice".to_owned(), 1);
    },
};

const CREDENTIAL_BEFORE_THE_SECRETS: Difference<Case, Expected> = Difference {
    reason: "a deleted cluster's credential is removed before the secret that says which one it is",
    is_in: |case| case.name() == "delete/gone",
    instead: |_, expected| expected.steps.reverse(),
};
