//! Why something failed, told twice: to the users of a cluster, and to administrators.
//!
//! A cluster's `status_reason`, its health's reasons, an operation's end and the answer to a call are read by tenants.
//! What a driver says in its own words is meant for them. What this program finds out by itself may name files of this
//! host, addresses of services inside the cloud or statements of the database, and is not. Nobody can tell the two
//! apart afterwards by looking at the text, so whoever makes the reason decides: [`Reason::open`] has nothing to hide,
//! [`Reason::internal`] comes with a text for tenants. A literal hides nothing and converts by itself.
//!
//! Shown by itself (`Display`) it is the text for tenants: who forgets about the difference says too little, never too
//! much. The log and the journal's events take [`Reason::whole`].

use std::fmt;

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    told: String,
    whole: Option<String>,
}

impl Reason {
    /// One text for all: a driver's own words, or ours without internals.
    pub fn open(text: impl Into<String>) -> Self {
        Self {
            told: text.into(),
            whole: None,
        }
    }

    /// `told` to tenants, `whole` to administrators.
    pub fn internal(told: impl Into<String>, whole: impl Into<String>) -> Self {
        Self {
            told: told.into(),
            whole: Some(whole.into()),
        }
    }

    /// For tenants.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// For administrators.
    pub fn whole(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.told)
    }

    /// Both texts, with `more` behind.
    #[must_use]
    pub fn and(&self, more: &str) -> Self {
        let with = |text: &str| format!("{text}{more}");
        Self {
            told: with(&self.told),
            whole: self.whole.as_deref().map(with),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl From<&'static str> for Reason {
    fn from(literal: &'static str) -> Self {
        Self::open(literal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_writes_what_tenants_may_read() {
        let reason = Reason::internal("the store is away", "/var/lib/magnum: no space").and(" (twice)");
        assert_eq!(reason.to_string(), "the store is away (twice)");
        assert_eq!(reason.told(), "the store is away (twice)");
        assert_eq!(reason.whole(), "/var/lib/magnum: no space (twice)");
        let open = Reason::open("no room").and("!");
        assert_eq!((open.told(), open.whole()), ("no room!", "no room!"));
    }
}
