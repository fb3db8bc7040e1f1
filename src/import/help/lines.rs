//! A help text as lines: escapes taken out, tabs set, headings told from entries.

use super::{HELP_BYTES, Section};
use crate::import::text::one_line;

/// A line without its indentation.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
}

/// A help text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) lines: Vec<Line>,
}

const TAB: usize = 8;
/// Longest line that is looked at.
const LINE_CHARACTERS: usize = 2000;
/// Most lines of one description.
const DESCRIPTION_LINES: usize = 30;

impl Text {
    pub(super) fn read(text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(HELP_BYTES)).unwrap_or_default();
        let plain = without_escapes(text);
        let lines = plain.lines().map(|line| {
            let mut set = String::new();
            for character in line.chars().take(LINE_CHARACTERS) {
                if character == '\t' {
                    let column = set.chars().count();
                    set.push_str(&" ".repeat(TAB - column % TAB));
                } else if !character.is_control() {
                    set.push(character);
                }
            }
            let trimmed = set.trim();
            Line { indent: set.chars().take_while(|c| *c == ' ').count(), text: trimmed.to_owned() }
        });
        Self { lines: lines.collect() }
    }

    /// Whether this is a page of the manual: it tells a long story in which options stand here and there.
    pub(super) fn is_manual(&self) -> bool {
        let is = |name: &str| self.lines.iter().take(40).any(|line| line.indent == 0 && line.text == name);
        is("NAME") && (is("SYNOPSIS") || is("DESCRIPTION"))
    }

    /// Whether the text is of a kind of program whose flags take `=true`.
    pub(super) fn is_go(&self) -> bool {
        self.lines.iter().any(|line| {
            matches!(line.text.as_str(), "Flags:" | "Global Flags:" | "Available Commands:")
                || line.text.starts_with("Usage of ")
                || is_go_option(&line.text)
                || (line.text.starts_with("Run '") && line.text.contains(" COMMAND --help'"))
                || (line.text.starts_with("Use \"") && line.text.contains("[command] --help\""))
        })
    }

    /// What a line begins, if it is a heading.
    pub(super) fn heading(&self, index: usize) -> Option<Section> {
        let line = self.lines.get(index)?;
        let text = line.text.as_str();
        let next = self.lines.get(index + 1..)?.iter().find(|next| !next.text.is_empty())?;
        let named = text.strip_suffix(':').unwrap_or(text);
        let capitals = text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase() || matches!(c, ' ' | '_' | ':'));
        let is_short = text.chars().count() <= 80 && !text.starts_with(['-', '<', '{']) && !text.contains("  ");
        let is_heading = is_short && line.indent <= 2 && (text.ends_with(':') || capitals);
        // git's own: a sentence at the margin with entries beneath.
        let beneath = line.indent == 0 && next.indent >= 2 && is_short && entry(&next.text).0 != next.text;
        let follows_blank = index == 0 || self.lines.get(index - 1).is_some_and(|line| line.text.is_empty());
        if !(is_heading || (beneath && follows_blank && !text.ends_with('.'))) {
            return None;
        }
        let lower = named.to_ascii_lowercase();
        let has = |word: &str| lower.contains(word);
        Some(if has("usage") || has("example") || has("alias") || has("environment") || has("see also") {
            Section::Other
        } else if (has("global") || has("inherited")) && (has("flag") || has("option")) {
            Section::GlobalOptions
        } else if has("command") || has("subcommand") || has("action") && !has("option") {
            Section::Commands
        } else if has("argument") && !has("option") || lower == "args" || lower == "positionals" {
            Section::Arguments
        } else if has("option") || has("flag") || has("switch") {
            Section::Options
        } else {
            Section::Other
        })
    }

    /// A description that begins on a line, and the line behind its last.
    pub(super) fn continued(&self, index: usize, first: &str) -> (String, usize) {
        let indent = self.lines.get(index).map_or(0, |line| line.indent);
        let mut parts = vec![first.to_owned()];
        let mut next = index + 1;
        // The column where the text of an entry stands; a line further left is another entry.
        let column = self.lines.get(index).map_or(0, |line| {
            if first.is_empty() { 0 } else { indent + line.text.chars().count() - first.chars().count() }
        });
        while let Some(line) = self.lines.get(next) {
            if line.text.is_empty() {
                let after = self.lines.get(next + 1);
                let goes_on = after.is_some_and(|after| {
                    after.indent > indent + 2
                        && !after.text.is_empty()
                        && after.indent + 2 >= column
                        && !after.text.starts_with('-')
                        || (after.indent > indent + 3 && after.text.starts_with("- "))
                });
                if !goes_on {
                    break;
                }
                next += 1;
                continue;
            }
            let is_listed = line.text.starts_with("- ") && line.indent > indent + 3;
            let is_entry = line.text.starts_with('-') && !is_listed && (column == 0 || line.indent + 4 < column);
            let is_entry = is_entry || (column > 0 && line.indent + 4 < column);
            if line.indent <= indent || is_entry || parts.len() > DESCRIPTION_LINES {
                break;
            }
            // Parts of a list of values are told apart.
            parts.push(if is_listed { format!("; {}", line.text.trim_start_matches("- ")) } else { line.text.clone() });
            next += 1;
        }
        (one_line(&parts.join(" ")).replace(" ; ", "; ").replace(":; ", ": "), next)
    }
}

/// Whether an option's value is named by a type of Go, as its libraries for flags write it.
fn is_go_option(text: &str) -> bool {
    const TYPES: [&str; 9] =
        ["string", "strings", "stringArray", "stringToString", "list", "int", "uint", "duration", "bytes"];
    let (left, right) = entry(text);
    let mut words = left.split_whitespace().rev();
    let kind = words.next().is_some_and(|word| TYPES.contains(&word));
    kind && !right.is_empty() && words.next().is_some_and(|name| name.starts_with("--"))
}

/// What stands on the left of the gap of an entry, and on its right: two spaces or more.
pub(super) fn entry(text: &str) -> (&str, &str) {
    match text.find("  ") {
        Some(gap) => {
            let (left, right) = text.split_at(gap);
            (left, right.trim_start())
        }
        None => (text, ""),
    }
}

/// Without what terminals obey: colour, links, overstruck letters.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => while characters.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
                Some(']') => while characters.next().is_some_and(|c| c != '\u{7}' && c != '\\') {},
                _ => {}
            },
            '\u{8}' => {
                out.pop();
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}
