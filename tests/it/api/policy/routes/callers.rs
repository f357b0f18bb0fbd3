//! The callers: each has a user and roles; the test gives each every project.

/// A caller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) user: &'static str,
    pub(super) roles: &'static str,
}

/// The user who created the resources.
const CREATOR: &str = "11111111111111111111111111111111";

/// All callers.
#[rustfmt::skip]
pub(super) const CALLERS: &[Caller] = &[
    Caller { name: "guest", user: "66666666666666666666666666666666", roles: "guest" },
    Caller { name: "reader", user: "22222222222222222222222222222222", roles: "reader" },
    Caller { name: "creator", user: CREATOR, roles: "member,reader" },
    Caller { name: "colleague", user: "33333333333333333333333333333333", roles: "member,reader" },
    Caller { name: "admin", user: "55555555555555555555555555555555", roles: "admin,member,reader" },
    Caller { name: "service", user: "77777777777777777777777777777777", roles: "service" },
];

impl Caller {
    pub(super) fn has(&self, role: &str) -> bool {
        self.roles.split(',').any(|own| own == role)
    }

    pub(super) fn is_creator(&self) -> bool {
        self.user == CREATOR
    }
}
