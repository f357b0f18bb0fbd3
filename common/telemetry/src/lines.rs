//! One line per event, as text or as a JSON object.
//!
//! A line has the event's own fields, then those of the spans that it lies in, from the inside out; a name that came
//! already is left out, so each stands once. JSON is flat: `timestamp`, `level`, `target`, `message` and the fields.
//! Text quotes a value that would not read as one word. Whatever a value or message holds, a line stays one line.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::field;
use super::spans::{Fields, Value};

/// The form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    Text,
    Json,
}

/// Spans keep their fields by themselves ([`super::spans`]): nothing is formatted in advance.
pub(super) struct NothingInAdvance;

impl<'writer> FormatFields<'writer> for NothingInAdvance {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(
        &self,
        _writer: Writer<'writer>,
        _fields: R,
    ) -> fmt::Result {
        Ok(())
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut own = Fields::default();
        event.record(&mut own);
        let mut head = Head::of(event, &mut own)?;
        let mut shown = Shown::default();
        let mut each = |visit: &mut dyn FnMut(&'static str, &Value) -> fmt::Result| -> fmt::Result {
            for (name, value) in &own.0 {
                if shown.is_new(name) {
                    visit(name, value)?;
                }
            }
            for span in context.event_scope().into_iter().flatten() {
                if let Some(fields) = span.extensions().get::<Fields>() {
                    for (name, value) in &fields.0 {
                        if shown.is_new(name) {
                            visit(name, value)?;
                        }
                    }
                }
            }
            Ok(())
        };
        match self {
            Self::Text => {
                write!(writer, "{} {:>5} {}: ", head.timestamp, head.level, head.target)?;
                one_line(&mut writer, &head.message)?;
                each(&mut |name, value| {
                    write!(writer, " {name}=")?;
                    word(&mut writer, value)
                })?;
            }
            Self::Json => {
                let mut line = Vec::with_capacity(512);
                let mut json = serde_json::Serializer::new(&mut line);
                let mut map = json.serialize_map(None).map_err(|_| fmt::Error)?;
                let message = std::mem::take(&mut head.message);
                for (name, text) in [
                    ("timestamp", head.timestamp.as_str()),
                    ("level", head.level),
                    ("target", head.target.as_str()),
                    ("message", message.as_str()),
                ] {
                    map.serialize_entry(name, text).map_err(|_| fmt::Error)?;
                }
                each(&mut |name, value| map.serialize_entry(name, value).map_err(|_| fmt::Error))?;
                SerializeMap::end(map).map_err(|_| fmt::Error)?;
                writer.write_str(std::str::from_utf8(&line).map_err(|_| fmt::Error)?)?;
            }
        }
        writer.write_char('\n')
    }
}

/// What every line begins with.
struct Head {
    timestamp: String,
    level: &'static str,
    target: String,
    message: String,
}

impl Head {
    /// Takes what belongs here out of the event's fields.
    fn of(event: &Event<'_>, own: &mut Fields) -> Result<Self, fmt::Error> {
        let mut timestamp = String::with_capacity(32);
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let message = match own.take("message") {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        };
        // Records of the `log` crate say in fields where they come from.
        let target = match own.take("log.target") {
            Some(Value::Text(target)) => target,
            _ => event.metadata().target().to_owned(),
        };
        Ok(Self {
            timestamp,
            level: event.metadata().level().as_str(),
            target,
            message,
        })
    }
}

/// The names that a line has already.
#[derive(Default)]
struct Shown(Vec<&'static str>);

impl Shown {
    fn is_new(&mut self, name: &'static str) -> bool {
        let is_new = !self.0.contains(&name)
            && !matches!(name, "timestamp" | "level" | "target" | "message")
            && !field::is_for_exporter(name)
            && !name.starts_with("log.");
        if is_new {
            self.0.push(name);
        }
        is_new
    }
}

/// Without characters that would end the line or move a terminal.
fn one_line(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    for part in text.split_inclusive(char::is_control) {
        match part.chars().next_back() {
            Some(last) if last.is_control() => {
                writer.write_str(&part[..part.len() - last.len_utf8()])?;
                write!(writer, "{}", last.escape_default())?;
            }
            _ => writer.write_str(part)?,
        }
    }
    Ok(())
}

fn word(writer: &mut Writer<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Text(text) if is_word(text) => writer.write_str(text),
        Value::Text(text) => write!(writer, "{text:?}"),
        Value::Signed(number) => write!(writer, "{number}"),
        Value::Unsigned(number) => write!(writer, "{number}"),
        Value::Float(number) => write!(writer, "{number}"),
        Value::Bool(flag) => write!(writer, "{flag}"),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '"' | '=' | '\\'))
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
        }
    }
}
