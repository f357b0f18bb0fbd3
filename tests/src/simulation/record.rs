//! What the drivers of a schedule wrote down: the checker's evidence.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use magnum_driver_api::{DriverCall, DriverError, DriverReport};

use super::line::{Line, Stage};
use crate::checker::history::{Call, End, Overlap};

/// The record that the drivers of all conductors share.
#[derive(Default)]
pub struct Record(Mutex<State>);

#[derive(Default)]
struct State {
    written: Written,
    at_work: BTreeMap<String, u32>,
}

/// What is in it.
#[derive(Default, Clone)]
pub struct Written {
    /// Calls.
    pub calls: Vec<Call>,
    /// Calls that found another one at work.
    pub overlaps: Vec<Overlap>,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was written by now.
    pub fn written(&self) -> Written {
        self.lock().written.clone()
    }
}

/// The line of a call in the record, and its place in its cluster.
pub struct Mark<'a> {
    record: &'a Record,
    stage: &'a Stage,
    line: &'a Line,
    cluster: String,
    call: usize,
    has_ended: bool,
}

impl<'a> Mark<'a> {
    /// A call begins in the conductor of this line.
    pub fn begin(record: &'a Record, stage: &'a Stage, line: &'a Line, call: &DriverCall<'_>) -> Self {
        let cluster = call.cluster.uuid.to_string();
        let what = call.task.as_str();
        let (operation, attempt) = (call.operation, call.attempt);
        line.note(format_args!("driver {what} {cluster} {operation} {attempt}"));
        let mut state = record.lock();
        let number = state.written.calls.len();
        let inside = state.at_work.entry(cluster.clone()).or_default();
        *inside += 1;
        let pid = u32::try_from(number).unwrap_or_default();
        if *inside > 1 {
            state.written.overlaps.push(Overlap {
                cluster: cluster.clone(),
                operation: operation.to_string(),
                pid,
            });
        }
        state.written.calls.push(Call {
            call: what.to_owned(),
            cluster: cluster.clone(),
            operation: operation.to_string(),
            attempt,
            conductor: line.name.clone(),
            pid,
            began: stage.trace.elapsed().as_secs_f64(),
            began_wall: stage.now_ms(),
            end: None,
        });
        Self {
            record,
            stage,
            line,
            cluster,
            call: number,
            has_ended: false,
        }
    }

    /// The driver returns, or panics.
    pub fn says(&mut self, outcome: &str, says: Option<&str>) {
        self.line
            .note(format_args!("driver of {} says {outcome}", self.cluster));
        self.has_ended = true;
        let mut state = self.record.lock();
        state.written.calls[self.call].end = Some(End {
            at: self.stage.trace.elapsed().as_secs_f64(),
            outcome: outcome.to_owned(),
            says: says.map(str::to_owned),
        });
    }

    /// The driver returns an error.
    pub fn failed(mut self, outcome: &str, error: DriverError) -> Result<DriverReport, DriverError> {
        let text = error.reason().told().to_owned();
        self.says(outcome, Some(&text));
        Err(error)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.line
                .note(format_args!("driver of {} is dropped", self.cluster));
        }
        let mut state = self.record.lock();
        if let Some(inside) = state.at_work.get_mut(&self.cluster) {
            *inside -= 1;
        }
    }
}
