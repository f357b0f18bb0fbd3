//! What people have on their side, with everything real behind it: the command `openstack coe`, python-magnumclient,
//! openstacksdk, gophercloud, Ansible's collection, rally, Heat's resources, Horizon with magnum-ui, and tempest with Magnum's
//! plugin, as users of two projects that the real Keystone knows, before our API and our conductor over RabbitMQ and MariaDB.
//! Images, flavors, networks and key pairs are looked up in the real Glance, Nova and Neutron.
//!
//! What each does here, with its version, is in `docs/clients.md`; `versions` proves that those are the versions.

mod ansible;
mod commands;
mod gophercloud;
mod heat;
mod horizon;
mod libraries;
mod rally;
mod refusals;
mod tempest;
mod versions;
mod world;
