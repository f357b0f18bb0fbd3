//! The two driver packages for Cluster API, unchanged, through the whole chain: what they did to clouds and clusters when
//! they were recorded is what they do when a message asks our conductor for it.
//!
//! A case (`tests/fixtures/plugins`, whose README describes it) is rows, options and a world; a real conductor on a real
//! database with the adopted packages gets the request, or looks by itself; the doubles of `tests/testbed/plugins` write
//! down what reaches them.
//!
//! | call | how it is made |
//! |---|---|
//! | `create_cluster` | the message; the rows are put as given when only the driver's call is left to be done |
//! | other operations | the rows as given, but for what the message changes; then the message. A cluster that exists was built by the same driver |
//! | `update_cluster_status`, `health` | the conductor's own look, one for each case |
//! | `validate_master_size`, `validate_master_resize` | not made, since no request leads to such a call: what the conductor has announced of the driver is asked, which API and conductor decide by |
//!
//! Compared are the operation's state and reason, the effects in order, the reads of the cloud, and the rows afterwards. What
//! the chain does not do as recorded is listed in `differences`. Not compared, since it is not the driver's:
//!
//! * the status of a cluster that is created: it is `CREATE_IN_PROGRESS`, also where one was recorded that a create found
//!   built already;
//! * `resourceVersion`, by which a double counts what was before;
//! * how often objects were read: the rows tell what was written.
//!
//! A run takes one case of nine and one for each difference; `MAGNUM_TESTS_PLUGIN_RUN=all` takes all of them
//! (`docs/testing.md`).

mod case;
mod comparing;
mod differences;
mod expected;
mod given;
mod killed;
mod looks;
mod our_differences;
mod playing;
mod request;
mod rows;
mod stage;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use magnum_tests::Backend;

use super::replay::{Difference, Played, Recorded as _, Selection, judge};
use case::Case;
use differences::DIFFERENCES;
use expected::Expected;
use our_differences::OUR_DIFFERENCES;
use stage::{Drivers, Stage};

/// Deployments at a time.
const STAGES: usize = 2;

type Options = Vec<(String, String, String)>;

#[tokio::test(flavor = "multi_thread")]
async fn driver_packages_do_through_our_chain_what_they_were_recorded_to_do() -> Result<()> {
    all(&case::selected()?, Drivers::Packages, DIFFERENCES).await
}

/// The native driver, which has the names, values and statuses of the package.
#[tokio::test(flavor = "multi_thread")]
async fn our_driver_does_what_magnum_capi_helm_was_recorded_to_do() -> Result<()> {
    all(&case::of_capi_helm()?, Drivers::Ours, OUR_DIFFERENCES).await
}

async fn all(
    selection: &Selection<Case>,
    drivers: Drivers,
    differences: &[Difference<Case, Expected>],
) -> Result<()> {
    let mut groups: BTreeMap<(bool, Options), Vec<&Case>> = BTreeMap::new();
    for case in &selection.cases {
        groups
            .entry((case.is_look(), case.options()))
            .or_default()
            .push(case);
    }
    let played: Vec<Played> = futures::stream::iter(groups.into_values().enumerate())
        .map(|(number, cases)| {
            play(
                Backend::ALL[number % Backend::ALL.len()],
                drivers,
                differences,
                cases,
            )
        })
        .buffer_unordered(STAGES)
        .try_collect()
        .await?;
    judge(selection, &played, differences)
}

async fn play(
    backend: Backend,
    drivers: Drivers,
    differences: &[Difference<Case, Expected>],
    cases: Vec<&Case>,
) -> Result<Played> {
    let first = cases.first().context("a case")?;
    let mut stage = Stage::new(backend, drivers, &first.options(), first.is_look()).await?;
    let mut played = Played::default();
    for case in cases {
        let outcome = match stage.play(case).await {
            Ok(outcome) => outcome,
            Err(error) => {
                played.add(&case.title(), &[format!("{error:#}")]);
                continue;
            }
        };
        let mut expected = Expected::of(case, &outcome.before);
        played
            .applied
            .extend(Difference::apply(differences, case, &mut expected));
        played.add(&case.title(), &expected.differences(&outcome));
    }
    Ok(played)
}
