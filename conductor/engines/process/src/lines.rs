//! Lines from a pipe within bounds, so that a program that never ends a line, or never ends, costs no memory.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The bounds are passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

/// Reads lines; [`Lines::next`] may be dropped and called again without losing a byte.
pub struct Lines<R> {
    source: Option<R>,
    buffer: Vec<u8>,
    longest: usize,
    left: usize,
    cutting: bool,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `longest` bytes, at most `total` bytes in all.
    pub fn new(source: Option<R>, longest: usize, total: usize) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            longest,
            left: total,
            cutting: false,
            skipping: false,
        }
    }

    /// Cuts long lines instead of failing.
    pub fn cutting(self) -> Self {
        Self {
            cutting: true,
            ..self
        }
    }

    /// Whether everything has been read.
    pub fn at_end(&self) -> bool {
        self.source.is_none() && self.buffer.is_empty()
    }

    /// The next line without its end, bytes that are not UTF-8 replaced; `None` at the end.
    ///
    /// # Errors
    /// A line, or all of the output, is longer than the limit.
    pub async fn next(&mut self) -> Result<Option<String>, TooMuch> {
        loop {
            if let Some(line) = self.take_line()? {
                return Ok(Some(line));
            }
            let Some(source) = &mut self.source else {
                let rest = std::mem::take(&mut self.buffer);
                return Ok((!rest.is_empty() && !self.skipping).then(|| text(&rest)));
            };
            match source.read_buf(&mut self.buffer).await {
                // A pipe that breaks has nothing more to say, like one that ends.
                Ok(0) | Err(_) => self.source = None,
                Ok(read) => self.left = self.left.checked_sub(read).ok_or(TooMuch)?,
            }
        }
    }

    fn take_line(&mut self) -> Result<Option<String>, TooMuch> {
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n');
            if self.skipping {
                // The rest of a line that was cut.
                let Some(end) = end else {
                    self.buffer.clear();
                    return Ok(None);
                };
                self.buffer.drain(..=end);
                self.skipping = false;
                continue;
            }
            let length = end.unwrap_or(self.buffer.len());
            if length > self.longest {
                if !self.cutting {
                    return Err(TooMuch);
                }
                let line = text(&self.buffer[..self.longest]);
                self.buffer.drain(..length);
                self.skipping = true;
                return Ok(Some(line + "…"));
            }
            return Ok(end.map(|end| {
                let line = text(&self.buffer[..end]);
                self.buffer.drain(..=end);
                line
            }));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\r').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], longest: usize, total: usize, cutting: bool) -> Result<Vec<String>, TooMuch> {
        let mut lines = Lines::new(Some(bytes), longest, total);
        lines.cutting = cutting;
        let mut read = Vec::new();
        while let Some(line) = lines.next().await? {
            read.push(line);
        }
        assert!(lines.at_end());
        Ok(read)
    }

    #[tokio::test]
    async fn lines_come_without_their_ends_and_the_last_needs_none() {
        assert_eq!(
            all(b"a\r\n\nb\xff", 10, 100, false).await.unwrap(),
            ["a", "", "b\u{fffd}"]
        );
        assert!(all(b"", 10, 100, false).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_long_line_or_a_long_text_is_too_much() {
        assert_eq!(all(b"abcdef\n", 5, 100, false).await, Err(TooMuch));
        assert_eq!(all(b"abcdef", 5, 100, false).await, Err(TooMuch));
        assert_eq!(all(b"ab\ncd\n", 5, 5, false).await, Err(TooMuch));
    }

    #[tokio::test]
    async fn a_cut_line_loses_its_rest_and_nothing_else() {
        assert_eq!(
            all(b"abcdefgh\nxy\n", 3, 100, true).await.unwrap(),
            ["abc…", "xy"]
        );
    }
}
