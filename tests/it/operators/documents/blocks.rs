//! Commands in Markdown.

use anyhow::{Context as _, Result, bail};

/// A block of commands.
#[derive(Debug, PartialEq)]
pub struct Block {
    /// The line at which it begins.
    pub line: usize,
    /// Its commands; none when it is a program.
    pub commands: Vec<Command>,
    /// A whole program that begins with `#!`.
    pub program: Option<String>,
}

/// One command, which may go over several lines.
#[derive(Debug, PartialEq)]
pub struct Command {
    pub text: String,
    /// What the document shows that it prints.
    pub shown: Vec<String>,
}

/// Every `sh` and `console` block.
pub fn blocks(markdown: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let mut body = Vec::new();
        loop {
            let (_, line) = lines.next().context("a block has no end")?;
            if line.trim() == "```" {
                break;
            }
            body.push(line.get(indent..).unwrap_or_default());
        }
        let line = number + 1;
        match language.trim() {
            "sh" if body.first().is_some_and(|first| first.starts_with("#!")) => found.push(Block {
                line,
                commands: Vec::new(),
                program: Some(body.join("\n") + "\n"),
            }),
            "sh" => found.push(Block {
                line,
                commands: script(&body),
                program: None,
            }),
            "console" => found.push(Block {
                line,
                commands: console(&body)?,
                program: None,
            }),
            "bash" | "shell" | "" => bail!("line {line}: name the block's language: sh, console or text"),
            _ => {}
        }
    }
    Ok(found)
}

/// A script: nothing but commands.
fn script(body: &[&str]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for line in body {
        match commands.last_mut() {
            Some(last) if is_open(&last.text) => last.text.push_str(&format!("\n{line}")),
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            _ => commands.push(Command {
                text: (*line).to_owned(),
                shown: Vec::new(),
            }),
        }
    }
    commands
}

/// What a terminal shows: commands after `$ `, and what they print.
fn console(body: &[&str]) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    for line in body {
        if let Some(text) = line.strip_prefix("$ ") {
            commands.push(Command {
                text: text.to_owned(),
                shown: Vec::new(),
            });
            continue;
        }
        let last = commands.last_mut().context("a console block begins with `$ `")?;
        if is_open(&last.text) {
            last.text.push_str(&format!("\n{line}"));
        } else {
            last.shown.push((*line).to_owned());
        }
    }
    Ok(commands)
}

/// Whether a command goes on in the next line: an open quote, a here-document, `\` or `|` at the end.
fn is_open(text: &str) -> bool {
    if let Some((_, rest)) = text.split_once("<<'") {
        let word = rest.split('\'').next().unwrap_or_default();
        return !text.lines().skip(1).any(|line| line == word);
    }
    text.matches('\'').count() % 2 == 1 || text.ends_with(['\\', '|'])
}

/// A line without the comment at its end.
pub fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            '#' if !quoted && before == ' ' => return line[..at].trim_end(),
            _ => {}
        }
        before = letter;
    }
    line.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(markdown: &str) -> Vec<String> {
        let blocks = blocks(markdown).unwrap();
        blocks
            .into_iter()
            .flat_map(|block| block.commands)
            .map(|command| command.text)
            .collect()
    }

    #[test]
    fn a_script_is_its_commands() {
        let text = "```sh\n# why\none # comment\n\ntwo \\\n  more\necho 'a\n b' |\n  cat\n```\n```toml\nx = 1\n```\n";
        assert_eq!(
            texts(text),
            ["one # comment", "two \\\n  more", "echo 'a\n b' |\n  cat"]
        );
        assert_eq!(without_comment("one 'a # b' # comment"), "one 'a # b'");
    }

    #[test]
    fn console_block_has_commands_and_their_output() {
        let text = "1. so:\n   ```console\n   $ cat > f <<'END'\n   a\n   END\n   $ b\n   printed\n   ```\n";
        let block = blocks(text).unwrap().remove(0);
        assert_eq!(block.line, 2);
        assert_eq!(block.commands[0].text, "cat > f <<'END'\na\nEND");
        assert_eq!(block.commands[1].shown, ["printed"]);
    }

    #[test]
    fn a_program_is_not_a_list_of_commands() {
        let block = blocks("```sh\n#!/bin/sh\nx\n```\n").unwrap().remove(0);
        assert_eq!(block.program.as_deref(), Some("#!/bin/sh\nx\n"));
        assert!(block.commands.is_empty());
        assert!(blocks("```\nx\n```\n").is_err(), "a block of unknown language");
    }
}
