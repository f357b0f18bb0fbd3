//! The commented sample of a policy file: every rule with its default, what it allows and which requests ask for it.

use std::fmt::Write as _;

use super::defaults::{BASE, BaseRule, DEPRECATED_SINCE, Rule};

const HEAD: &str = "\
# Who may do what with Magnum. Copy this file to policy.yaml beside magnum.conf, and take the comment sign away from
# rules that shall be otherwise; the rules that are not in the file keep their defaults. A change takes effect within
# seconds. `magnum-policy check` says what is wrong with a file.
#
# This file is generated: `magnum-policy sample`.
";

/// The sample file.
pub fn sample() -> String {
    let mut text = HEAD.to_owned();
    for base in BASE {
        text.push('\n');
        base_rule(&mut text, base);
    }
    for rule in Rule::ALL {
        text.push('\n');
        api_rule(&mut text, *rule);
    }
    text
}

// Writing to a String cannot fail.

fn base_rule(text: &mut String, rule: &BaseRule) {
    let _ = writeln!(text, "# {}", rule.about);
    let _ = writeln!(text, "#\"{}\": \"{}\"", rule.name, rule.check);
    if let Some(old) = rule.deprecated {
        let _ = writeln!(
            text,
            "# Deprecated since {DEPRECATED_SINCE}: \"{}\": \"{}\".\n# It holds besides while [oslo_policy] \
             enforce_new_defaults = false.",
            old.name, old.check
        );
    }
}

fn api_rule(text: &mut String, rule: Rule) {
    let _ = writeln!(text, "# {}", rule.about());
    if rule.is_ours() {
        let _ = writeln!(text, "# Python Magnum does not have this rule.");
    }
    for (method, path) in rule.operations() {
        let _ = writeln!(text, "# {method}  {path}");
    }
    if !rule.scopes().is_empty() {
        let _ = writeln!(text, "# Intended scope(s): {}", rule.scopes().join(", "));
    }
    let _ = writeln!(text, "#\"{}\": \"{}\"", rule.name(), rule.default_check());
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::super::file;
    use super::*;

    #[test]
    fn the_sample_without_its_comment_signs_is_a_policy_file_with_every_rule() {
        let text = sample();
        assert!(file::read(&Arc::new(PathBuf::new()), &text).unwrap().is_empty());
        let rules: String = text
            .lines()
            .filter_map(|line| line.strip_prefix("#\""))
            .map(|line| format!("\"{line}\n"))
            .collect();
        let entries = file::read(&Arc::new(PathBuf::new()), &rules).unwrap();
        assert_eq!(entries.len(), BASE.len() + Rule::ALL.len());
    }
}
