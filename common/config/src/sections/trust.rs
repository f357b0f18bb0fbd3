//! `[trust]`: what the users of clusters get in Keystone. Of Magnum 22 and before; drivers that need trusts still do.

use crate::schema::section;
use magnum_common::secret::Secret;

section! {
    /// Trusts for clusters, and the domain of their users. Only drivers need them that say so in their manifest, such as
    /// those of Magnum 22.
    TrustSection "trust" {
        /// Whether the cluster's nodes get the trust. Read by the drivers that create them.
        cluster_user_trust: bool as Bool = false;
        /// Id of the domain of the clusters' users.
        trustee_domain_id: Option<String> as Opt<Text> = None;
        /// Name of that domain, instead of the id.
        trustee_domain_name: Option<String> as Opt<Text> = None;
        /// Id of the user who creates and deletes users in that domain.
        trustee_domain_admin_id: Option<String> as Opt<Text> = None;
        /// Name of that user, instead of the id.
        trustee_domain_admin_name: Option<String> as Opt<Text> = None;
        /// Domain id of that user. Default: trustee_domain_id.
        trustee_domain_admin_domain_id: Option<String> as Opt<Text> = None;
        /// Domain name of that user. Default: trustee_domain_name.
        trustee_domain_admin_domain_name: Option<String> as Opt<Text> = None;
        /// Password of that user.
        trustee_domain_admin_password: Option<Secret> as Opt<Password> = None;
        /// Roles that a trust delegates. Unset: all roles with which the cluster was requested.
        roles: Vec<String> as List<Text> = Vec::new();
        /// Interface of Keystone's endpoint for the nodes: public, internal or admin. Read by the drivers that create them.
        trustee_keystone_interface: String as Text = "public".to_owned();
        /// Region of that endpoint. Default: the first. Read by the drivers that create the nodes.
        trustee_keystone_region_name: Option<String> as Opt<Text> = None;
    }
}
