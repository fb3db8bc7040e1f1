//! Text that nobody sees, or that changes how other text is shown, hides instructions from whoever
//! reviews the file, but not from the model.

use crate::protocol::json::is_invisible;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;
use crate::surface::tree::{Node, Value};

pub(crate) const RULE: Rule =
    Rule::error("hidden-characters", "no text has invisible, bidirectional or control characters, comments included");

const REMEDY: &str = "delete it; only tab and line feed are let through";

/// Looks at the file as written. `false` if it has characters that YAML does not allow.
pub(crate) fn check_source(findings: &mut Findings) -> bool {
    let source = findings.source().clone();
    let mut readable = true;
    let mut characters = source.text().char_indices().peekable();
    while let Some((start, character)) = characters.next() {
        let before_line_feed = characters.peek().is_some_and(|(_, next)| *next == '\n');
        if (character == '\r' && before_line_feed) || !is_hidden(character) {
            continue;
        }
        readable &= !character.is_control();
        report(character, Span { start, end: start + character.len_utf8() }, findings);
    }
    readable
}

/// Looks at texts that escapes such as `"\e"` were written in.
pub(crate) fn check_tree(node: &Node, findings: &mut Findings) {
    match &node.value {
        Value::Text(text) => check_text(text, node.span, findings),
        Value::List(items) => items.iter().for_each(|item| check_tree(item, findings)),
        Value::Map(entries) => {
            for entry in entries {
                check_text(&entry.key.value, entry.key.span, findings);
                check_tree(&entry.node, findings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check_text(text: &str, span: Span, findings: &mut Findings) {
    let written_as_such = findings.source().slice(span).chars().any(is_hidden);
    if let Some(character) = text.chars().find(|c| is_hidden(*c)).filter(|_| !written_as_such) {
        report(character, span, findings);
    }
}

fn report(character: char, span: Span, findings: &mut Findings) {
    let kind = match character {
        '\0' => "NUL",
        '\u{1b}' => "an escape character, which terminals obey",
        c if c.is_control() => "a control character",
        '\u{e0000}'..='\u{e007f}' => "a tag character, which only models read",
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "a bidirectional control, which reorders what is shown",
        _ => "a character that is not shown",
    };
    findings.report(&RULE, span, format!("U+{:04X} stands here: {kind}", u32::from(character)), REMEDY);
}

fn is_hidden(character: char) -> bool {
    is_invisible(character) || (character.is_control() && !matches!(character, '\t' | '\n'))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn hidden_characters_are_refused_written_and_escaped_and_in_comments() {
        for character in
            ['\u{202e}', '\u{200b}', '\u{e0041}', '\u{2028}', '\u{1b}', '\0', '\u{7f}', '\u{85}', '\u{feff}']
        {
            breaks(super::RULE, &tool(&format!("title: a{character}b")));
        }
        for escaped in [r#"title: "\e[2J""#, r#"title: "a\0b""#, r#"title: "\u202E""#, r#""ti\u200Btle": x"#] {
            breaks(super::RULE, &tool(escaped));
        }
        breaks(super::RULE, &tool("title: x # note\u{2066}"));
        breaks(super::RULE, &tool("title: x\ry: 1"));
        keeps(super::RULE, &tool("title: Größe, 大きさ, 😀"));
        keeps(super::RULE, &tool("title: x").replace('\n', "\r\n"));
        let problems = problems(&tool("title: a\u{202e}b"));
        let place = |p: &crate::surface::Problem| (p.line, p.column, p.end_column);
        assert_eq!(problems.list().iter().map(place).collect::<Vec<_>>(), [(6, 13, 14)]);
    }
}
