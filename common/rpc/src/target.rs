//! Names: from a target to an exchange and a routing key, and what queues are called.
//!
//! Pure. The names are oslo.messaging's and shared with Python peers, so none of them may change.

use uuid::Uuid;

/// The exchange and the topic that all names derive from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// `[DEFAULT] control_exchange`.
    pub exchange: String,
    /// `[conductor] topic`.
    pub topic: String,
}

/// Who shall handle a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Any one server of the topic.
    AnyServer,
    /// The server with this id.
    Server(String),
    /// All servers.
    AllServers,
}

/// Where a message is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Exchange; empty is the default exchange.
    pub exchange: String,
    /// Routing key.
    pub routing_key: String,
}

impl Names {
    /// The queue that all servers compete for; also its routing key.
    pub fn topic_queue(&self) -> &str {
        &self.topic
    }

    /// The queue of one server; also its routing key.
    pub fn server_queue(&self, server_id: &str) -> String {
        format!("{}.{server_id}", self.topic)
    }

    /// The exchange that copies to all servers. Not prefixed with the control exchange: all services of the
    /// virtual host with this topic share it.
    pub fn fanout_exchange(&self) -> String {
        format!("{}_fanout", self.topic)
    }

    /// One server's copy queue, by what makes it unique. Kept for the life of the server, over reconnects.
    pub fn fanout_queue(&self, unique: &str) -> String {
        format!("{}_fanout_{unique}", self.topic)
    }

    /// Where a request for `target` is published.
    pub fn route(&self, target: &Target) -> Route {
        match target {
            Target::AnyServer => Route {
                exchange: self.exchange.clone(),
                routing_key: self.topic.clone(),
            },
            Target::Server(id) => Route {
                exchange: self.exchange.clone(),
                routing_key: self.server_queue(id),
            },
            Target::AllServers => Route {
                exchange: self.fanout_exchange(),
                routing_key: String::new(),
            },
        }
    }
}

/// A process's reply queue, by what makes it unique.
pub fn reply_queue(unique: &str) -> String {
    format!("reply_{unique}")
}

/// A queue by its own name, through the default exchange: replies and dead letters.
pub fn direct(queue: &str) -> Route {
    Route {
        exchange: String::new(),
        routing_key: queue.to_owned(),
    }
}

/// A fresh server id in Magnum's form: 12 characters of lower-case base32.
pub fn new_server_id() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let random = Uuid::new_v4();
    random
        .as_bytes()
        .iter()
        .take(12)
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            exchange: "magnum".into(),
            topic: "magnum-conductor".into(),
        }
    }

    #[test]
    fn each_target_has_its_exchange_and_key() {
        for (target, exchange, key) in [
            (Target::AnyServer, "magnum", "magnum-conductor"),
            (Target::Server("abc".into()), "magnum", "magnum-conductor.abc"),
            (Target::AllServers, "magnum-conductor_fanout", ""),
        ] {
            let route = names().route(&target);
            assert_eq!(
                (route.exchange.as_str(), route.routing_key.as_str()),
                (exchange, key)
            );
        }
        assert_eq!(direct("reply_1").exchange, "");
    }

    #[test]
    fn names_of_queues_and_servers_have_the_peers_form() {
        assert_eq!(names().fanout_queue("n:p:1"), "magnum-conductor_fanout_n:p:1");
        assert_eq!(reply_queue("n:p:2"), "reply_n:p:2");
        assert_ne!(new_server_id(), new_server_id());
        let id = new_server_id();
        assert_eq!(id.len(), 12);
        assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
    }
}
