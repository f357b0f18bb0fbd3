//! Whole numbers of any size, as Python has them.
//!
//! A [`Value`] holds 64 bits. Larger ones are exact here all the same, since labels keep their digits and error texts quote them:
//! such a number is a dictionary with one reserved key, which neither a body nor a literal of a client can have. It ends where
//! attributes get their types; none of them takes it as it is.

use num_bigint::BigInt;
use serde_json::{Map, Value};

const RESERVED_KEY: &str = "\0whole number";

/// The value of a whole number.
pub fn integer(number: &BigInt) -> Value {
    if let Ok(number) = i64::try_from(number) {
        return number.into();
    }
    match u64::try_from(number) {
        Ok(number) => number.into(),
        Err(_) => {
            let digits = Value::String(number.to_string());
            Value::Object(Map::from_iter([(RESERVED_KEY.to_owned(), digits)]))
        }
    }
}

/// The digits, and the sign, of a number that has more than 64 bits.
pub fn large_integer(value: &Value) -> Option<&str> {
    value.as_object()?.get(RESERVED_KEY)?.as_str()
}

/// The value as a dictionary, if it is one and no such number.
pub fn dictionary(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|map| !map.contains_key(RESERVED_KEY))
}

/// The whole number that a text says, as Python's `int` reads it in base 10: with blanks around it, a sign, and an underscore
/// between two digits. Only digits of ASCII.
pub fn whole_number(text: &str) -> Option<BigInt> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // Python's own limit; the time it takes grows with the square of it.
    if digits.len() > 4300 || !digits.split('_').all(is_digits) {
        return None;
    }
    text.parse().ok()
}

/// Whether a client may not use this key.
pub fn is_reserved(key: &str) -> bool {
    key == RESERVED_KEY
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_of_any_size_keep_their_digits() {
        let read = |digits: &str| integer(&digits.parse().unwrap());
        assert_eq!(read("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(read("18446744073709551615"), json!(u64::MAX));
        for digits in ["18446744073709551616", "-9223372036854775809"] {
            let value = read(digits);
            assert_eq!(large_integer(&value), Some(digits));
            assert_eq!(dictionary(&value), None);
        }
        for (text, number) in [(" +1_0 ", 10), ("-007", -7), ("0", 0)] {
            assert_eq!(whole_number(text), Some(number.into()), "{text}");
        }
        for text in [
            "", "+", "1__0", "_1", "1_", "+ 1", "--1", "0x1", "1.0", "٣", "1_-0",
        ] {
            assert_eq!(whole_number(text), None, "{text}");
        }
        assert_eq!(large_integer(&json!(1)), None);
        assert!(dictionary(&json!({"a": 1})).is_some());
    }
}
