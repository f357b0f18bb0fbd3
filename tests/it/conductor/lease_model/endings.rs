//! Whether a way leads to the end of both operations from every state that can be reached.
//!
//! The checker of properties notices a state in which nothing can happen any more. It does not notice states that lead into each
//! other for ever and nowhere else, where conductors are busy and no operation ends: for those this keeps the whole graph.

use indexmap::IndexSet;
use stateright::Model as _;

use super::model::LeaseModel;
use super::world::World;

/// A state from which nothing leads to the end.
pub fn stuck_in(model: &LeaseModel) -> Option<World> {
    let (worlds, before) = graph_of(model);
    let mut can_end: Vec<bool> = worlds.iter().map(World::is_over).collect();
    let mut to_follow: Vec<usize> = (0..can_end.len()).filter(|number| can_end[*number]).collect();
    while let Some(number) = to_follow.pop() {
        for &before in &before[number] {
            if !can_end[before] {
                can_end[before] = true;
                to_follow.push(before);
            }
        }
    }
    let stuck = can_end.iter().position(|can| !can)?;
    worlds.get_index(stuck).cloned()
}

/// All states that can be reached, and for each from which it is.
fn graph_of(model: &LeaseModel) -> (IndexSet<World>, Vec<Vec<usize>>) {
    let mut worlds: IndexSet<World> = model.init_states().into_iter().collect();
    let mut before = vec![Vec::new(); worlds.len()];
    let mut number = 0;
    while let Some(world) = worlds.get_index(number).cloned() {
        for next in model.next_states(&world) {
            let (next, is_new) = worlds.insert_full(next);
            if is_new {
                before.push(Vec::new());
            }
            before[next].push(number);
        }
        number += 1;
    }
    (worlds, before)
}
