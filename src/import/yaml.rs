//! Surface files written for people: comments, an order, short values on one line.
//!
//! Promises: whatever texts go in, a reader of YAML gets the same values back; no comment ends before its line or is read
//! as anything else; what is switched off is a comment that becomes right by deleting `# ` from its lines.

use std::fmt::Write as _;

use crate::protocol::Json;
use crate::protocol::json::{is_invisible, visible};

/// Widest line that is not broken if it can be.
const WIDTH: usize = 120;
/// Widest line of a folded text or a comment.
const TEXT_WIDTH: usize = 100;

/// A value, and how it is laid out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Yaml {
    /// A value: on one line if it fits, else a line for each part.
    Value(Json),
    /// A mapping, a line for each entry.
    Map(Vec<Line>),
    /// A list, a line for each item.
    List(Vec<Line>),
}

/// A line of a mapping or a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// An empty line.
    Blank,
    /// A comment, broken at spaces.
    Comment(String),
    /// An entry of a mapping.
    Entry(String, Yaml),
    /// An item of a list.
    Item(Yaml),
    /// A line that is switched off: a comment.
    Off(Box<Line>),
}

impl Line {
    /// An entry with a text.
    pub(crate) fn text(key: &str, text: impl Into<String>) -> Self {
        Self::Entry(key.to_owned(), Yaml::Value(Json::String(text.into())))
    }

    /// An entry with `true` or `false`.
    pub(crate) fn flag(key: &str, value: bool) -> Self {
        Self::Entry(key.to_owned(), Yaml::Value(Json::Bool(value)))
    }

    /// An entry with a value.
    pub(crate) fn value(key: &str, value: Json) -> Self {
        Self::Entry(key.to_owned(), Yaml::Value(value))
    }

    /// A line that is switched off.
    pub(crate) fn off(line: Line) -> Self {
        Self::Off(Box::new(line))
    }
}

/// The text of a document that is a mapping.
pub(crate) fn document(lines: &[Line]) -> String {
    let mut out = String::new();
    map(lines, 0, &mut out);
    out
}

fn map(lines: &[Line], indent: usize, out: &mut String) {
    for line in lines {
        self::line(line, indent, out);
    }
}

fn line(line: &Line, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match line {
        Line::Blank => out.push('\n'),
        Line::Comment(text) => comment(text, indent, out),
        Line::Entry(key, value) => {
            let _ = write!(out, "{pad}{}:", scalar(key));
            after_key(value, indent, out);
        }
        Line::Item(value) => {
            let _ = write!(out, "{pad}-");
            after_key(value, indent, out);
        }
        Line::Off(line) => {
            let mut text = String::new();
            self::line(line, 0, &mut text);
            for line in text.lines() {
                let _ = writeln!(out, "{pad}# {line}");
            }
        }
    }
}

/// What stands behind a key or a dash, the line's end included.
fn after_key(value: &Yaml, indent: usize, out: &mut String) {
    match value {
        Yaml::Map(lines) if has_entries(lines) => {
            out.push('\n');
            map(lines, indent + 2, out);
        }
        Yaml::List(lines) if has_entries(lines) => {
            out.push('\n');
            map(lines, indent + 2, out);
        }
        // Comments alone leave nothing to hold the value's place.
        Yaml::Map(lines) => empty("{}", lines, indent, out),
        Yaml::List(lines) => empty("[]", lines, indent, out),
        Yaml::Value(json) => self::value(json, indent, out),
    }
}

fn empty(value: &str, lines: &[Line], indent: usize, out: &mut String) {
    let _ = writeln!(out, " {value}");
    map(lines, indent + 2, out);
}

fn has_entries(lines: &[Line]) -> bool {
    lines.iter().any(|line| matches!(line, Line::Entry(..) | Line::Item(_)))
}

fn value(json: &Json, indent: usize, out: &mut String) {
    let used = out.len() - out.rfind('\n').map_or(0, |end| end + 1);
    if let Json::String(text) = json
        && let Some(lines) = block(text, indent + 2)
    {
        let _ = write!(out, " {lines}");
        return;
    }
    let flow = flow(json);
    let is_scalar = !matches!(json, Json::Array(items) if !items.is_empty())
        && !matches!(json, Json::Object(members) if !members.is_empty());
    if is_scalar || used + 1 + flow.len() <= WIDTH {
        let _ = writeln!(out, " {flow}");
        return;
    }
    out.push('\n');
    let pad = " ".repeat(indent + 2);
    match json {
        Json::Array(items) => {
            for item in items {
                let _ = write!(out, "{pad}-");
                value(item, indent + 2, out);
            }
        }
        Json::Object(members) => {
            for (key, member) in members {
                let _ = write!(out, "{pad}{}:", scalar(key));
                value(member, indent + 2, out);
            }
        }
        _ => {}
    }
}

/// A comment of one or more lines. What cannot be seen is escaped, so that none hides and none ends early.
fn comment(text: &str, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for paragraph in text.lines() {
        // YAML has no place for these two, in comments either (YAML 1.2.2, 5.1).
        let paragraph = visible(paragraph.chars()).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
        let mut used = 0;
        for word in paragraph.split(' ') {
            if used > 0 && indent + used + 1 + word.chars().count() > TEXT_WIDTH {
                out.push('\n');
                used = 0;
            }
            let _ = if used == 0 { write!(out, "{pad}# {word}") } else { write!(out, " {word}") };
            used += 1 + word.chars().count();
        }
        // A line that ends in a space says nothing.
        let end = out.trim_end_matches(' ').len();
        out.truncate(end);
        out.push('\n');
    }
}

/// A text as a block of lines, where that reads better and gives back the same text.
fn block(text: &str, indent: usize) -> Option<String> {
    let plain = text.chars().all(|c| c == '\n' || !is_escaped(c));
    let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
    if !plain || edges || text.contains(" \n") || text.contains("\t") {
        return None;
    }
    let pad = " ".repeat(indent);
    if text.contains('\n') {
        let lines = text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{pad}{line}\n") });
        return Some(format!("|-\n{}", lines.collect::<String>()));
    }
    if text.chars().count() + indent <= WIDTH || text.contains("  ") {
        return None;
    }
    let mut out = ">-\n".to_owned();
    let mut used = 0;
    for word in text.split(' ') {
        if used > 0 && indent + used + 1 + word.chars().count() > TEXT_WIDTH {
            out.push('\n');
            used = 0;
        }
        let _ = if used == 0 { write!(out, "{pad}{word}") } else { write!(out, " {word}") };
        used += 1 + word.chars().count();
    }
    out.push('\n');
    Some(out)
}

/// A value on one line.
fn flow(json: &Json) -> String {
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(text) => text.to_string(),
        Json::String(text) => scalar(text),
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Object(members) if members.is_empty() => "{}".to_owned(),
        Json::Object(members) => {
            let members = members.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A text on one line: bare where every reader takes it for that text, else in quotes.
fn scalar(text: &str) -> String {
    if is_bare(text) { text.to_owned() } else { quoted(text) }
}

/// Words that some reader takes for a truth value or for nothing.
const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

fn is_bare(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_version =
        parts.clone().count() == 3 && parts.all(|part| part.parse::<u32>().is_ok() && !part.starts_with('+'));
    let is_path = text == "." || text.starts_with("./") || text.starts_with("../");
    let begins = is_path
        || text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        || text
            .strip_prefix("--")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_alphabetic()))
        || text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    // A dash or dots that begin a document's marker stand in no text that passes here.
    let allowed = |c: char| c.is_alphanumeric() || " -_./+=()'!;$*?<>^~".contains(c);
    is_version
        || (begins
            && text.chars().all(|c| allowed(c) && !is_escaped(c))
            && !text.ends_with(' ')
            && !text.contains(" -")
            && !WORDS.contains(&text.to_ascii_lowercase().as_str()))
}

/// A text as JSON writes it, which YAML reads alike, with everything that cannot be seen escaped.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_escaped(c) => {
                let code = u32::from(c);
                let _ = if code > 0xffff { write!(out, "\\U{code:08x}") } else { write!(out, "\\u{code:04x}") };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a character cannot stand in a file as itself: YAML has no room for it, or nobody sees it.
fn is_escaped(character: char) -> bool {
    let code = u32::from(character);
    character.is_control() || is_invisible(character) || code & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::surface::draft;

    fn read(text: &str) -> Json {
        let (json, passed_over) =
            draft::read(text.to_owned(), usize::MAX).unwrap_or_else(|problems| panic!("{problems}\nof\n{text}"));
        assert!(passed_over.is_empty(), "{passed_over}\nof\n{text}");
        json
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[ -~\n\t]{0,40}",
            "[a-z #:,{}\\[\\]&*!|>'\"%@`?-]{0,20}",
            "([a-zA-Z#:-]{1,12} ){5,30}[a-z]",
            "([a-z#: -]{0,12}\n){1,6}[a-z]",
            "[0-9+.eExo_-]{1,8}",
            prop::sample::select(vec![
                "", "~", "null", "yes", "No", "---", "...", "--- a", "-", "--", "0x1", "1e5", "<<", "=", "1.2.3"
            ])
            .prop_map(str::to_owned),
        ]
    }

    /// Keys: a surface file refuses the merge key in quotes too, so none is written.
    fn keys() -> impl Strategy<Value = String> {
        texts().prop_filter("a merge key", |key| key != "<<")
    }

    fn values() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            texts().prop_map(Json::String),
            any::<bool>().prop_map(Json::Bool),
            any::<i32>().prop_map(|n| Json::Number(n.to_string().into())),
            Just(Json::Null),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
                prop::collection::btree_map(keys(), inner, 0..5)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_written_is_read_back(key in keys(), value in values(), said in texts(), off in values()) {
            let lines = [
                Line::Comment(said.clone()),
                Line::Blank,
                Line::Entry(key.clone(), Yaml::Value(value.clone())),
                Line::off(Line::Entry(key.clone(), Yaml::Value(off.clone()))),
                Line::Entry(
                    format!("{key}x"),
                    Yaml::Map(vec![
                        Line::Comment(said.clone()),
                        Line::off(Line::value("gone", off.clone())),
                        Line::value("deep", value.clone()),
                        Line::Entry("list".to_owned(), Yaml::List(vec![
                            Line::Item(Yaml::Value(value.clone())),
                            Line::off(Line::Item(Yaml::Value(off))),
                            Line::Comment(said.clone()),
                            Line::Item(Yaml::Value(value.clone())),
                        ])),
                    ]),
                ),
                Line::Entry(format!("{key}y"), Yaml::Map(vec![Line::Comment(said)])),
            ];
            let list = Json::Array(vec![value.clone(), value.clone()]);
            let deep = Json::Object(vec![("deep".to_owned(), value.clone()), ("list".to_owned(), list)]);
            let expected = Json::Object(vec![
                (key.clone(), value),
                (format!("{key}x"), deep),
                (format!("{key}y"), Json::Object(Vec::new())),
            ]);
            let text = document(&lines);
            prop_assert_eq!(read(&text), expected, "{}", text);
            prop_assert!(text.chars().all(|c| c == '\n' || !is_escaped(c)), "{}", text);
        }
    }

    #[test]
    fn short_values_share_a_line_and_long_texts_are_folded() {
        let lines = [
            Line::Comment("Where it came from.".to_owned()),
            Line::text("surface", "s"),
            Line::text("version", "0.1.0"),
            Line::text("about", "word ".repeat(40).trim_end()),
            Line::Entry(
                "run".to_owned(),
                Yaml::List(vec![
                    Line::Item(Yaml::Value(Json::String("git".to_owned()))),
                    Line::off(Line::Item(Yaml::Value(Json::String("--exec={exec}".to_owned())))),
                    Line::Item(Yaml::Value(Json::Array(vec![
                        Json::String("--max".to_owned()),
                        Json::String("{max}".to_owned()),
                    ]))),
                ]),
            ),
        ];
        let expected = "# Where it came from.\nsurface: s\nversion: 0.1.0\nabout: >-\n  ".to_owned()
            + "word ".repeat(19).trim_end()
            + "\n";
        let text = document(&lines);
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.ends_with("run:\n  - git\n  # - \"--exec={exec}\"\n  - [--max, \"{max}\"]\n"), "{text}");
    }
}
