//! Which versions of a sender we read.
//!
//! Same major version and a minor one up to ours: read, and echoed as the sender wrote it. A third part is cut
//! off. Anything else is `IncompatibleObjectVersion`, from which a Python API learns what to backport to.

use serde_json::json;

use magnum_common::error::{Exception, Fault};

use super::schema::Schema;

/// The version to keep for an object whose sender wrote `text`.
///
/// # Errors
/// `IncompatibleObjectVersion` when we cannot read it.
pub fn accept(schema: &Schema, text: &str) -> Result<String, Fault> {
    let text = text.trim();
    let kept = match text.match_indices('.').nth(1) {
        Some((at, _)) if parse(&text[at + 1..]).is_some_and(|rest| rest.1.is_none()) => &text[..at],
        _ => text,
    };
    match parse(kept) {
        Some((major, minor)) if major == schema.version.0 && minor.unwrap_or(0) <= schema.version.1 => {
            Ok(kept.to_owned())
        }
        _ => Err(incompatible(schema, kept)),
    }
}

/// Checks that `target`, asked for by a peer that cannot read ours, is one we can label an object with.
///
/// # Errors
/// `InvalidTargetVersion` when it is newer than ours or no version; `IncompatibleObjectVersion` for another
/// major version.
pub fn accept_target(schema: &Schema, target: &str) -> Result<String, Fault> {
    match parse(target.trim()) {
        Some((major, minor)) if (major, minor.unwrap_or(0)) <= schema.version => {
            if major == schema.version.0 {
                Ok(target.trim().to_owned())
            } else {
                Err(incompatible(schema, target))
            }
        }
        _ => {
            let mut fault = Fault::new(
                Exception::InvalidTargetVersion,
                format!("Invalid target version {target}"),
            );
            fault.kwargs.insert("version".into(), json!(target));
            fault.kwargs.insert("code".into(), json!(500));
            Err(fault)
        }
    }
}

/// `major` or `major.minor`.
fn parse(text: &str) -> Option<(u32, Option<u32>)> {
    let number = |part: &str| -> Option<u32> {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            part.parse().ok()
        } else {
            None
        }
    };
    match text.split_once('.') {
        None => Some((number(text)?, None)),
        Some((major, minor)) => Some((number(major)?, Some(number(minor)?))),
    }
}

fn incompatible(schema: &Schema, version: &str) -> Fault {
    let supported = schema.version_text();
    let mut fault = Fault::new(
        Exception::IncompatibleObjectVersion,
        format!(
            "Version {version} of {} is not supported, supported version is {supported}",
            schema.name
        ),
    );
    fault.kwargs.insert("objname".into(), json!(schema.name));
    fault.kwargs.insert("objver".into(), json!(version));
    fault.kwargs.insert("supported".into(), json!(supported));
    fault.kwargs.insert("code".into(), json!(500));
    fault
}

#[cfg(test)]
mod tests {
    use super::super::tables::CLUSTER;
    use super::*;

    #[test]
    fn older_minor_versions_are_kept_and_a_third_part_is_cut() {
        for (sent, kept) in [
            ("1.24", "1.24"),
            ("1.24.7", "1.24"),
            ("1.23", "1.23"),
            ("1.0", "1.0"),
            ("1", "1"),
            (" 1.24", "1.24"),
        ] {
            assert_eq!(accept(&CLUSTER, sent).unwrap(), kept);
        }
    }

    #[test]
    fn newer_minor_other_major_and_nonsense_are_incompatible() {
        for (sent, told) in [
            ("1.25", "1.25"),
            ("2.0", "2.0"),
            ("0.9", "0.9"),
            ("1.25.3", "1.25"),
            ("1.24.7.8", "1.24.7.8"),
            ("", ""),
            ("abc", "abc"),
            ("1.x", "1.x"),
            ("1.-1", "1.-1"),
            ("1.24.x", "1.24.x"),
            ("99999999999.1", "99999999999.1"),
        ] {
            let fault = accept(&CLUSTER, sent).unwrap_err();
            assert_eq!(fault.exception, Exception::IncompatibleObjectVersion);
            assert_eq!(
                fault.message,
                format!("Version {told} of Cluster is not supported, supported version is 1.24")
            );
            let kwargs: Vec<_> = fault
                .kwargs
                .iter()
                .map(|(k, v)| (k.as_str(), v.clone()))
                .collect();
            assert_eq!(
                kwargs,
                [
                    ("objname", json!("Cluster")),
                    ("objver", json!(told)),
                    ("supported", json!("1.24")),
                    ("code", json!(500))
                ]
            );
        }
    }

    #[test]
    fn a_target_may_be_older_but_not_newer_than_ours() {
        assert_eq!(accept_target(&CLUSTER, "1.20").unwrap(), "1.20");
        let fault = |target| accept_target(&CLUSTER, target).unwrap_err().exception;
        assert_eq!(fault("1.25"), Exception::InvalidTargetVersion);
        assert_eq!(fault("x"), Exception::InvalidTargetVersion);
        assert_eq!(fault("0.1"), Exception::IncompatibleObjectVersion);
    }
}
