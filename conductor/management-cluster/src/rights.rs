//! What an account may do, as the API server says of itself (`SelfSubjectAccessReview`).

use std::fmt;

use futures::stream::{StreamExt as _, TryStreamExt as _, iter};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;

/// Questions at the same time.
const AT_ONCE: usize = 8;

/// To do one thing with one kind, in all namespaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// API group; empty is the core's.
    pub group: String,
    /// `machinedeployments`, or `machinedeployments/scale`.
    pub resource: String,
    /// `get`, `list`, …
    pub verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.group.is_empty() {
            return Ok(());
        }
        write!(f, ".{}", self.group)
    }
}

impl Right {
    /// What the roles in a manifest give, each once.
    pub(crate) fn all_in(manifest: &str) -> Result<Vec<Self>, String> {
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(manifest).map_err(|error| error.to_string())?;
        let roles = documents
            .into_iter()
            .filter(|document| document["kind"] == "ClusterRole");
        let mut rights = Vec::new();
        for role in roles {
            let role: ClusterRole = serde_json::from_value(role).map_err(|error| error.to_string())?;
            for rule in role.rules.unwrap_or_default() {
                for group in rule.api_groups.iter().flatten() {
                    for resource in rule.resources.iter().flatten() {
                        rights.extend(rule.verbs.iter().map(|verb| Self {
                            group: group.clone(),
                            resource: resource.clone(),
                            verb: verb.clone(),
                        }));
                    }
                }
            }
        }
        rights.sort();
        rights.dedup();
        Ok(rights)
    }

    fn question(&self) -> SelfSubjectAccessReview {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (self.resource.as_str(), None),
        };
        SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some(self.group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource,
                    verb: Some(self.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                non_resource_attributes: None,
            },
            ..SelfSubjectAccessReview::default()
        }
    }
}

/// Those of `rights` that the account does not have, in their order.
///
/// # Errors
/// The API server cannot be asked.
pub(crate) async fn denied(client: &Client, rights: Vec<Right>) -> Result<Vec<Right>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let reviews = &reviews;
    let answers = iter(rights).map(|right| async move {
        let answer = reviews.create(&PostParams::default(), &right.question()).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        Ok::<_, kube::Error>((!allowed).then_some(right))
    });
    let denied: Vec<Option<Right>> = answers.buffered(AT_ONCE).try_collect().await?;
    Ok(denied.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::Needs;

    #[test]
    fn each_right_of_the_shipped_account_is_asked_for_once() {
        let rights = Needs::CapiHelm.rights().unwrap();
        let told: Vec<String> = rights.iter().map(Right::to_string).collect();
        assert!(told.contains(&"patch namespaces".to_owned()), "{told:?}");
        assert!(told.contains(&"update machinedeployments/scale.cluster.x-k8s.io".to_owned()));
        let get_deployments = told
            .iter()
            .filter(|right| *right == "get machinedeployments.cluster.x-k8s.io");
        assert_eq!(get_deployments.count(), 1, "two rules give it");
    }

    #[test]
    fn a_question_has_the_subresource_apart() {
        let right = Right {
            group: "g".into(),
            resource: "things/scale".into(),
            verb: "get".into(),
        };
        let asked = right.question().spec.resource_attributes.unwrap();
        assert_eq!(asked.resource.as_deref(), Some("things"));
        assert_eq!(asked.subresource.as_deref(), Some("scale"));
    }
}
