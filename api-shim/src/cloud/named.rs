//! What a template, a cluster or a node group names in other services.

use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup, StringMap};

use super::volume_types;

/// What is to be looked up, besides the image.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the attributes")]
pub struct Named<'a> {
    pub flavor: Option<&'a str>,
    pub master_flavor: Option<&'a str>,
    pub external_network: Option<&'a str>,
    pub fixed_network: Option<&'a str>,
    pub fixed_subnet: Option<&'a str>,
    /// Some of them name volume types.
    pub labels: Option<&'a StringMap>,
    pub key_pair: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// By a new template. Key pairs belong to users, so that of a template is looked up when a cluster is made of it.
    pub fn by_template(template: &'a ClusterTemplate) -> Self {
        Self {
            flavor: template.flavor_id.as_deref(),
            master_flavor: template.master_flavor_id.as_deref(),
            external_network: template.external_network_id.as_deref(),
            fixed_network: template.fixed_network.as_deref(),
            fixed_subnet: template.fixed_subnet.as_deref(),
            labels: Some(&template.labels),
            key_pair: None,
        }
    }

    /// By the change of a template: what it does not touch is not looked up again. Somebody who corrects a name needs
    /// no other service for it, and is not refused because a flavor was taken away meanwhile.
    pub fn by_change(before: &ClusterTemplate, after: &'a ClusterTemplate) -> Self {
        let all = Self::by_template(after);
        let networks =
            (&before.fixed_network, &before.fixed_subnet) != (&after.fixed_network, &after.fixed_subnet);
        let has = |labels: &StringMap, name: &str| labels.get(name).cloned();
        let differs = |name: &&str| has(&before.labels, name) != has(&after.labels, name);
        // Whether a flavor will do depends on this label.
        let disks = differs(&"boot_volume_size");
        Self {
            flavor: all
                .flavor
                .filter(|_| disks || before.flavor_id != after.flavor_id),
            master_flavor: all
                .master_flavor
                .filter(|_| disks || before.master_flavor_id != after.master_flavor_id),
            external_network: all
                .external_network
                .filter(|_| before.external_network_id != after.external_network_id),
            fixed_network: all.fixed_network.filter(|_| networks),
            fixed_subnet: all.fixed_subnet.filter(|_| networks),
            labels: all.labels.filter(|_| volume_types::LABELS.iter().any(differs)),
            key_pair: None,
        }
    }

    /// By a new cluster, which has what it inherits of its template already.
    pub fn by_cluster(cluster: &'a Cluster, template: &'a ClusterTemplate) -> Self {
        Self {
            flavor: cluster.flavor_id.as_deref(),
            master_flavor: cluster.master_flavor_id.as_deref(),
            external_network: template.external_network_id.as_deref(),
            fixed_network: cluster.fixed_network.as_deref(),
            fixed_subnet: cluster.fixed_subnet.as_deref(),
            labels: Some(&cluster.labels),
            key_pair: cluster.keypair.as_deref(),
        }
    }

    /// By a new node group.
    pub fn by_node_group(group: &'a NodeGroup) -> Self {
        Self {
            flavor: group.flavor_id.as_deref(),
            labels: Some(&group.labels),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> ClusterTemplate {
        let mut template = ClusterTemplate::new("t".into());
        template.name = Some("one".into());
        template.flavor_id = Some("small".into());
        template.master_flavor_id = Some("large".into());
        template.external_network_id = Some("public".into());
        template.fixed_network = Some("net".into());
        template.fixed_subnet = Some("subnet".into());
        template.keypair_id = Some("key".into());
        template
    }

    fn changed(change: fn(&mut ClusterTemplate)) -> ClusterTemplate {
        let mut template = template();
        change(&mut template);
        template
    }

    #[test]
    fn only_patched_fields_are_looked_up_again() {
        let before = template();
        let renamed = changed(|after| after.name = Some("two".into()));
        assert_eq!(Named::by_change(&before, &renamed), Named::default());
        let flavor = changed(|after| after.flavor_id = Some("other".into()));
        let expected = Named {
            flavor: Some("other"),
            ..Named::default()
        };
        assert_eq!(Named::by_change(&before, &flavor), expected);
        let none = changed(|after| after.external_network_id = None);
        assert_eq!(Named::by_change(&before, &none), Named::default());
    }

    #[test]
    fn network_and_subnet_go_together_and_a_volume_size_concerns_the_flavors() {
        let before = template();
        let subnet = changed(|after| after.fixed_subnet = Some("other".into()));
        let expected = Named {
            fixed_network: Some("net"),
            fixed_subnet: Some("other"),
            ..Named::default()
        };
        assert_eq!(Named::by_change(&before, &subnet), expected);
        let size = changed(|after| {
            after.labels.insert("boot_volume_size".into(), "0".into());
        });
        let expected = Named {
            flavor: Some("small"),
            master_flavor: Some("large"),
            ..Named::default()
        };
        assert_eq!(Named::by_change(&before, &size), expected);
        let kind = changed(|after| {
            after.labels.insert("boot_volume_type".into(), "fast".into());
        });
        assert_eq!(Named::by_change(&before, &kind).labels, Some(&kind.labels));
    }

    #[test]
    fn a_template_names_no_key_pair_and_a_cluster_does() {
        assert_eq!(Named::by_template(&template()).key_pair, None);
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.keypair = Some("key".into());
        assert_eq!(Named::by_cluster(&cluster, &template()).key_pair, Some("key"));
        assert_eq!(
            Named::by_cluster(&cluster, &template()).external_network,
            Some("public")
        );
    }
}
