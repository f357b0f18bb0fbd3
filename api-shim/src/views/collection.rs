//! A page of a collection, with the link to the next one.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::validation::query::Paging;

/// One page: the items under `key`, and `next` when the page is full. A full last page has a `next` too, and
/// the page after it is empty: clients stop there.
///
/// `resource` is the path under `/v1`; `last` identifies the last item, for the marker.
pub fn page(
    base: &str,
    resource: &str,
    key: &str,
    items: Vec<Value>,
    last: Option<&str>,
    paging: &Paging,
) -> Value {
    let full = u32::try_from(items.len()).is_ok_and(|count| count >= paging.limit);
    let mut page = Map::new();
    page.insert(key.to_owned(), Value::Array(items));
    if let (true, Some(marker)) = (full, last) {
        let sort_key = utf8_percent_encode(&paging.sort_key, UNRESERVED);
        page.insert(
            "next".to_owned(),
            Value::String(format!(
                "{base}/v1/{resource}?sort_key={sort_key}&sort_dir={}&limit={}&marker={marker}",
                paging.direction.as_str(),
                paging.limit
            )),
        );
    }
    Value::Object(page)
}

const UNRESERVED: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::query::{Arguments, PAGING};

    fn paging(query: &str) -> Paging {
        let arguments = Arguments::parse(Some(query), PAGING).unwrap();
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
            page["next"],
            "http://h/v1/clusters/detail?sort_key=created_at&sort_dir=desc&limit=2&marker=u2"
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
        assert_eq!(page, json!({"clusters": [1]}));
    }
}
