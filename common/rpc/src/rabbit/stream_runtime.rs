//! The runtime in which lapin's threads close their sockets, made before the first connection.
//!
//! A thread of lapin closes a broken connection's socket outside of any tokio runtime. `async-compat`, which holds the
//! socket for it, makes a small runtime with one thread for that, when it is first needed. When that fails since the
//! process may open no descriptor or start no thread just then, it is given up for good: every later connection then
//! ends in a panic, and nobody is told that it has ended. Made at the start, it cannot fail any more.

use std::thread;

use async_compat::Compat;

use crate::error::TransportError;

/// Makes it unless it is there.
///
/// # Errors
/// The system gives no thread or no descriptor. This process can then have no connection at all.
pub(super) fn make() -> Result<(), TransportError> {
    // On a thread without a runtime, where the value's end needs that one.
    let made = thread::Builder::new().spawn(|| drop(Compat::new(())));
    let made = made.map_err(|error| TransportError::NoRuntime(error.to_string()))?;
    made.join()
        .map_err(|_panic| TransportError::NoRuntime("its making has panicked; the log says why".into()))
}
