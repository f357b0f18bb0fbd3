//! Every rule with its default: Magnum 23's names and checks, and ours beside them.
//!
//! One line per rule: from it come the enumeration that handlers name, the sample file and what `magnum-policy` lists.
//! Base rules are only ever referred to by others; API rules are what handlers ask for.
//!
//! Ours: the `*_all_projects` rules of calls that Magnum's policies allow an administrator for every project and that
//! its code then cannot find (resize, node groups, certificates, credentials); the two of a cluster's operations, of a
//! driver's own API, and of each action that Magnum does not have.

/// A rule that others refer to.
#[derive(Debug, Clone, Copy)]
pub struct BaseRule {
    /// Its name.
    pub name: &'static str,
    /// Its default check.
    pub check: &'static str,
    /// What it means, as a sentence.
    pub about: &'static str,
    /// The check that it had before, in force too while `[oslo_policy] enforce_new_defaults` is off.
    pub deprecated: Option<Deprecated>,
}

/// What a base rule was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecated {
    /// Its name. Magnum registered it with the word `rule:` in front.
    pub name: &'static str,
    /// Its check.
    pub check: &'static str,
}

/// Since when the deprecated checks are deprecated.
pub const DEPRECATED_SINCE: &str = "2023.2 (Magnum 17)";

const ADMIN_OR_OWNER: Deprecated = Deprecated {
    name: "rule:admin_or_owner",
    check: "is_admin:True or project_id:%(project_id)s",
};

const ADMIN_OR_USER: Deprecated = Deprecated {
    name: "rule:admin_or_user",
    check: "((rule:context_is_admin) or (rule:is_user))",
};

const fn base(name: &'static str, check: &'static str, about: &'static str) -> BaseRule {
    BaseRule {
        name,
        check,
        about,
        deprecated: None,
    }
}

const fn was(deprecated: Deprecated, rule: BaseRule) -> BaseRule {
    BaseRule {
        deprecated: Some(deprecated),
        ..rule
    }
}

/// Who counts as an administrator; decides `is_admin` before anything else.
pub const CONTEXT_IS_ADMIN: &str = "context_is_admin";

/// The base rules, in Magnum's order.
pub const BASE: &[BaseRule] = &[
    base(CONTEXT_IS_ADMIN, "role:admin", "Who is an administrator."),
    base(
        "admin_or_owner",
        "is_admin:True or project_id:%(project_id)s",
        "Administrators, and everybody in the owning project.",
    ),
    base(
        "admin_or_user",
        "is_admin:True or user_id:%(user_id)s",
        "Administrators, and the user who made it.",
    ),
    base("is_user", "user_id:%(user_id)s", "The user who made it."),
    base(
        "project_member",
        "role:member and project_id:%(project_id)s",
        "Members of the owning project.",
    ),
    base(
        "project_reader",
        "role:reader and project_id:%(project_id)s",
        "Readers of the owning project.",
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "admin_or_project_reader",
            "(rule:context_is_admin) or (rule:project_reader)",
            "Administrators, and readers of the owning project.",
        ),
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "admin_or_project_member",
            "(rule:context_is_admin) or (rule:project_member)",
            "Administrators, and members of the owning project.",
        ),
    ),
    was(
        ADMIN_OR_USER,
        base(
            "admin_or_project_member_user",
            "(rule:context_is_admin) or ((rule:project_member) and (rule:is_user))",
            "Administrators, and the member who made it.",
        ),
    ),
    was(
        ADMIN_OR_USER,
        base(
            "admin_or_project_member_user_or_cluster_user",
            "(rule:context_is_admin) or ((rule:project_member) and (rule:is_user))",
            "Administrators, and the member who made it; a cluster acts in that member's name.",
        ),
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "project_member_deny_cluster_user",
            "(rule:project_member)",
            "Members of the owning project, administrators only as such.",
        ),
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "admin_or_project_member_deny_cluster_user",
            "(rule:context_is_admin) or (rule:project_member)",
            "Administrators, and members of the owning project.",
        ),
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "project_reader_deny_cluster_user",
            "(rule:project_reader)",
            "Readers of the owning project, administrators only as such.",
        ),
    ),
    was(
        ADMIN_OR_OWNER,
        base(
            "admin_or_project_reader_deny_cluster_user",
            "(rule:context_is_admin) or (rule:project_reader)",
            "Administrators, and readers of the owning project.",
        ),
    ),
    was(
        ADMIN_OR_USER,
        base(
            "admin_or_project_reader_user",
            "(rule:context_is_admin) or ((rule:project_reader) and (rule:is_user))",
            "Administrators, and the reader who made it.",
        ),
    ),
];

const ADMIN: &str = "rule:context_is_admin";
const READER: &str = "rule:admin_or_project_reader";
const READER_NO_CLUSTER: &str = "rule:admin_or_project_reader_deny_cluster_user";
const READER_USER: &str = "rule:admin_or_project_reader_user";
const MEMBER: &str = "rule:admin_or_project_member";
const MEMBER_NO_CLUSTER: &str = "rule:admin_or_project_member_deny_cluster_user";
const MEMBER_USER: &str = "rule:admin_or_project_member_user";
const MEMBER_USER_OR_CLUSTER: &str = "rule:admin_or_project_member_user_or_cluster_user";
const ONLY_MEMBER_NO_CLUSTER: &str = "rule:project_member_deny_cluster_user";

/// What `%(project_id)s` and `%(user_id)s` stand for when a rule is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The caller's own project and user.
    Caller,
    /// The resource's, with all its other attributes.
    Resource,
}
use Asks::{Caller, Resource};

macro_rules! rules {
    ($($rule:ident $name:literal $check:ident $asks:ident $about:literal $([$method:literal $path:literal])+ $(ours $ours:literal)?;)*) => {
        /// A rule by which one kind of request is allowed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are Magnum's rule names")]
        pub enum Rule {
            $($rule,)*
        }

        impl Rule {
            /// All of them, in the order of the sample file.
            pub const ALL: &[Self] = &[$(Self::$rule,)*];

            /// The name in policy files and in refusals.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// The check that holds unless a policy file says otherwise.
            pub fn default_check(self) -> &'static str {
                match self {
                    $(Self::$rule => $check,)*
                }
            }

            /// What the rule is asked about.
            pub fn asks(self) -> Asks {
                match self {
                    $(Self::$rule => $asks,)*
                }
            }

            /// What it allows, as a sentence.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$rule => $about,)*
                }
            }

            /// The requests that it decides: method and path, as the router has it.
            pub fn operations(self) -> &'static [(&'static str, &'static str)] {
                match self {
                    $(Self::$rule => &[$(($method, $path)),+],)*
                }
            }

            /// Whether Magnum does not have it.
            pub fn is_ours(self) -> bool {
                match self {
                    $(Self::$rule => false $(|| $ours)?,)*
                }
            }
        }
    };
}

impl Rule {
    /// The scopes of a token that may ask at all; empty: any. What only administrators may do has none.
    pub fn scopes(self) -> &'static [&'static str] {
        if self.default_check() == ADMIN {
            &[]
        } else {
            &["project"]
        }
    }
}

rules! {
    CertificateGet "certificate:get" READER_USER Resource "Read the CA certificate of a cluster."
        ["GET" "/v1/certificates/{cluster}"] ["GET" "/v1/certificates/{cluster}/{kind}"];
    CertificateGetAllProjects "certificate:get_all_projects" ADMIN Caller "Read the CA certificate of a cluster of any project."
        ["GET" "/v1/certificates/{cluster}"] ["GET" "/v1/certificates/{cluster}/{kind}"] ours true;
    CertificateCreate "certificate:create" MEMBER_USER Resource "Have a certificate signed by the CA of a cluster."
        ["POST" "/v1/certificates"];
    CertificateCreateAllProjects "certificate:create_all_projects" ADMIN Caller "Have a certificate signed by the CA of a cluster of any project."
        ["POST" "/v1/certificates"] ours true;
    CertificateRotateCa "certificate:rotate_ca" MEMBER Resource "Give a cluster a new CA."
        ["PATCH" "/v1/certificates/{cluster}"];
    CertificateRotateCaAllProjects "certificate:rotate_ca_all_projects" ADMIN Caller "Give a cluster of any project a new CA."
        ["PATCH" "/v1/certificates/{cluster}"] ours true;
    ClusterCreate "cluster:create" MEMBER_NO_CLUSTER Caller "Make a cluster."
        ["POST" "/v1/clusters"];
    ClusterDelete "cluster:delete" MEMBER_NO_CLUSTER Resource "Delete a cluster."
        ["DELETE" "/v1/clusters/{ident}"];
    ClusterDeleteAllProjects "cluster:delete_all_projects" ADMIN Caller "Delete a cluster of any project."
        ["DELETE" "/v1/clusters/{ident}"];
    ClusterDetail "cluster:detail" READER_NO_CLUSTER Caller "List clusters with all their attributes."
        ["GET" "/v1/clusters/detail"];
    ClusterDetailAllProjects "cluster:detail_all_projects" ADMIN Caller "List the clusters of all projects with all their attributes."
        ["GET" "/v1/clusters/detail"];
    ClusterGet "cluster:get" READER_NO_CLUSTER Resource "Show a cluster."
        ["GET" "/v1/clusters/{ident}"];
    ClusterGetOneAllProjects "cluster:get_one_all_projects" ADMIN Caller "Show a cluster of any project."
        ["GET" "/v1/clusters/{ident}"];
    ClusterGetAll "cluster:get_all" READER_NO_CLUSTER Caller "List clusters."
        ["GET" "/v1/clusters"];
    ClusterGetAllAllProjects "cluster:get_all_all_projects" ADMIN Caller "List the clusters of all projects."
        ["GET" "/v1/clusters"];
    ClusterGetOperations "cluster:get_operations" READER_NO_CLUSTER Resource "Show what happened to a cluster."
        ["GET" "/v1/clusters/{ident}/operations"] ours true;
    ClusterGetOperationsAllProjects "cluster:get_operations_all_projects" ADMIN Caller "Show what happened to a cluster of any project."
        ["GET" "/v1/clusters/{ident}/operations"] ours true;
    ClusterUpdate "cluster:update" MEMBER_NO_CLUSTER Resource "Change a cluster."
        ["PATCH" "/v1/clusters/{ident}"];
    ClusterUpdateHealthStatus "cluster:update_health_status" MEMBER_USER_OR_CLUSTER Resource "Change the health status of a cluster; asked besides cluster:update."
        ["PATCH" "/v1/clusters/{ident}"];
    ClusterUpdateAllProjects "cluster:update_all_projects" ADMIN Caller "Change a cluster of any project."
        ["PATCH" "/v1/clusters/{ident}"];
    ClusterResize "cluster:resize" MEMBER_NO_CLUSTER Resource "Change the number of nodes of a node group."
        ["POST" "/v1/clusters/{ident}/actions/resize"];
    ClusterResizeAllProjects "cluster:resize_all_projects" ADMIN Caller "Change the number of nodes of a node group of any project."
        ["POST" "/v1/clusters/{ident}/actions/resize"] ours true;
    ClusterUpgrade "cluster:upgrade" MEMBER_NO_CLUSTER Resource "Move a cluster to another cluster template."
        ["POST" "/v1/clusters/{ident}/actions/upgrade"];
    ClusterUpgradeAllProjects "cluster:upgrade_all_projects" ADMIN Caller "Move a cluster of any project to another cluster template."
        ["POST" "/v1/clusters/{ident}/actions/upgrade"];
    ClusterRebuild "cluster:rebuild" MEMBER_NO_CLUSTER Resource "Build nodes of a cluster anew."
        ["POST" "/v1/clusters/{ident}/actions/rebuild"] ours true;
    ClusterRebuildAllProjects "cluster:rebuild_all_projects" ADMIN Caller "Build nodes of a cluster of any project anew."
        ["POST" "/v1/clusters/{ident}/actions/rebuild"] ours true;
    ClusterReboot "cluster:reboot" MEMBER_NO_CLUSTER Resource "Restart nodes of a cluster."
        ["POST" "/v1/clusters/{ident}/actions/reboot"] ours true;
    ClusterRebootAllProjects "cluster:reboot_all_projects" ADMIN Caller "Restart nodes of a cluster of any project."
        ["POST" "/v1/clusters/{ident}/actions/reboot"] ours true;
    ClusterDriverApi "cluster:driver_api" MEMBER_NO_CLUSTER Resource "Call the own API of a cluster's driver, where the driver names no other rule."
        ["GET" "/v1/clusters/{ident}/driver/{*path}"] ["POST" "/v1/clusters/{ident}/driver/{*path}"] ["PUT" "/v1/clusters/{ident}/driver/{*path}"] ["PATCH" "/v1/clusters/{ident}/driver/{*path}"] ["DELETE" "/v1/clusters/{ident}/driver/{*path}"] ours true;
    ClusterDriverApiAllProjects "cluster:driver_api_all_projects" ADMIN Caller "Call the own API of the driver of a cluster of any project; asked besides the driver's rule."
        ["GET" "/v1/clusters/{ident}/driver/{*path}"] ["POST" "/v1/clusters/{ident}/driver/{*path}"] ["PUT" "/v1/clusters/{ident}/driver/{*path}"] ["PATCH" "/v1/clusters/{ident}/driver/{*path}"] ["DELETE" "/v1/clusters/{ident}/driver/{*path}"] ours true;
    ClusterTemplateCreate "clustertemplate:create" MEMBER_NO_CLUSTER Caller "Make a cluster template."
        ["POST" "/v1/clustertemplates"];
    ClusterTemplateDelete "clustertemplate:delete" MEMBER Resource "Delete a cluster template."
        ["DELETE" "/v1/clustertemplates/{ident}"];
    ClusterTemplateDeleteAllProjects "clustertemplate:delete_all_projects" ADMIN Caller "Delete a cluster template of any project."
        ["DELETE" "/v1/clustertemplates/{ident}"];
    ClusterTemplateDetail "clustertemplate:detail" READER_NO_CLUSTER Caller "List cluster templates by the path for details."
        ["GET" "/v1/clustertemplates/detail"];
    ClusterTemplateDetailAllProjects "clustertemplate:detail_all_projects" ADMIN Caller "List the cluster templates of all projects by the path for details."
        ["GET" "/v1/clustertemplates/detail"];
    ClusterTemplateGet "clustertemplate:get" READER_NO_CLUSTER Resource "Show a cluster template; of a public one, the caller's own project is asked about."
        ["GET" "/v1/clustertemplates/{ident}"];
    ClusterTemplateGetOneAllProjects "clustertemplate:get_one_all_projects" ADMIN Caller "Show a cluster template of any project."
        ["GET" "/v1/clustertemplates/{ident}"];
    ClusterTemplateGetAll "clustertemplate:get_all" READER_NO_CLUSTER Caller "List cluster templates."
        ["GET" "/v1/clustertemplates"];
    ClusterTemplateGetAllAllProjects "clustertemplate:get_all_all_projects" ADMIN Caller "List the cluster templates of all projects."
        ["GET" "/v1/clustertemplates"];
    ClusterTemplateUpdate "clustertemplate:update" MEMBER Resource "Change a cluster template."
        ["PATCH" "/v1/clustertemplates/{ident}"];
    ClusterTemplateUpdateAllProjects "clustertemplate:update_all_projects" ADMIN Caller "Change a cluster template of any project."
        ["PATCH" "/v1/clustertemplates/{ident}"];
    ClusterTemplatePublish "clustertemplate:publish" ADMIN Caller "Make a cluster template public or hidden."
        ["POST" "/v1/clustertemplates"] ["PATCH" "/v1/clustertemplates/{ident}"];
    CredentialRotate "credential:rotate" ONLY_MEMBER_NO_CLUSTER Caller "Give a cluster a new credential towards its cloud."
        ["PATCH" "/v1/credentials/{cluster}"];
    CredentialRotateAllProjects "credential:rotate_all_projects" ADMIN Caller "Give a cluster of any project a new credential; asked besides credential:rotate."
        ["PATCH" "/v1/credentials/{cluster}"] ours true;
    FederationCreate "federation:create" MEMBER_NO_CLUSTER Caller "Make a federation."
        ["POST" "/v1/federations"];
    FederationDelete "federation:delete" MEMBER_NO_CLUSTER Resource "Delete a federation."
        ["DELETE" "/v1/federations/{ident}"];
    FederationDetail "federation:detail" READER_NO_CLUSTER Caller "List federations with all their attributes."
        ["GET" "/v1/federations/detail"];
    FederationGet "federation:get" READER_NO_CLUSTER Resource "Show a federation."
        ["GET" "/v1/federations/{ident}"];
    FederationGetAll "federation:get_all" READER_NO_CLUSTER Caller "List federations."
        ["GET" "/v1/federations"];
    FederationUpdate "federation:update" MEMBER_NO_CLUSTER Resource "Change a federation."
        ["PATCH" "/v1/federations/{ident}"];
    ServiceGetAll "magnum-service:get_all" ADMIN Caller "List the conductors."
        ["GET" "/v1/mservices"];
    NodegroupGet "nodegroup:get" READER Caller "Show a node group."
        ["GET" "/v1/clusters/{ident}/nodegroups/{group}"];
    NodegroupGetAll "nodegroup:get_all" READER Caller "List the node groups of a cluster."
        ["GET" "/v1/clusters/{ident}/nodegroups"];
    NodegroupGetAllAllProjects "nodegroup:get_all_all_projects" ADMIN Caller "List the node groups of a cluster of any project."
        ["GET" "/v1/clusters/{ident}/nodegroups"];
    NodegroupGetOneAllProjects "nodegroup:get_one_all_projects" ADMIN Caller "Show a node group of any project."
        ["GET" "/v1/clusters/{ident}/nodegroups/{group}"];
    NodegroupCreate "nodegroup:create" MEMBER Caller "Make a node group."
        ["POST" "/v1/clusters/{ident}/nodegroups"];
    NodegroupCreateAllProjects "nodegroup:create_all_projects" ADMIN Caller "Make a node group in a cluster of any project."
        ["POST" "/v1/clusters/{ident}/nodegroups"] ours true;
    NodegroupDelete "nodegroup:delete" MEMBER Caller "Delete a node group."
        ["DELETE" "/v1/clusters/{ident}/nodegroups/{group}"];
    NodegroupDeleteAllProjects "nodegroup:delete_all_projects" ADMIN Caller "Delete a node group of any project."
        ["DELETE" "/v1/clusters/{ident}/nodegroups/{group}"] ours true;
    NodegroupUpdate "nodegroup:update" MEMBER Caller "Change a node group."
        ["PATCH" "/v1/clusters/{ident}/nodegroups/{group}"];
    NodegroupUpdateAllProjects "nodegroup:update_all_projects" ADMIN Caller "Change a node group of any project."
        ["PATCH" "/v1/clusters/{ident}/nodegroups/{group}"] ours true;
    QuotaCreate "quota:create" ADMIN Caller "Set the quota of a project."
        ["POST" "/v1/quotas"];
    QuotaDelete "quota:delete" ADMIN Caller "Take the quota of a project away, so that the default holds."
        ["DELETE" "/v1/quotas/{project}/{resource}"];
    QuotaGet "quota:get" READER Caller "Show the quota of the caller's project; administrators see every project's."
        ["GET" "/v1/quotas/{project}/{resource}"];
    QuotaGetAll "quota:get_all" ADMIN Caller "List quotas."
        ["GET" "/v1/quotas"];
    QuotaUpdate "quota:update" ADMIN Caller "Change the quota of a project."
        ["PATCH" "/v1/quotas/{project}/{resource}"];
    StatsGetAll "stats:get_all" READER Caller "Count the clusters and nodes of the caller's project; administrators may count any project's."
        ["GET" "/v1/stats"];
}
