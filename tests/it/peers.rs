//! Beside real Python: Magnum 23 (and the database of Magnum 22), nothing in it changed.
//!
//! | module | proves |
//! |---|---|
//! | `oslo` | the Python peers of the other tests understand each other |
//! | `adoption` | a database that Magnum made is taken over with everything in it, and goes back to Magnum |
//! | `adoption_elsewhere` | on PostgreSQL and SQLite, where Magnum's tool fails, its classes work on our tables |
//! | `life` | a client of Magnum's API, and of ours, cannot tell Magnum's conductor from ours |
//! | `dashboard_forms` | what the forms of magnum-ui send is answered as Magnum's API answers it |
//! | `differential` | random requests are answered as Magnum's API answers them, or differ by a row of the table |
//! | `mixed_fleet` | one Python conductor and two of ours share the work, and harm each other in nothing |
//! | `heat_adoption` | a Magnum 22 with clusters in Heat is moved to ours, which makes the same of a request as Python does |
//! | `heat_life` | Magnum 22's Heat driver makes, changes and deletes a tenant's cluster under our programs, and leaves nothing |
//! | `heat_interrupted` | a stack that an interrupted attempt has asked Heat for is gone on with, not made again |
//! | `capi_life` | the Cluster API driver packages make, change and delete a tenant's cluster on a real API server, and leave nothing |
//! | `ours_alone` | what Magnum does not have: a Python conductor says so, and the client hears it |
//! | `plugin_replay` | the Cluster API driver packages do through our conductor what they were recorded to do |
//! | `heat_replay` | Magnum 22's Heat driver does through our conductor what it was recorded to do |
//! | `replay` | what the replays have in common |
//! | `python_literals` | a text that is a Python literal, or nearly, is read as Python reads it |
//! | `python_package` | clusters of a driver that is a Python package go from our conductor to Python's, and the other way |
//! | `clients` | every command of `openstack coe`, the libraries, tempest, gophercloud, Ansible, rally, Heat and Horizon work; nobody sees another project's things |

mod adoption;
mod adoption_elsewhere;
mod capi_life;
mod clients;
mod dashboard_forms;
mod differential;
mod heat_adoption;
mod heat_interrupted;
mod heat_life;
mod heat_replay;
mod life;
mod mixed_fleet;
mod oslo;
mod ours_alone;
mod plugin_replay;
mod python_literals;
mod python_package;
mod replay;
