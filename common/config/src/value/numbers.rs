//! Booleans, numbers and durations.

use std::fmt::Display;
use std::time::Duration;

use super::Codec;

/// Yes or no, in oslo's eight spellings.
pub struct Bool;

impl Codec<bool> for Bool {
    fn form() -> String {
        "boolean".into()
    }
    fn parse(text: &str) -> Result<bool, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(format!("{text:?} is not a boolean; write true or false")),
        }
    }
    fn show(value: &bool) -> Option<String> {
        Some(value.to_string())
    }
}

/// A whole number from `MIN` to `MAX`, both allowed.
pub struct Int<const MIN: i64 = { i64::MIN }, const MAX: i64 = { i64::MAX }>;

impl<T: TryFrom<i64> + Display, const MIN: i64, const MAX: i64> Codec<T> for Int<MIN, MAX> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        match (MIN, MAX) {
            (i64::MIN, i64::MAX) => "integer".into(),
            (min, i64::MAX) => format!("integer, at least {min}"),
            (min, max) => format!("integer, {min} to {max}"),
        }
    }
    fn parse(text: &str) -> Result<T, String> {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("{text:?} is not a whole number"))?;
        if !(MIN..=MAX).contains(&number) {
            return Err(format!(
                "{number} is out of range ({})",
                <Self as Codec<T>>::form()
            ));
        }
        T::try_from(number).map_err(|_| format!("{number} is out of range"))
    }
    fn show(value: &T) -> Option<String> {
        Some(value.to_string())
    }
}

/// How many there may be; Magnum takes what is below 0 for it, too, and then there may be none.
pub struct Count;

impl Codec<u32> for Count {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        "integer".into()
    }
    fn parse(text: &str) -> Result<u32, String> {
        let number = <Int as Codec<i64>>::parse(text)?;
        u32::try_from(number.max(0)).map_err(|_| format!("{number} is out of range"))
    }
    fn show(value: &u32) -> Option<String> {
        Some(value.to_string())
    }
}

/// A number of threads; 0 means one per processor.
pub struct Threads;

impl Codec<usize> for Threads {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        <Int<0, 1024> as Codec<usize>>::form()
    }
    fn parse(text: &str) -> Result<usize, String> {
        let number = <Int<0, 1024>>::parse(text)?;
        Ok(if number == 0 { processors() } else { number })
    }
    fn show(value: &usize) -> Option<String> {
        Some(value.to_string())
    }
}

/// Processors of this machine, at least one.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A decimal number from `MIN` to `MAX`, both allowed.
pub struct Float<const MIN: i32, const MAX: i32>;

impl<const MIN: i32, const MAX: i32> Codec<f64> for Float<MIN, MAX> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        format!("number, {MIN} to {MAX}")
    }
    fn parse(text: &str) -> Result<f64, String> {
        let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
        if !(f64::from(MIN)..=f64::from(MAX)).contains(&number) {
            return Err(format!("{number} is out of range ({})", Self::form()));
        }
        Ok(number)
    }
    fn show(value: &f64) -> Option<String> {
        Some(value.to_string())
    }
}

/// Seconds, whole or with a fraction; 0 is allowed.
pub type Seconds = SecondsMinMillis<0>;

/// Seconds, whole or with a fraction, of at least `MIN_MILLIS` milliseconds.
pub struct SecondsMinMillis<const MIN_MILLIS: u64>;

impl<const MIN_MILLIS: u64> Codec<Duration> for SecondsMinMillis<MIN_MILLIS> {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        match MIN_MILLIS {
            0 => "seconds".to_owned(),
            min => format!("seconds, at least {}", Duration::from_millis(min).as_secs_f64()),
        }
    }
    fn parse(text: &str) -> Result<Duration, String> {
        let out_of_range = |why| format!("{why} ({})", <Self as Codec<Duration>>::form());
        let value = duration(text, 1).map_err(out_of_range)?;
        if value < Duration::from_millis(MIN_MILLIS) {
            return Err(out_of_range(format!("{text} is out of range")));
        }
        Ok(value)
    }
    fn show(value: &Duration) -> Option<String> {
        Some(value.as_secs_f64().to_string())
    }
}

/// The interval of a periodic task, in seconds, whole or with a fraction; 0 or less turns the task off.
pub struct Interval;

impl Codec<Option<Duration>> for Interval {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        "seconds, or 0 or less for never".to_owned()
    }
    fn parse(text: &str) -> Result<Option<Duration>, String> {
        let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
        // Negative, and so little that nothing else would be done.
        if number < SHORTEST_INTERVAL.as_secs_f64() {
            return Ok((number > 0.0).then_some(SHORTEST_INTERVAL));
        }
        duration(text, 1)
            .map(Some)
            .map_err(|why| format!("{why} ({})", Self::form()))
    }
    fn show(value: &Option<Duration>) -> Option<String> {
        Some(value.map_or_else(|| "0".to_owned(), |value| value.as_secs_f64().to_string()))
    }
}

/// What a shorter [`Interval`] means.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Minutes, whole or with a fraction; 0 is allowed.
pub struct Minutes;

impl Codec<Duration> for Minutes {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        "minutes".to_owned()
    }
    fn parse(text: &str) -> Result<Duration, String> {
        duration(text, 60).map_err(|why| format!("{why} (minutes)"))
    }
    fn show(value: &Duration) -> Option<String> {
        Some((value.as_secs_f64() / 60.0).to_string())
    }
}

/// Days, whole or with a fraction; 0 is allowed.
pub struct Days;

impl Codec<Duration> for Days {
    const EMPTY_IS_UNSET: bool = true;
    fn form() -> String {
        "days".to_owned()
    }
    fn parse(text: &str) -> Result<Duration, String> {
        duration(text, 86_400).map_err(|why| format!("{why} (days)"))
    }
    fn show(value: &Duration) -> Option<String> {
        Some((value.as_secs_f64() / 86_400.0).to_string())
    }
}

/// The duration of a number of units, from zero to a century.
fn duration(text: &str, seconds_per_unit: u32) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    // A century bounds sums of durations and instants far from overflow.
    Duration::try_from_secs_f64(number * f64::from(seconds_per_unit))
        .ok()
        .filter(|value| *value <= Duration::from_secs(100 * 366 * 86_400))
        .ok_or_else(|| format!("{text} is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_read_in_any_case() {
        assert_eq!(Bool::parse("Yes"), Ok(true));
        assert_eq!(Bool::parse("OFF"), Ok(false));
        assert!(Bool::parse("maybe").is_err());
    }

    #[test]
    fn a_number_out_of_range_names_the_range() {
        let error = <Int<1, 65535> as Codec<u16>>::parse("70000").unwrap_err();
        assert_eq!(error, "70000 is out of range (integer, 1 to 65535)");
        assert!(<Int as Codec<u16>>::parse("-1").is_err());
    }

    #[test]
    fn decimal_numbers_have_limits_in_whole_numbers() {
        assert_eq!(<Float<0, 1>>::parse("0.25"), Ok(0.25));
        assert_eq!(
            <Float<0, 1>>::parse("1.5").unwrap_err(),
            "1.5 is out of range (number, 0 to 1)"
        );
        assert!(<Float<0, 1>>::parse("nan").is_err());
    }

    #[test]
    fn durations_have_limits_and_units() {
        assert_eq!(Seconds::parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(Minutes::parse("60"), Ok(Duration::from_secs(3600)));
        assert_eq!(Minutes::show(&Duration::from_secs(90)), Some("1.5".into()));
        assert_eq!(Days::parse("0.5"), Ok(Duration::from_secs(43_200)));
        assert_eq!(Days::show(&Duration::from_secs(30 * 86_400)), Some("30".into()));
        assert!(Days::parse("-1").is_err());
        assert!(Seconds::parse("-1").is_err());
        assert!(Seconds::parse("1e300").is_err());
        assert!(Seconds::parse("nan").is_err());
        assert!(
            <SecondsMinMillis<100>>::parse("0.09")
                .unwrap_err()
                .contains("at least 0.1")
        );
        for off in ["0", "-1", "-0.0", "-9e99", "-inf"] {
            assert_eq!(Interval::parse(off), Ok(None), "{off}");
        }
        assert_eq!(Interval::parse("1.5"), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(Interval::parse("0.01"), Ok(Some(Duration::from_secs(1))));
        assert!(Interval::parse("nan").is_err() && Interval::parse("soon").is_err());
        assert_eq!(Interval::show(&None).as_deref(), Some("0"));
    }
}
