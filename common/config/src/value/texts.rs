//! Texts, names and paths.

use std::path::PathBuf;

use super::Codec;
use magnum_common::secret::Secret;

/// Any text.
pub struct Text;

impl Codec<String> for Text {
    fn form() -> String {
        "text".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(value.clone())
    }
}

/// A password; masked wherever it is shown.
pub struct Password;

impl Codec<Secret> for Password {
    const SECRET: bool = true;
    fn form() -> String {
        "text".into()
    }
    fn parse(text: &str) -> Result<Secret, String> {
        Ok(Secret::new(text))
    }
    fn show(_: &Secret) -> Option<String> {
        Some("***".to_owned())
    }
}

/// A name of a host, queue or exchange: not empty, without white space.
pub struct Name;

impl Codec<String> for Name {
    fn form() -> String {
        "name".into()
    }
    fn parse(text: &str) -> Result<String, String> {
        if text.is_empty() {
            return Err("must not be empty".into());
        }
        // 255 bytes is the limit of both a queue name in AMQP and a host column in the database.
        if text.len() > 255 || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("{text:?} must have at most 255 bytes and no white space"));
        }
        Ok(text.to_owned())
    }
    fn show(value: &String) -> Option<String> {
        Some(value.clone())
    }
}

/// A path of a file or directory.
pub struct Path;

impl Codec<PathBuf> for Path {
    fn form() -> String {
        "path".into()
    }
    fn parse(text: &str) -> Result<PathBuf, String> {
        if text.is_empty() || text.contains('\0') {
            return Err(format!("{text:?} is not a path"));
        }
        Ok(PathBuf::from(text))
    }
    fn show(value: &PathBuf) -> Option<String> {
        Some(value.display().to_string())
    }
}

/// Directories separated by colons, as in `PATH`.
pub struct SearchPath;

impl Codec<Vec<PathBuf>> for SearchPath {
    fn form() -> String {
        "directories separated by `:`".into()
    }
    fn parse(text: &str) -> Result<Vec<PathBuf>, String> {
        text.split(':')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(Path::parse)
            .collect()
    }
    fn show(value: &Vec<PathBuf>) -> Option<String> {
        Some(
            value
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(":"),
        )
    }
}
