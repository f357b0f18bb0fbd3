//! Names that are not read, and what to say about them.
//!
//! An existing file must never be refused for what it holds besides our options. Sections that other services
//! or libraries own are none of our business. In our own sections, an option that the table does not have is
//! either one of Magnum's that has no effect here (silent: the file may be shared with Python processes), or a
//! mistake (warned). Sections that only old releases read are warned about once each.

use std::collections::BTreeMap;

use super::option_spec::{Key, OptionSpec};
use super::without_effect;

/// Sections and options of old releases, and what became of them.
const OLD_SECTIONS: &[(&str, &str)] = &[
    ("bay", "its options are in [cluster]"),
    (
        "ssl",
        "TLS of the API is configured by [api] enabled_ssl, ssl_cert_file and ssl_key_file",
    ),
];
const OLD_OPTIONS: &[(&str, &str, &str)] = &[(
    "DEFAULT",
    "enabled_drivers",
    "every driver that is found is enabled; see [drivers] disabled_drivers",
)];

/// Sections that Magnum's libraries once read, by how they begin.
const OLD_BEGINNINGS: &[(&str, &str)] = &[(
    "cors.",
    "list the origins in [cors] allowed_origin, whose options are for all of them",
)];

/// What to say about a name found in a file, if anything.
pub(super) fn remark(key: &Key, specs: &BTreeMap<Key, OptionSpec>) -> Option<String> {
    let (section, name) = key;
    let is = |(a, b): &(&str, &str)| a == section && b == name;
    if specs.contains_key(key) || specs.values().any(|spec| spec.was.iter().any(is)) {
        return None;
    }
    if let Some((_, instead)) = OLD_SECTIONS.iter().find(|(old, _)| old == section) {
        return Some(format!(
            "section [{section}] belongs to an older release and is ignored: {instead}"
        ));
    }
    if let Some((_, instead)) = OLD_BEGINNINGS.iter().find(|(old, _)| section.starts_with(old)) {
        return Some(format!("section [{section}] has no effect: {instead}"));
    }
    if let Some((.., instead)) = OLD_OPTIONS.iter().find(|(a, b, _)| is(&(a, b))) {
        return Some(format!(
            "[{section}] {name} belongs to an older release and is ignored: {instead}"
        ));
    }
    if let Some(why) = without_effect::missed(key) {
        return Some(format!("[{section}] {name} has no effect here: {why}"));
    }
    let ours = specs.keys().any(|(known, _)| known == section);
    (ours && !without_effect::is_silent(key))
        .then(|| format!("[{section}] {name} is not an option of this release; check its spelling"))
}

/// What a remark is about: the whole section for old ones, so that it is made once.
pub(super) fn subject(key: Key) -> Key {
    let of_an_old_section = OLD_SECTIONS.iter().any(|(old, _)| *old == key.0)
        || OLD_BEGINNINGS.iter().any(|(old, _)| key.0.starts_with(old));
    if of_an_old_section {
        (key.0, String::new())
    } else {
        key
    }
}
