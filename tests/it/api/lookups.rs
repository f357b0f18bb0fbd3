//! Look-ups in the real Glance, Nova, Neutron, Cinder and Keystone, with the caller's own token.
//!
//! | module | proves |
//! |---|---|
//! | `templates` | a template names what its maker can see, by id or by name, and nothing else |
//! | `clusters` | so do clusters, node groups and quotas |
//! | `counted` | nothing is asked twice, and no more than is needed |
//! | `outages` | a service that goes away is a 503 that names it, under load, and needs no restart |

mod clusters;
mod counted;
mod outages;
mod templates;
mod world;
