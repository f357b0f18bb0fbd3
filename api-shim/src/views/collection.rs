//! A page of a collection, with the link to the next one.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::validation::query::Paging;

/// A page as it is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    key: &'static str,
    items: Vec<T>,
    next: Option<String>,
}

impl<T: Serialize> Serialize for Page<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.key, &self.items)?;
        if let Some(next) = &self.next {
            map.serialize_entry("next", next)?;
        }
        map.end()
    }
}

/// One page: the items under `key`, and `next` when the page is full. A full last page has a `next` too, and
/// the page after it is empty: clients stop there.
///
/// `resource` is the path under `/v1`; `last` identifies the last item, for the marker.
pub fn page<T>(
    base: &str,
    resource: &str,
    key: &'static str,
    items: Vec<T>,
    last: Option<&str>,
    paging: &Paging,
) -> Page<T> {
    filtered_page(base, resource, key, items, last, paging, &[])
}

/// The same of a collection that the client has filtered: `next` keeps the filters.
pub fn filtered_page<T>(
    base: &str,
    resource: &str,
    key: &'static str,
    items: Vec<T>,
    last: Option<&str>,
    paging: &Paging,
    filters: &[(&str, &str)],
) -> Page<T> {
    let full = u32::try_from(items.len()).is_ok_and(|count| count >= paging.limit);
    let next = last.filter(|_| full).map(|marker| {
        let escaped = |text| utf8_percent_encode(text, UNRESERVED);
        let mut next = format!(
            "{base}/v1/{resource}?sort_key={}&sort_dir={}&limit={}&marker={marker}",
            escaped(&paging.sort_key),
            paging.direction.as_str(),
            paging.limit
        );
        for (name, value) in filters {
            next.push_str(&format!("&{name}={}", escaped(value)));
        }
        next
    });
    Page { key, items, next }
}

const UNRESERVED: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::microversion::Version;
    use crate::validation::query::{Arguments, PAGING};

    fn paging(query: &str) -> Paging {
        let arguments = Arguments::parse(Some(query), PAGING, Version::MAX).unwrap();
        Paging::from_arguments(&arguments, 1000).unwrap()
    }

    #[test]
    fn a_full_page_links_to_the_next_one() {
        let page = page(
            "http://h",
            "clusters/detail",
            "clusters",
            vec![json!(1), json!(2)],
            Some("u2"),
            &paging("limit=2&sort_key=created_at&sort_dir=desc"),
        );
        assert_eq!(
            json!(page)["next"],
            "http://h/v1/clusters/detail?sort_key=created_at&sort_dir=desc&limit=2&marker=u2"
        );
    }

    #[test]
    fn filters_are_kept() {
        let paging = paging("limit=1");
        let filters = [("role", "a b&c")];
        let page = filtered_page("http://h", "x", "x", vec![json!(1)], Some("u"), &paging, &filters);
        assert_eq!(
            json!(page)["next"],
            "http://h/v1/x?sort_key=id&sort_dir=asc&limit=1&marker=u&role=a%20b%26c"
        );
    }

    #[test]
    fn a_page_that_is_not_full_has_no_next() {
        let page = page(
            "http://h",
            "clusters",
            "clusters",
            vec![json!(1)],
            Some("u1"),
            &paging("limit=2"),
        );
        assert_eq!(json!(page), json!({"clusters": [1]}));
    }
}
