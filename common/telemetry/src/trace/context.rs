//! [`TraceContext`]: `traceparent` and `tracestate`, as the recommendation "Trace Context" says them.
//!
//! Reading is strict, as it has to be: a `traceparent` that breaks the rules counts as none, a `tracestate` that does
//! is dropped alone. What is written is of version 00 and its `tracestate` has at most 512 characters.

use std::fmt::Write as _;

/// Characters of a whole `tracestate`.
const MAX_STATE: usize = 512;
/// Members of a list.
const MAX_MEMBERS: usize = 32;
/// Members longer than this go first where a list is too long.
const LONG_MEMBER: usize = 128;
/// The flags that have a meaning: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0b11;

/// A place in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
    state: Option<String>,
}

impl TraceContext {
    /// The header, AMQP header and environment variable (in capitals) of the place.
    pub const PARENT: &str = "traceparent";
    /// The same of what tracing systems add.
    pub const STATE: &str = "tracestate";

    /// A new trace that nobody records yet.
    pub fn random() -> Self {
        // Zero is the one number that neither id may have.
        Self {
            trace_id: rand::random_range(1..=u128::MAX).to_be_bytes(),
            parent_id: rand::random_range(1..=u64::MAX).to_be_bytes(),
            flags: 0,
            state: None,
        }
    }

    /// Reads what was received; none where `traceparent` breaks the rules. Of several `tracestate` headers the
    /// values are joined by commas first.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let bytes = parent.as_bytes();
        let (version, rest) = (hex::<1>(bytes.get(..2)?)?[0], bytes.get(2..)?);
        let is_longer = rest.len() > 53;
        // A later version may add parts behind another dash; version 00 has none, and 255 is forbidden.
        if version == 0xff || (is_longer && (version == 0 || rest[53] != b'-')) {
            return None;
        }
        if rest.len() < 53 || [rest[0], rest[33], rest[50]] != *b"---" {
            return None;
        }
        let context = Self {
            trace_id: hex(&rest[1..33])?,
            parent_id: hex(&rest[34..50])?,
            flags: hex::<1>(&rest[51..53])?[0] & KNOWN_FLAGS,
            state: state.and_then(members),
        };
        (context.trace_id != [0; 16] && context.parent_id != [0; 8]).then_some(context)
    }

    /// The value of `traceparent`: 55 characters.
    pub fn parent(&self) -> String {
        let mut text = String::with_capacity(55);
        text.push_str("00-");
        push_hex(&mut text, &self.trace_id);
        text.push('-');
        push_hex(&mut text, &self.parent_id);
        text.push('-');
        push_hex(&mut text, &[self.flags]);
        text
    }

    /// The value of `tracestate`, if there is one: at most 512 printable ASCII characters.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        let mut text = String::with_capacity(32);
        push_hex(&mut text, &self.trace_id);
        text
    }

    /// Both values under their names.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let state = self.state.clone().map(|state| (Self::STATE, state));
        std::iter::once((Self::PARENT, self.parent())).chain(state)
    }
}

/// Bytes from small hexadecimal digits; capitals break the rules.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

/// The list in its short form; none if it is empty or breaks a rule.
fn members(state: &str) -> Option<String> {
    let mut members: Vec<&str> = Vec::new();
    for member in state.split(',').map(|member| member.trim_matches([' ', '\t'])) {
        if member.is_empty() {
            continue;
        }
        let (key, value) = member.split_once('=')?;
        let is_repeated = members.iter().any(|known| known.split('=').next() == Some(key));
        if !is_key(key) || !is_value(value) || is_repeated {
            return None;
        }
        members.push(member);
    }
    if members.is_empty() || members.len() > MAX_MEMBERS {
        return None;
    }
    let length = |members: &[&str]| members.iter().map(|member| member.len() + 1).sum::<usize>() - 1;
    while length(&members) > MAX_STATE {
        // Whole members go: long ones first, then from the end, where the oldest are. One member fits always.
        let last = members.iter().rposition(|member| member.len() > LONG_MEMBER);
        members.remove(last.unwrap_or(members.len() - 1));
        if members.is_empty() {
            return None;
        }
    }
    Some(members.join(","))
}

fn is_key(key: &str) -> bool {
    let first = key.bytes().next();
    key.len() <= 256
        && first.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && key.bytes().all(|byte| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@')
        })
}

fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 256
        && !value.ends_with(' ')
        && value
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn state(text: &str) -> Option<String> {
        TraceContext::parse(PARENT, Some(text)).unwrap().state
    }

    #[test]
    fn parsed_context_is_written_back_unchanged() {
        let context = TraceContext::parse(PARENT, Some("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7")).unwrap();
        assert_eq!(context.parent(), PARENT);
        assert_eq!(context.state(), Some("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"));
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        let random = TraceContext::random();
        assert_eq!(TraceContext::parse(&random.parent(), None), Some(random.clone()));
        assert_ne!(random, TraceContext::random());
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        for (text, written) in [
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-09", PARENT),
            (
                "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-next",
                PARENT,
            ),
        ] {
            assert_eq!(
                TraceContext::parse(text, None).unwrap().parent(),
                written,
                "{text}"
            );
        }
    }

    #[test]
    fn a_malformed_parent_counts_as_none() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.x",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(text, Some("a=b")), None, "{text}");
        }
    }

    #[test]
    fn a_malformed_state_is_dropped_alone() {
        assert_eq!(state(" a=1 ,\t,0b@sys=2 ").as_deref(), Some("a=1,0b@sys=2"));
        let many = |count: usize| {
            (0..count)
                .map(|i| format!("k{i}=v"))
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(state(&many(32)), Some(many(32)));
        for text in [
            "", ",", "a", "a=", "A=1", "=1", "a=1,a=2", "a=b=c", "a=\u{e9}", "a=1;\n",
        ] {
            assert_eq!(state(text), None, "{text:?}");
        }
        assert_eq!(state(&many(33)), None);
    }

    #[test]
    fn a_long_state_loses_whole_members() {
        let long = format!("long={}", "x".repeat(200));
        let members: Vec<String> = (0..20).map(|i| format!("k{i:02}={}", "y".repeat(20))).collect();
        let text = state(&format!("{long},{}", members.join(","))).unwrap();
        assert_eq!(text, members.join(","));
        let members: Vec<String> = (0..30).map(|i| format!("k{i:02}={}", "y".repeat(20))).collect();
        let text = state(&members.join(",")).unwrap();
        assert!(
            text.len() <= 512 && members.join(",").starts_with(&text),
            "{text}"
        );
    }
}
