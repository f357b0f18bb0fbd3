//! What operators have: the journal as it is shown to them and to owners of clusters, programs, configuration,
//! documents.
//!
//! | module | proves |
//! |---|---|
//! | [`route`] | `GET /v1/clusters/{ident}/operations` tells the truth, to whom it may, for as long as it is known |
//! | [`queries`] | a page of it costs the same queries, however much it shows |
//! | `operations_list` | `operations list` shows those that are meant, and goes on |
//! | [`ui`] | `/ui` shows it to people, in a real browser, whatever names and reasons hold |
//! | `admin_ports` | the admin ports answer under their own names only, and nobody keeps their connections |
//! | `config_dialect` | our configuration is read as the real oslo.config reads it |
//! | `documents` | every command in a document works |
//! | `doctor` | `magnum-conductor doctor` names what is stuck, why, and what to do |
//! | `drivers` | `magnum-driver-manage`: a new driver, mistakes told by line, the list |
//! | `management_cluster` | `magnum-driver-manage management-cluster check` says what one lacks |
//! | `units` | systemd understands the units, and measures little exposure |
//! | `status_command` | `magnum-status upgrade check` says what is broken |

mod admin_ports;
mod config_dialect;
mod doctor;
mod documents;
mod drivers;
mod management_cluster;
mod operations_list;
mod queries;
mod route;
mod status_command;
mod ui;
mod units;
