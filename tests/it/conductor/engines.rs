//! Every engine is put through the same life: one suite of checks, one table of subjects.
//!
//! A subject ([`subject::Subject`]) says how to make a driver of an engine, and how to look at what that driver has done
//! without asking it. What may be asked of a driver is a table, too ([`scene::TASKS`]). A check ([`conformance`]) runs
//! for each subject.
//!
//! | to add | touch |
//! |---|---|
//! | an engine, or a shipped driver | a subject like those of [`exec`] and [`python`], and its name in [`subject::every_subject`] |
//! | a task | a row in [`scene::TASKS`] |
//! | a rule that every engine has to keep | a check in [`conformance`] |

mod conformance;
mod exec;
mod python;
mod scene;
mod services;
mod subject;
