//! A model of claim, renewal, takeover, sweep and delete: every order of events with three conductors and two operations of one
//! cluster.
//!
//! Time goes in ticks, of which a lease has three and its owner uses two. Any statement may be slow or lost on its way, any
//! answer too; a conductor may die and start anew, may hang, and may stand still together with its monotonic clock, as a paused
//! machine does. The moves of operations are those of [`magnum_conductor::operations::State::after`]; the rest is written down again in
//! the model, so it shows that the rules are right and not that the code follows them.
//!
//! Under the rules as they are, and pauses that the margin covers, one driver at a time works on the cluster, whatever the clocks of
//! databases say, and every operation ends. Without one of the rules the model finds how it goes wrong.

mod endings;
mod model;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use self::endings::stuck_in;
use self::model::{ALLOWED, FENCED, LeaseModel, NOT_STUCK, ONE_DRIVER, Takeover};
use self::world::MARGIN;

/// Looks at every state that can be reached.
fn holds(model: LeaseModel) {
    model.checker().threads(2).spawn_bfs().join().assert_properties();
}

/// Looks until this does not hold.
fn breaks(model: LeaseModel, property: &'static str) {
    let found = HasDiscoveries::AllOf([property].into());
    let checked = model.checker().threads(2).finish_when(found).spawn_bfs().join();
    assert!(checked.discovery(property).is_some(), "it holds: {property}");
}

#[test]
fn one_driver_works_at_a_time_and_every_operation_ends() {
    holds(LeaseModel::as_built());
}

#[test]
fn a_clock_of_the_database_that_is_right_would_do() {
    holds(LeaseModel {
        takeover: Takeover::DatabaseClock,
        ..LeaseModel::as_built()
    });
}

#[test]
fn by_a_clock_that_is_ahead_two_drivers_work_at_once() {
    let ahead = LeaseModel {
        takeover: Takeover::DatabaseClock,
        ahead: [0, 0, 2],
        pauses: 0,
        crashes: 0,
        ..without_deadlines()
    };
    breaks(ahead, ONE_DRIVER);
}

#[test]
fn an_owner_that_counted_from_the_answer_would_drive_beside_the_next_one() {
    let late = LeaseModel {
        counts_from_sending: false,
        pauses: 0,
        ..LeaseModel::as_built()
    };
    breaks(late, ONE_DRIVER);
}

/// As built, where no sweep ends what waits for too long.
fn without_deadlines() -> LeaseModel {
    LeaseModel {
        may_be_overdue: false,
        ..LeaseModel::as_built()
    }
}

#[test]
fn a_way_leads_to_the_end_from_everywhere() {
    assert_eq!(stuck_in(&without_deadlines()), None);
}

#[test]
fn if_only_owners_went_on_with_what_is_running_a_death_would_leave_it_so() {
    let forsaken = LeaseModel {
        takeover: Takeover::Never,
        pauses: 0,
        ..without_deadlines()
    };
    assert!(stuck_in(&forsaken).is_some());
}

/// Longer than the margin.
fn paused_for_long() -> LeaseModel {
    LeaseModel {
        pauses: MARGIN + 1,
        crashes: 0,
        ..without_deadlines()
    }
}

#[test]
fn a_machine_that_stands_still_for_long_drives_beside_the_next_one_and_writes_nothing() {
    let checked = paused_for_long().checker().threads(2).spawn_bfs().join();
    assert!(checked.discovery(ONE_DRIVER).is_some());
    for property in [FENCED, ALLOWED, NOT_STUCK] {
        assert!(checked.discovery(property).is_none(), "{property}");
    }
}

#[test]
fn without_the_fence_it_writes_over_what_the_next_one_did() {
    let unfenced = LeaseModel {
        is_fenced: false,
        ..paused_for_long()
    };
    breaks(unfenced, FENCED);
}
