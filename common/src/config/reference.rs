//! The table of options for `docs/configuration.md`, generated from the option table.

use super::schema::DefaultText;
use super::{options, section_help};

/// The options of every section as Markdown tables.
pub fn reference() -> String {
    let options = options();
    let mut out = String::new();
    for (section, help) in section_help() {
        out.push_str(&format!(
            "\n### [{section}]\n\n{}\n\n| Option | Form | Default | Meaning |\n|---|---|---|---|\n",
            words(help)
        ));
        for option in options.iter().filter(|option| option.section == section) {
            let default = match &option.default {
                DefaultText::Value(Some(value)) if !value.is_empty() => format!("`{}`", cell(value)),
                DefaultText::Value(_) => "none".to_owned(),
                DefaultText::Template(text) => format!("`{}`", cell(text)),
                DefaultText::Machine(words, _) => (*words).to_owned(),
            };
            let new = if option.ours { " (new)" } else { "" };
            let was = option
                .was
                .iter()
                .map(|(section, name)| format!(" Was `[{section}] {name}`."))
                .collect::<String>();
            out.push_str(&format!(
                "| `{}`{new} | {} | {default} | {}{was} |\n",
                option.name,
                cell(&option.form),
                cell(&words(option.help)),
            ));
        }
    }
    out
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A bar would end the table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
