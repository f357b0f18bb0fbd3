//! Magnum 22's Heat driver, unchanged, through the whole chain: what it asked a cloud for when it was recorded is what it asks
//! for when a message asks our conductor for it, and what it saved is in our rows.
//!
//! A case (`tests/fixtures/heat`, whose README describes it) is rows, options and a world; a real conductor on a real database
//! with the adopted driver gets the request, or looks by itself. The driver's clients of a cloud are doubles, as they were when
//! it was recorded (`tests/testbed/heat_replay`): the client libraries, and HTTP, are in the tests with a real Heat.
//!
//! | operation | how it is made |
//! |---|---|
//! | `create` | the message; what it does not bring to the default groups is saved when the driver is called |
//! | others | the rows as given, but for what the message brings or changes; then the message |
//! | a look | the rows as given; then the conductor starts, and looks at what is in progress |
//!
//! Compared are the operation's state and reason, the calls in order, with as whom each was made, and all columns of the rows
//! afterwards. What the chain does not do as recorded is listed in `differences`. Not compared:
//!
//! * the files of a stack that name where Magnum lies;
//! * as whom others than Heat are asked in a look, which is not recorded;
//! * users and trusts of clusters: they are there as the cases want them. That they are made and removed is in
//!   `conductor::trusts` and `heat_life`.
//!
//! A run takes one case of nine and one for each difference; `MAGNUM_TESTS_PLUGIN_RUN=all` takes all of them
//! (`docs/testing.md`).

mod case;
mod comparing;
mod deletions;
mod differences;
mod ends;
mod expected;
mod fixtures;
mod request;
mod rows;
mod stage;
mod words;
mod worlds;

use std::collections::BTreeMap;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use magnum_tests::Backend;

use super::replay::{Difference, Played, Recorded as _, judge};
use case::Case;
use differences::DIFFERENCES;
use expected::Expected;
use stage::Stage;

/// Deployments at a time.
const STAGES: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn magnum_22s_heat_driver_does_through_our_chain_what_it_was_recorded_to_do() -> Result<()> {
    let selection = case::selected()?;
    let mut groups: BTreeMap<(bool, String), Vec<Case>> = BTreeMap::new();
    for case in &selection.cases {
        groups
            .entry((case.is_look(), format!("{:?}", case.options())))
            .or_default()
            .push(case.clone());
    }
    let played: Vec<Played> = futures::stream::iter(groups.into_values().enumerate())
        .map(|(number, cases)| play(Backend::ALL[number % Backend::ALL.len()], cases))
        .buffer_unordered(STAGES)
        .try_collect()
        .await?;
    judge(&selection, &played, DIFFERENCES)
}

async fn play(backend: Backend, cases: Vec<Case>) -> Result<Played> {
    let outcomes = Stage::play(backend, cases.clone()).await?;
    let mut played = Played::default();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let mut expected = Expected::of(case, &outcome.given)?;
        played
            .applied
            .extend(Difference::apply(DIFFERENCES, case, &mut expected));
        played.add(&case.title(), &expected.differences(&outcome));
    }
    Ok(played)
}
