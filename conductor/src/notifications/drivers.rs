//! The drivers of `[oslo_messaging_notifications] driver`, and those of oslo.messaging that exist here.

use std::collections::BTreeSet;

use super::message::NotificationFormat;

/// A driver of notifications. They are used in this order: the log first, since it waits for no broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Driver {
    /// `log`
    Log,
    /// `messaging`
    Messaging,
    /// `messagingv2`
    MessagingV2,
}

impl Driver {
    /// The format that it publishes; `None` for the log.
    pub const fn format(self) -> Option<NotificationFormat> {
        match self {
            Self::Log => None,
            Self::Messaging => Some(NotificationFormat::Bare),
            Self::MessagingV2 => Some(NotificationFormat::Enveloped),
        }
    }
}

/// The drivers that the option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drivers {
    /// Drivers that exist here, each once.
    pub known: BTreeSet<Driver>,
    /// Names of drivers that do not exist here.
    pub unknown: Vec<String>,
}

impl Drivers {
    /// By the option's values.
    pub fn named(names: &[String]) -> Self {
        let mut drivers = Self {
            known: BTreeSet::new(),
            unknown: Vec::new(),
        };
        for name in names {
            match name.as_str() {
                "log" => drop(drivers.known.insert(Driver::Log)),
                "messaging" => drop(drivers.known.insert(Driver::Messaging)),
                "messagingv2" => drop(drivers.known.insert(Driver::MessagingV2)),
                "noop" | "" => {}
                other => drivers.unknown.push(other.to_owned()),
            }
        }
        drivers
    }

    /// Whether a driver publishes to a broker.
    pub fn publishes(&self) -> bool {
        self.known.iter().any(|driver| driver.format().is_some())
    }

    /// A message for each unknown driver, with advice.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|name| {
            format!(
                "[oslo_messaging_notifications] driver: {name:?} does not exist here, and nothing is told by it. Name \
                 messagingv2, messaging or log instead, once for each."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Drivers {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Drivers::named(&names)
    }

    #[test]
    fn drivers_are_known_by_oslos_names_each_once_and_noop_is_none() {
        assert_eq!(named(&[]), named(&["noop", ""]));
        assert!(named(&["noop"]).known.is_empty());
        let drivers = named(&["messagingv2", "log", "messaging", "log"]);
        let known: Vec<Driver> = drivers.known.iter().copied().collect();
        assert_eq!(known, [Driver::Log, Driver::Messaging, Driver::MessagingV2]);
        assert!(drivers.publishes() && !named(&["log"]).publishes());
        assert_eq!(drivers.problems().count(), 0);
    }

    #[test]
    fn unknown_driver_is_named_with_its_option() {
        let drivers = named(&["routing", "log"]);
        assert_eq!(drivers.unknown, ["routing"]);
        let problem = drivers.problems().next().unwrap();
        assert!(
            problem.contains("[oslo_messaging_notifications] driver: \"routing\""),
            "{problem}"
        );
    }
}
