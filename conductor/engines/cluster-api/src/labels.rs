//! The labels of clusters and templates that the driver reads (reference drivers.md 4.5).
//!
//! A cluster's label counts before its template's. Tenants write them, so of a text only harmless characters are taken; operators
//! write what stands in for a missing label, which is taken as it is (the package filters that, too, once a cluster has any label).

use magnum_common::model::{Cluster, ClusterTemplate, StringMap};

/// Both sets of labels.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    cluster: &'a StringMap,
    template: &'a StringMap,
}

impl<'a> Labels<'a> {
    /// Of a cluster and its template.
    pub fn of(cluster: &'a Cluster, template: &'a ClusterTemplate) -> Self {
        Self {
            cluster: &cluster.labels,
            template: &template.labels,
        }
    }

    fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.cluster.get(name).or_else(|| self.template.get(name));
        found.map(String::as_str)
    }

    /// A text. An empty label is an empty text.
    pub fn text(&self, name: &str, otherwise: &str) -> String {
        match self.raw(name) {
            Some(text) => kept(text, |c| matches!(c, '.' | '-' | '/' | ' ' | '_')),
            None => otherwise.to_owned(),
        }
    }

    /// Yes or no, in the words that OpenStack has for them; any other word counts as none.
    pub fn flag(&self, name: &str, otherwise: bool) -> bool {
        match self.text(name, "").trim().to_lowercase().as_str() {
            "1" | "t" | "true" | "on" | "y" | "yes" => true,
            "0" | "f" | "false" | "off" | "n" | "no" => false,
            _ => otherwise,
        }
    }

    /// A whole number; anything else counts as none.
    pub fn number(&self, name: &str) -> Option<i64> {
        whole_number(self.text(name, "").trim())
    }

    /// Networks and addresses with commas between.
    pub fn addresses(&self, name: &str, otherwise: &str) -> Vec<String> {
        let text = self.raw(name).filter(|text| !text.is_empty());
        let entries = text.unwrap_or(otherwise).split(',').map(str::trim);
        let harmless = |entry| kept(entry, |c| matches!(c, '.' | '-' | '/' | ':'));
        entries.filter(|entry| !entry.is_empty()).map(harmless).collect()
    }

    /// The version of the chart, which the template alone says.
    pub fn chart_version(&self, otherwise: &str) -> String {
        let text = self.template.get("capi_helm_chart_version");
        let text = text.map_or(otherwise, String::as_str);
        let is_harmless =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
        text.chars().filter(|c| is_harmless(*c)).collect()
    }
}

/// ASCII letters, digits, and `others`.
pub(crate) fn kept(text: &str, others: impl Fn(char) -> bool) -> String {
    text.chars()
        .filter(|c| c.is_ascii_alphanumeric() || others(*c))
        .collect()
}

/// As Python's `int` reads what is left of a label: an underscore may stand between two digits.
fn whole_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.split('_').any(str::is_empty) || digits.starts_with('-') {
        return None;
    }
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(labels: &[(&str, &str)]) -> StringMap {
        let owned = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn a_clusters_label_counts_before_its_templates() {
        let (cluster, template) = (
            map(&[("a", "1"), ("empty", "")]),
            map(&[("a", "2"), ("b", "3"), ("empty", "x")]),
        );
        let labels = Labels {
            cluster: &cluster,
            template: &template,
        };
        assert_eq!(labels.text("a", "0"), "1");
        assert_eq!(labels.text("b", "0"), "3");
        assert_eq!(labels.text("c", "!0"), "!0");
        assert_eq!(labels.text("empty", "0"), "");
        assert!(labels.flag("empty", true), "an empty one says neither");
    }

    #[test]
    fn of_a_tenants_text_harmless_characters_are_taken() {
        let cluster = map(&[("a", "x$(y); z_1.2-3/4"), ("cidrs", " 10.0.0.0/8 ,;,, fe80::/10")]);
        let none = StringMap::new();
        let labels = Labels {
            cluster: &cluster,
            template: &none,
        };
        assert_eq!(labels.text("a", ""), "xy z_1.2-3/4");
        assert_eq!(
            labels.addresses("cidrs", "1.0.0.0/8"),
            ["10.0.0.0/8", "", "fe80::/10"]
        );
        assert_eq!(labels.addresses("none", "1.0.0.0/8"), ["1.0.0.0/8"]);
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, number) in [
            ("12", Some(12)),
            ("-5", Some(-5)),
            ("1_0", Some(10)),
            ("1__0", None),
            ("_1", None),
            ("--1", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(whole_number(text), number, "{text}");
        }
    }
}
