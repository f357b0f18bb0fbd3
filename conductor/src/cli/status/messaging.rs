//! Whether requests can be sent and taken: the options, the broker, the queue.
//!
//! | check | |
//! |---|---|
//! | Messaging options | what a service refuses at its start, before it has reached any broker; all of it at once |
//! | Message authentication | the keys that sign messages, by ids that are the same on every host |
//! | Message broker | connects and logs in, as the services do |
//! | Queue of requests | what the broker has under its name, and whether that outlives a restart |
//!
//! Looks at one host of `transport_url`: the first that accepts the login. A service that loses it goes on to the others.

use magnum_config::{MessageAuthentication, Settings};
use magnum_rpc::{Authentication, Declaration, RpcOptions, TransportError, TransportUrl, topology};
use magnum_rpc_server::{QueueInspection, inspect};

use super::report::Finding;

/// The program's name in the broker's list of connections.
pub(super) const CONNECTION_NAME: &str = "magnum-status";

/// Makes all these checks. Those after a failed one are left out.
pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let mut refused = Finding::of("Messaging options");
    let options = match RpcOptions::try_from(settings) {
        Ok(options) => options,
        Err(error) => {
            refused.fail(error.to_string());
            return vec![refused];
        }
    };
    if let TransportUrl::Fake(_) = options.url {
        refused.warn(
            "[DEFAULT] transport_url: fake:// connects the parts of one process. Services of their own find each \
             other by rabbit:// only.",
        );
        return vec![refused];
    }
    for problem in options.rabbit.problems() {
        refused.fail(format!("{problem}. Services do not start with it."));
    }
    if options.rabbit.ssl && options.rabbit.ssl_ca_file.is_none() {
        refused.warn(
            "[oslo_messaging_rabbit] ssl is on without ssl_ca_file: whoever answers is taken for the broker. Set \
             ssl_ca_file to the CA bundle that the broker's certificate is from.",
        );
    }
    let signing = authentication(settings);
    let mut broker = Finding::of("Message broker");
    let names = &options.addressing.names;
    let declarations = [
        topology::control_exchange(names, &options.rabbit),
        Declaration::Queue(topology::topic_queue(names.topic_queue(), &options.rabbit)),
    ];
    match inspect(&options, CONNECTION_NAME, &declarations).await {
        Ok(things) => vec![refused, signing, broker, queue(&options, things)],
        Err(error @ TransportError::Unreachable(_)) => {
            broker.fail(unreachable("[DEFAULT] transport_url", &error));
            vec![refused, signing, broker]
        }
        Err(error) => {
            refused.fail(format!("{error}. Services do not start with it."));
            vec![refused]
        }
    }
}

/// The message for a broker that cannot be reached or refuses the login.
pub(super) fn unreachable(option: &str, error: &TransportError) -> String {
    format!(
        "{option}: {error}. See that RabbitMQ runs there (rabbitmq-diagnostics check_running), that this host reaches \
         that port, and that user and password are right and have permissions on the virtual host \
         (rabbitmqctl authenticate_user, rabbitmqctl list_permissions -p)."
    )
}

/// Checks that requests survive a restart of the broker, and that their queue is as configured.
fn queue(options: &RpcOptions, things: Vec<(String, QueueInspection)>) -> Finding {
    let mut finding = Finding::of("Queue of requests");
    if !options.rabbit.durable_topics() {
        finding.warn(
            "The queue of requests is not durable: requests that the broker has confirmed are lost when it restarts. \
             Set [oslo_messaging_rabbit] rabbit_quorum_queue = true for all services, and delete the old queue and \
             exchange while none of them runs.",
        );
    }
    mismatches(&mut finding, things);
    finding
}

/// A warning for each thing that exists with other arguments.
pub(super) fn mismatches(finding: &mut Finding, things: Vec<(String, QueueInspection)>) {
    for (name, found) in things {
        if let QueueInspection::Mismatch(advice) = found {
            finding.warn(format!(
                "{name} exists with other arguments than the options say, and will be used as it is: {advice}."
            ));
        }
    }
}

/// Whether the keys can be used. The ids are for comparison: a host with another key is not understood.
fn authentication(settings: &Settings) -> Finding {
    let mut finding = Finding::of("Message authentication");
    let mode = settings.conductor.message_authentication;
    match Authentication::load(&settings.conductor) {
        Err(error) => finding.fail(format!(
            "[conductor] message_key_file: {error}. Services do not start with it."
        )),
        Ok(authentication) => {
            match authentication.key_ids().as_slice() {
                [] => {}
                [first, others @ ..] => {
                    let others = match others {
                        [] => String::new(),
                        others => format!(", and accepted from {}", others.join(", ")),
                    };
                    finding.note(format!("Messages are signed with key {first}{others}: the same has to stand here on every host."));
                    if mode == MessageAuthentication::Sign {
                        finding.note(
                            "Others are accepted, too. Set message_authentication = require when \
                         magnum_messages_unsigned_total stands still on all conductors.",
                        );
                    }
                }
            }
        }
    }
    finding
}
