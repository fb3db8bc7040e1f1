//! A lock as text: what people compare line by line, one tool a block.
//!
//! Promises: whatever is written reads back as what was meant, or it is left out: a lock without its definitions
//! still holds.

use super::super::problem::Findings;
use super::super::scalar::{self, Plain};
use super::super::source::{FILE_BYTES, Source};
use super::super::tree;
use crate::protocol::{Catalog, Json, Revision};

/// The text of the lock that holds for a catalog.
pub fn text(catalog: &Catalog) -> String {
    let digest = catalog.digest(Revision::MODERN);
    let identity = catalog.identity();
    let mut text =
        "# The tools of this surface as they were reviewed. `twodoor lock` writes this file.\nversion: 2\n".to_owned();
    text.push_str(&format!("surface: {}\n", scalar(&identity.name)));
    text.push_str(&format!("surface_version: {}\n", scalar(&identity.version)));
    text.push_str(&format!("digest: {digest}\n"));
    let others = Revision::ALL.into_iter().filter(|revision| catalog.digest(*revision) != digest);
    for (index, revision) in others.enumerate() {
        if index == 0 {
            text.push_str("revisions:\n");
        }
        text.push_str(&format!("  \"{}\": {}\n", revision.name(), catalog.digest(revision)));
    }
    let tools = Json::Array(catalog.definitions(Revision::MODERN));
    let mut block = "tools:".to_owned();
    value(&tools, 0, &mut block);
    let whole = format!("{text}{block}\n");
    let fits = u64::try_from(whole.len()).is_ok_and(|length| length <= FILE_BYTES);
    if fits && reads_back(&whole, &tools) { whole } else { text }
}

fn reads_back(text: &str, tools: &Json) -> bool {
    let mut findings = Findings::new(Source::new("lock".into(), text.to_owned()));
    let root = tree::parse(&mut findings);
    let read = root.as_ref().and_then(|root| root.get("tools")).map(|tools| tools.node.to_json());
    !findings.has_errors() && read.as_ref() == Some(tools)
}

/// Writes what follows a `key:` or a `-`, from the space before it on.
fn value(value: &Json, indent: usize, out: &mut String) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                line(indent, out);
                entry(key, member, indent, out);
            }
        }
        Json::Array(items) if !items.is_empty() && !items.iter().all(is_scalar) => {
            for item in items {
                line(indent, out);
                out.push('-');
                match item {
                    Json::Object(members) if !members.is_empty() => {
                        for (index, (key, member)) in members.iter().enumerate() {
                            if index == 0 {
                                out.push(' ');
                            } else {
                                line(indent + 2, out);
                            }
                            entry(key, member, indent + 2, out);
                        }
                    }
                    item => self::value(item, indent + 2, out),
                }
            }
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            out.push_str(&format!(" [{}]", items.join(", ")));
        }
        Json::String(text) if is_block(text) => {
            out.push_str(if text.ends_with('\n') { " |" } else { " |-" });
            for part in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                if part.is_empty() {
                    out.push('\n');
                } else {
                    line(indent, out);
                    out.push_str(part);
                }
            }
        }
        other => {
            out.push(' ');
            out.push_str(&inline(other));
        }
    }
}

fn entry(key: &str, member: &Json, indent: usize, out: &mut String) {
    out.push_str(&scalar(key));
    out.push(':');
    value(member, indent + 2, out);
}

fn line(indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn is_scalar(value: &Json) -> bool {
    !matches!(value, Json::Array(_) | Json::Object(_))
}

fn inline(value: &Json) -> String {
    match value {
        Json::String(text) => scalar(text),
        other => other.to_text(),
    }
}

/// A text as it stands where it is a word, else in quotes as JSON writes it, which YAML reads alike.
fn scalar(text: &str) -> String {
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && scalar::resolve(text) == Plain::Text;
    let version = text.starts_with(|c: char| c.is_ascii_digit())
        && text.split('.').count() > 2
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'))
        && scalar::resolve(text) == Plain::Text;
    if word || version { text.to_owned() } else { serde_json::to_string(text).unwrap_or_default() }
}

/// Whether a text of several lines can stand as they are.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && !text.chars().any(|c| c.is_control() && c != '\n')
        && body.split('\n').all(|line| !line.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::{CatalogParts, ToolParts};

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn a_lock_has_one_line_for_each_thing_that_can_change() {
        let mut tool = ToolParts::new("log");
        tool.description = Some("Latest commits.\n\n  Narrow with path.".to_owned());
        tool.title = Some("yes: no".to_owned());
        tool.input_schema = json(
            r#"{"type":"object","properties":{"true":{"enum":["a","null",1,"x y"]},"n":{"type":["string","null"],"maximum":5}},"additionalProperties":false}"#,
        );
        let parts = CatalogParts { tools: vec![tool, ToolParts::new("b")], ..CatalogParts::new("s", "1.0.0") };
        let catalog = Catalog::build(parts).unwrap();
        let expected = format!(
            r#"# The tools of this surface as they were reviewed. `twodoor lock` writes this file.
version: 2
surface: s
surface_version: 1.0.0
digest: {}
tools:
- name: log
  title: "yes: no"
  description: |-
    Latest commits.

      Narrow with path.
  inputSchema:
    type: object
    properties:
      "true":
        enum: [a, "null", 1, "x y"]
      n:
        type: [string, "null"]
        maximum: 5
    additionalProperties: false
- name: b
  inputSchema:
    type: object
    additionalProperties: false
"#,
            catalog.digest(Revision::MODERN)
        );
        assert_eq!(text(&catalog), expected);
    }

    fn values() -> impl proptest::strategy::Strategy<Value = Json> {
        use proptest::prelude::*;
        let text = prop_oneof![
            prop::sample::select(vec![
                "",
                "a",
                "yes",
                "null",
                "1.5",
                "1.2.3",
                "- x",
                "a: b",
                "#c",
                "a\nb",
                "a\nb\n",
                " a\nb",
                "a \nb",
                "\n",
                "é\u{2028}",
                "😀",
                "'",
                "\"\\",
                "? a",
                "---",
                "&a",
                "*a",
                "!t",
                "%x",
                "a\tb",
                "|",
                "a\n\n b"
            ])
            .prop_map(str::to_owned),
            ".{0,12}",
        ];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            any::<i64>().prop_map(|n| Json::Number(n.to_string().into())),
            text.clone().prop_map(Json::String),
        ];
        leaf.prop_recursive(5, 30, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back_unless_it_has_what_yaml_cannot_hold(tools in proptest::collection::vec(values(), 0..3)) {
            let tools = Json::Array(tools);
            let mut text = "tools:".to_owned();
            value(&tools, 0, &mut text);
            let unwritable = |text: &str| text.contains("<<") || text.chars().any(|c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'));
            if !unwritable(&tools.to_text()) {
                proptest::prop_assert!(reads_back(&text, &tools), "{}", text);
            }
        }
    }
}
