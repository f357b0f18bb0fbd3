//! `fake://<name>`: a broker inside one process.
//!
//! For the embedded default, where API and conductor share a process, and for tests. Same semantics as RabbitMQ
//! where our programs can tell: competing consumers, prefetch, redelivery of what was not settled, fanout,
//! direct replies, mandatory messages, expiry. Everything with the same whole URL shares one broker.
//!
//! Not given: anything durable. Messages live as long as a transport of that name does; what a restart must
//! not lose is in the journal by then. Policies, `x-expires` and auto-delete are ignored.

mod broker;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use self::broker::Broker;
use self::transport::FakeTransport;
use super::authentication::Authentication;
use super::options::RabbitOptions;
use super::transport::Transport;

/// The brokers of this process. Weak: a broker ends with its last transport.
static BROKERS: LazyLock<Mutex<HashMap<String, Weak<Broker>>>> = LazyLock::new(Mutex::default);

/// A transport to the broker of that name, which is made if there is none.
pub(super) fn connect(
    name: &str,
    options: RabbitOptions,
    authentication: Authentication,
) -> Arc<dyn Transport> {
    // The table is valid after a panic: each entry is written in one step.
    let mut brokers = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = brokers.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
        let broker = Arc::new(Broker::default());
        brokers.retain(|_, other| other.strong_count() > 0);
        brokers.insert(name.to_owned(), Arc::downgrade(&broker));
        broker
    });
    Arc::new(FakeTransport::new(broker, options, authentication))
}
