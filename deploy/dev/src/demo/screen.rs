//! What the person sees: a moving bar on a terminal, plain lines elsewhere (a pipe, a CI log).

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Standard output.
pub(super) struct Screen {
    is_terminal: bool,
}

impl Screen {
    /// The process's standard output, whatever it is.
    pub(super) fn new() -> Self {
        Self {
            is_terminal: std::io::stdout().is_terminal(),
        }
    }

    /// One line.
    pub(super) fn say(&self, line: &str) {
        // A reader who has seen enough (`| head`) is no reason to fail.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    /// The beginning of a part.
    pub(super) fn title(&self, title: &str) {
        self.say(&format!("\n== {title}"));
    }

    /// Shows how something goes on that was in the status `left`.
    pub(super) fn progress(&self, left: &str) -> Progress<'_> {
        let bar = self.is_terminal.then(|| {
            let bar = ProgressBar::new(100);
            let style = ProgressStyle::with_template("  {spinner} [{bar:30}] {msg}");
            bar.set_style(
                style
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("=> "),
            );
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Progress {
            screen: self,
            bar,
            status: left.to_owned(),
            said: String::new(),
        }
    }
}

/// A status and what the driver says, each shown once.
pub(super) struct Progress<'a> {
    screen: &'a Screen,
    bar: Option<ProgressBar>,
    status: String,
    said: String,
}

impl Progress<'_> {
    /// Takes what is true now.
    pub(super) fn show(&mut self, status: &str, said: Option<&str>) {
        if status != self.status {
            self.line(&format!("  status: {status}"));
            self.status = status.to_owned();
        }
        let Some(said) = said.filter(|said| *said != self.said) else {
            return;
        };
        match &self.bar {
            Some(bar) => {
                if let Some(percent) = percent(said) {
                    bar.set_position(percent);
                }
                bar.set_message(said.to_owned());
            }
            None => self.screen.say(&format!("    {said}")),
        }
        self.said = said.to_owned();
    }

    /// It has ended.
    pub(super) fn finish(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// A line that stays, above the bar.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.screen.say(text),
        }
    }
}

/// The number before the last percent sign.
fn percent(text: &str) -> Option<u64> {
    let (before, _) = text.rsplit_once('%')?;
    let digits = before.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_is_read_from_the_drivers_words() {
        assert_eq!(percent("building node-1 (33%)"), Some(33));
        assert_eq!(percent("50 %"), Some(50));
        assert_eq!(percent("building"), None);
        assert_eq!(percent("%"), None);
    }
}
