//! The byte order mark before the text of a file that is changed where it stands.

use super::json_text::Flaw;

const MARK: char = '\u{feff}';

/// The text of a file, and whether a byte order mark stands before it.
pub fn unmarked(bytes: &[u8]) -> Result<(bool, &str), Flaw> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let valid = String::from_utf8_lossy(valid);
        Flaw::at(&valid, valid.len(), "this is not UTF-8")
    })?;
    Ok(text.strip_prefix(MARK).map_or((false, text), |rest| (true, rest)))
}

/// The bytes of a file with that text, a byte order mark before it if there was one.
pub fn marked(mark: bool, text: &str) -> Vec<u8> {
    let mark = if mark { MARK.to_string() } else { String::new() };
    format!("{mark}{text}").into_bytes()
}
