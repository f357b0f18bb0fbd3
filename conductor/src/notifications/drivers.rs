//! The drivers of oslo.messaging that `[oslo_messaging_notifications] driver` names, and what is here of them.

use std::collections::BTreeSet;

use super::message::NotificationFormat;

/// Where notifications go. In this order: what cannot wait for a broker comes first.
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
    /// How it publishes; none for the log.
    pub const fn format(self) -> Option<NotificationFormat> {
        match self {
            Self::Log => None,
            Self::Messaging => Some(NotificationFormat::Bare),
            Self::MessagingV2 => Some(NotificationFormat::Enveloped),
        }
    }
}

/// What the option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drivers {
    /// Each once.
    pub here: BTreeSet<Driver>,
    /// Names without a driver.
    pub absent: Vec<String>,
}

impl Drivers {
    /// By the option's values.
    pub fn named(names: &[String]) -> Self {
        let mut drivers = Self {
            here: BTreeSet::new(),
            absent: Vec::new(),
        };
        for name in names {
            match name.as_str() {
                "log" => drop(drivers.here.insert(Driver::Log)),
                "messaging" => drop(drivers.here.insert(Driver::Messaging)),
                "messagingv2" => drop(drivers.here.insert(Driver::MessagingV2)),
                "noop" | "" => {}
                other => drivers.absent.push(other.to_owned()),
            }
        }
        drivers
    }

    /// Whether there is anything to publish.
    pub fn publish(&self) -> bool {
        self.here.iter().any(|driver| driver.format().is_some())
    }

    /// A sentence about each name without a driver, with what to do.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.absent.iter().map(|name| {
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
        assert!(named(&["noop"]).here.is_empty());
        let drivers = named(&["messagingv2", "log", "messaging", "log"]);
        let here: Vec<Driver> = drivers.here.iter().copied().collect();
        assert_eq!(here, [Driver::Log, Driver::Messaging, Driver::MessagingV2]);
        assert!(drivers.publish() && !named(&["log"]).publish());
        assert_eq!(drivers.problems().count(), 0);
    }

    #[test]
    fn a_driver_that_is_not_here_is_named_with_its_option() {
        let drivers = named(&["routing", "log"]);
        assert_eq!(drivers.absent, ["routing"]);
        let problem = drivers.problems().next().unwrap();
        assert!(
            problem.contains("[oslo_messaging_notifications] driver: \"routing\""),
            "{problem}"
        );
    }
}
