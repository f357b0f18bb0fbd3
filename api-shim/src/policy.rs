//! Who may do what: Magnum's default policy rules, as pure functions.
//!
//! The rules are those of Magnum 23 (`magnum/common/policies`) for the routes that are
//! served. An operator's `policy.yaml` is not read yet.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Cluster;

/// Whose resource it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target<'a> {
    /// The owning project.
    pub project_id: Option<&'a str>,
    /// The user who made it.
    pub user_id: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Something that is about to belong to the caller.
    pub fn own(context: &'a RequestContext) -> Self {
        Self {
            project_id: context.project_id(),
            user_id: context.user_id(),
        }
    }

    /// A resource of `project_id`.
    pub fn of(project_id: Option<&'a str>) -> Self {
        Self {
            project_id,
            user_id: None,
        }
    }

    /// A cluster, which knows its user as well.
    pub fn cluster(cluster: &'a Cluster) -> Self {
        Self {
            project_id: cluster.project_id.as_deref(),
            user_id: cluster.user_id.as_deref(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Check {
    Admin,
    AdminOrReader,
    AdminOrMember,
    AdminOrReaderUser,
    AdminOrMemberUser,
    /// Of the project; being an administrator is not enough.
    Member,
}

macro_rules! rules {
    ($($rule:ident $name:literal $check:ident;)*) => {
        /// A rule by which one kind of request is allowed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names are Magnum's rule names")]
        pub enum Rule {
            $($rule,)*
        }

        impl Rule {
            /// The name in policy files and in refusals.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            fn check(self) -> Check {
                match self {
                    $(Self::$rule => Check::$check,)*
                }
            }
        }
    };
}

rules! {
    ClusterTemplateCreate "clustertemplate:create" AdminOrMember;
    ClusterTemplateGet "clustertemplate:get" AdminOrReader;
    ClusterTemplateGetAll "clustertemplate:get_all" AdminOrReader;
    ClusterTemplateDetail "clustertemplate:detail" AdminOrReader;
    ClusterTemplateUpdate "clustertemplate:update" AdminOrMember;
    ClusterTemplateDelete "clustertemplate:delete" AdminOrMember;
    ClusterTemplatePublish "clustertemplate:publish" Admin;
    ClusterCreate "cluster:create" AdminOrMember;
    ClusterGet "cluster:get" AdminOrReader;
    ClusterGetAll "cluster:get_all" AdminOrReader;
    ClusterDetail "cluster:detail" AdminOrReader;
    ClusterUpdate "cluster:update" AdminOrMember;
    ClusterDelete "cluster:delete" AdminOrMember;
    ClusterResize "cluster:resize" AdminOrMember;
    ClusterUpgrade "cluster:upgrade" AdminOrMember;
    NodegroupGet "nodegroup:get" AdminOrReader;
    NodegroupGetAll "nodegroup:get_all" AdminOrReader;
    NodegroupCreate "nodegroup:create" AdminOrMember;
    NodegroupUpdate "nodegroup:update" AdminOrMember;
    NodegroupDelete "nodegroup:delete" AdminOrMember;
    CertificateGet "certificate:get" AdminOrReaderUser;
    CertificateCreate "certificate:create" AdminOrMemberUser;
    CertificateRotateCa "certificate:rotate_ca" AdminOrMember;
    CredentialRotate "credential:rotate" Member;
    QuotaGet "quota:get" AdminOrReader;
    QuotaGetAll "quota:get_all" Admin;
    QuotaCreate "quota:create" Admin;
    QuotaUpdate "quota:update" Admin;
    QuotaDelete "quota:delete" Admin;
    StatsGetAll "stats:get_all" AdminOrReader;
    FederationCreate "federation:create" AdminOrMember;
    FederationGet "federation:get" AdminOrReader;
    FederationGetAll "federation:get_all" AdminOrReader;
    FederationDetail "federation:detail" AdminOrReader;
    FederationUpdate "federation:update" AdminOrMember;
    FederationDelete "federation:delete" AdminOrMember;
    ServiceGetAll "magnum-service:get_all" Admin;
}

/// Whether `context` passes `rule` for `target`.
pub fn allows(rule: Rule, context: &RequestContext, target: &Target<'_>) -> bool {
    let check = rule.check();
    if context.is_admin() && check != Check::Member {
        return true;
    }
    // A caller without a project owns nothing, not even what has no owner.
    let in_project = |role| {
        context.project_id().is_some() && context.project_id() == target.project_id && has_role(context, role)
    };
    let is_user = || context.user_id().is_some() && context.user_id() == target.user_id;
    match check {
        Check::Admin => false,
        Check::AdminOrReader => in_project("reader"),
        Check::AdminOrMember | Check::Member => in_project("member"),
        Check::AdminOrReaderUser => in_project("reader") && is_user(),
        Check::AdminOrMemberUser => in_project("member") && is_user(),
    }
}

/// The refusal is `PolicyNotAuthorized`, 403, and names the rule.
pub fn authorize(rule: Rule, context: &RequestContext, target: &Target<'_>) -> Result<(), Fault> {
    if allows(rule, context, target) {
        return Ok(());
    }
    Err(Fault::new(
        Exception::PolicyNotAuthorized,
        format!("Policy doesn't allow {} to be performed.", rule.name()),
    ))
}

fn has_role(context: &RequestContext, wanted: &str) -> bool {
    context.roles().any(|role| role.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use magnum_common::context::Caller;
    use magnum_common::ids::RequestId;

    use super::*;

    fn context(roles: &[&str], is_admin: bool) -> RequestContext {
        let caller = Caller {
            project_id: Some("p".into()),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            is_admin,
            ..Caller::default()
        };
        RequestContext::for_caller(&caller, &RequestId::random())
    }

    #[test]
    fn a_reader_reads_and_a_member_writes_only_in_their_own_project() {
        let (own, other) = (Target::of(Some("p")), Target::of(Some("q")));
        let reader = context(&["reader"], false);
        assert!(allows(Rule::ClusterGet, &reader, &own));
        assert!(!allows(Rule::ClusterGet, &reader, &other));
        assert!(!allows(Rule::ClusterCreate, &reader, &own));
        let member = context(&["Member"], false);
        assert!(allows(Rule::ClusterCreate, &member, &own));
        assert!(!allows(Rule::ClusterDelete, &member, &other));
        assert!(
            !allows(Rule::ClusterGet, &member, &own),
            "member does not imply reader here"
        );
    }

    #[test]
    fn an_administrator_passes_every_rule_everywhere() {
        let admin = context(&["admin"], true);
        assert!(allows(Rule::ClusterDelete, &admin, &Target::of(Some("q"))));
        assert!(allows(Rule::ServiceGetAll, &admin, &Target::default()));
    }

    #[test]
    fn a_certificate_is_the_business_of_who_made_the_cluster_and_of_administrators() {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.project_id = Some("p".into());
        cluster.user_id = Some("u".into());
        let of = |user: &str, is_admin| {
            let caller = Caller {
                project_id: Some("p".into()),
                user_id: Some(user.into()),
                roles: vec!["member".into(), "reader".into()],
                is_admin,
                ..Caller::default()
            };
            RequestContext::for_caller(&caller, &RequestId::random())
        };
        for rule in [Rule::CertificateGet, Rule::CertificateCreate] {
            assert!(allows(rule, &of("u", false), &Target::cluster(&cluster)));
            assert!(!allows(rule, &of("colleague", false), &Target::cluster(&cluster)));
            assert!(allows(rule, &of("colleague", true), &Target::cluster(&cluster)));
        }
    }

    #[test]
    fn a_credential_is_rotated_by_members_whether_administrators_or_not() {
        let own = Target::of(Some("p"));
        assert!(allows(Rule::CredentialRotate, &context(&["member"], false), &own));
        assert!(!allows(Rule::CredentialRotate, &context(&["admin"], true), &own));
    }

    #[test]
    fn the_refusal_names_the_rule() {
        let fault = authorize(
            Rule::ServiceGetAll,
            &context(&["member"], false),
            &Target::default(),
        )
        .unwrap_err();
        assert_eq!(
            fault.message,
            "Policy doesn't allow magnum-service:get_all to be performed."
        );
        assert_eq!(fault.code(), 403);
    }
}
