//! What a caught panic says.

use std::any::Any;

/// The message of a panic that `catch_unwind` caught: what `panic!` was called with, if that was a text.
pub fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_and_other_payloads_are_not() {
        let (literal, formatted): (Box<dyn Any + Send>, Box<dyn Any + Send>) =
            (Box::new("literal"), Box::new("formatted".to_owned()));
        assert_eq!(message(literal.as_ref()), Some("literal"));
        assert_eq!(message(formatted.as_ref()), Some("formatted"));
        let number: Box<dyn Any + Send> = Box::new(7);
        assert_eq!(message(number.as_ref()), None);
    }
}
