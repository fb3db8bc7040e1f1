//! What is imported: texts of others in, a surface file out that passes `check` and says what to decide.
//!
//! What comes out of the files in `help/` and `openapi/` stands beside them; `BLESS=1` writes it anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may fail by panicking"
)]

mod command;
mod help;
mod openapi;
mod upstream;

use std::path::Path;

use twodoor::surface::draft;

/// Compares a text with the file beside its source.
fn compare(file: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert!(text == expected, "{} differs: look at it, then BLESS=1. Now it is\n{text}", file.display());
}

/// Holds a text to the rules; gives the warnings.
fn check(text: &str) -> Vec<String> {
    match draft::check(text.to_owned(), Path::new("/")) {
        // Whether a secret is set is up to the machine.
        Ok(loaded) => {
            let warnings = loaded.warnings.list().iter().map(|problem| problem.rule.to_owned());
            warnings.filter(|rule| rule != "unset-variable").collect()
        }
        Err(problems) => panic!("{problems}\nof\n{text}"),
    }
}
