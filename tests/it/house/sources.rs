//! The files of the checkout, as the tests of this room read them. Comments are left out of the search: prose may name
//! anything.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path from the root of the workspace, and its code without comments.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) code: String,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
        .to_path_buf()
}

/// Every file of the workspace whose name ends so, build output and what git does not keep left out.
pub(super) fn files(endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable folder") {
            let path = entry.expect("readable entry").path();
            let name = path.file_name().expect("named").to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | ".run" | "__pycache__") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let Ok(text) = fs::read_to_string(&path) else {
                    continue;
                };
                let code = text.lines().map(code_of).collect::<Vec<_>>().join("\n");
                let path = path
                    .strip_prefix(root())
                    .expect("inside")
                    .to_string_lossy()
                    .into_owned();
                found.push(Source { path, text, code });
            }
        }
    }
    assert!(!found.is_empty(), "found no file that ends in {endings:?}");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The code of a line: neither its comment nor what stands between quotes.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quoted => drop(letters.next()),
            '"' => quoted = !quoted,
            '/' if !quoted && letters.peek() == Some(&'/') => break,
            _ if quoted => {}
            _ => code.push(letter),
        }
    }
    code
}

/// Whether `code` names the crate or module `word` as a path: `word::`.
pub(super) fn names(code: &str, word: &str) -> bool {
    let needle = format!("{word}::");
    code.match_indices(&needle).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        // `other::word::` is a module of something else, `my_word::` another word.
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

pub(super) fn offenders(rule: &str, breaks: impl Fn(&Source) -> bool) {
    let found: Vec<String> = files(&[".rs"])
        .into_iter()
        .filter(|source| breaks(source))
        .map(|source| source.path)
        .collect();
    assert!(found.is_empty(), "{rule}\n  {}", found.join("\n  "));
}

/// Whether the file is module `module` of `crate_src`: `module.rs` or anything below `module/`.
pub(super) fn is_module(path: &str, module: &str) -> bool {
    path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))
}

pub(super) fn in_one_of(path: &str, modules: &[&str]) -> bool {
    modules.iter().any(|module| is_module(path, module))
}
