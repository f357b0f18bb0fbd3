//! What people have on their side, with everything real behind it: the command `openstack coe`, python-magnumclient,
//! openstacksdk and tempest with Magnum's plugin, as users of two projects that the real Keystone knows, before our API
//! and our conductor over RabbitMQ and MariaDB. Images, flavors, networks and key pairs are looked up in the real Glance,
//! Nova and Neutron.

mod ansible;
mod commands;
mod gophercloud;
mod heat;
mod horizon;
mod libraries;
mod rally;
mod refusals;
mod tempest;
mod world;
