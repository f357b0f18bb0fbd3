//! What is shown of the journal: to the owner of a cluster, to administrators, and on the operators' page.
//!
//! | module | proves |
//! |---|---|
//! | [`route`] | `GET /v1/clusters/{ident}/operations` tells the truth, to whom it may, for as long as it is known |
//! | [`queries`] | a page of it costs the same queries, however much it shows |
//! | [`ui`] | `/ui` shows it to people, in a real browser, whatever names and reasons hold |

mod queries;
mod route;
mod ui;
