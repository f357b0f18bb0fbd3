//! Texts that are Python literals, or nearly, are read as `ast.literal_eval` reads them and printed as `repr` prints the value, or
//! refused where it refuses them.
//!
//! `tests/peers/python_literals.py` writes the texts by a seed, with what Python prints.
//! `MAGNUM_TESTS_LITERALS` is how many there are, 20,000 without it.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use magnum_api_shim::validation::python::{parse_literal, repr};
use magnum_tests::oslo_peer::python;
use magnum_tests::process::Launch;
use serde::Deserialize;

#[derive(Deserialize)]
struct Literal {
    text: String,
    /// Absent where Python refuses the text, and where JSON has no place for its value.
    printed: Option<String>,
}

/// What only JSON has, and is read as well.
const WORDS_OF_JSON: [&str; 3] = ["true", "false", "null"];

#[tokio::test(flavor = "multi_thread")]
async fn literals_are_read_as_python_reads_them() -> Result<()> {
    let seed = rand::random::<u32>().to_string();
    let count = std::env::var("MAGNUM_TESTS_LITERALS").unwrap_or_else(|_| "20000".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/python_literals.py");
    let output = Launch::command("python-literals", Command::new(python()?))
        .args([script, &seed, &count])
        .output()
        .await?;
    let (mut read, mut refused) = (0, 0);
    for line in output.lines() {
        let literal: Literal = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let ours = parse_literal(&literal.text).map(|value| repr(&value));
        match (&literal.printed, &ours) {
            (Some(printed), Ok(ours)) if printed == ours => read += 1,
            (None, Err(_)) => refused += 1,
            (None, Ok(_)) if WORDS_OF_JSON.iter().any(|word| literal.text.contains(word)) => {}
            (printed, _) => anyhow::bail!("seed {seed}: {:?}: {ours:?} instead of {printed:?}", literal.text),
        }
    }
    ensure!(
        read > refused / 4 && refused > read / 4,
        "{read} were read and {refused} refused"
    );
    Ok(())
}
