//! Which form an answer about health has: webob's choice among text, HTML and JSON.

use std::cmp::Reverse;

use axum::http::{HeaderMap, header};

/// A form; in the order of preference among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Html,
    Json,
}

const OFFERS: [(Form, &str, &str); 3] = [
    (Form::Text, "text", "plain"),
    (Form::Html, "text", "html"),
    (Form::Json, "application", "json"),
];

/// What a header says about a media type.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    parameters: bool,
    /// Quality value (`q`), in thousandths.
    quality: u16,
}

/// The best form for a request with these headers. Nothing acceptable is text: an error of a health check would be
/// taken for bad health.
pub(super) fn form(headers: &HeaderMap) -> Form {
    let mut values = headers.get_all(header::ACCEPT).iter();
    let mut accept = String::new();
    for value in &mut values {
        if !accept.is_empty() {
            accept.push(',');
        }
        accept.push_str(&String::from_utf8_lossy(value.as_bytes()));
    }
    let Some(ranges) = ranges(&accept) else {
        return Form::Text;
    };
    let acceptable = OFFERS.iter().filter_map(|(form, kind, subtype)| {
        let quality = quality(&ranges, kind, subtype)?;
        (quality > 0).then_some((*form, quality))
    });
    // Of equal ones, `min_by_key` takes the first.
    acceptable
        .min_by_key(|(_, quality)| Reverse(*quality))
        .map_or(Form::Text, |(form, _)| form)
}

/// The quality of a media type without parameters: that of the most specific range; of several equal ones, the first.
fn quality(ranges: &[Range<'_>], kind: &str, subtype: &str) -> Option<u16> {
    let is = |range: &&Range<'_>, kind: &str, subtype: &str| {
        !range.parameters
            && range.kind.eq_ignore_ascii_case(kind)
            && range.subtype.eq_ignore_ascii_case(subtype)
    };
    [(kind, subtype), (kind, "*"), ("*", "*")]
        .iter()
        .find_map(|(kind, subtype)| ranges.iter().find(|range| is(range, kind, subtype)))
        .map(|range| range.quality)
}

/// `None` when the header is not a list of ranges, which counts as no header.
fn ranges(accept: &str) -> Option<Vec<Range<'_>>> {
    accept
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(range)
        .collect::<Option<Vec<_>>>()
        .filter(|ranges| !ranges.is_empty())
}

fn range(text: &str) -> Option<Range<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let (kind, subtype) = parts.next()?.split_once('/')?;
    let is_token =
        |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/,\"".contains(c));
    if !is_token(kind) || !is_token(subtype) || (kind == "*" && subtype != "*") {
        return None;
    }
    let mut found = Range {
        kind,
        subtype,
        parameters: false,
        quality: 1000,
    };
    for parameter in parts {
        let (name, value) = parameter.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("q") {
            found.quality = thousandths(value.trim())?;
            // What follows the quality belongs to the header, not to the type.
            break;
        }
        found.parameters = true;
    }
    Some(found)
}

/// `0`, `1`, or one of them with up to three digits after the dot, at most 1.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !matches!(whole, "0" | "1")
        || fraction.len() > 3
        || !fraction.bytes().all(|digit| digit.is_ascii_digit())
    {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    let all = if whole == "1" { 1000 + fraction } else { fraction };
    (all <= 1000).then_some(all)
}
