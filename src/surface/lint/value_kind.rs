//! A value is of the kind that its key expects.

use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::source::At;
use crate::surface::tree::{Node, Value};

pub(crate) const RULE: Rule = Rule::error("value-kind", "a value is of the kind that its key expects");

/// Reports a value of another kind than expected.
pub(crate) fn report(what: &str, node: &Node, expected: &str, findings: &mut Findings) {
    let written = findings.source().slice(node.span).to_owned();
    let (remedy, suggestion) = match (&node.value, expected) {
        (Value::Number(_) | Value::Bool(_), "text") => ("put it in quotes".to_owned(), Some(format!("\"{written}\""))),
        (Value::Null, _) => ("write a value, or leave the key out".to_owned(), None),
        (Value::Text(text), "true or false") => {
            let meant = match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" | "true" => Some("true".to_owned()),
                "no" | "off" | "n" | "false" => Some("false".to_owned()),
                _ => None,
            };
            ("write true or false, without quotes".to_owned(), meant)
        }
        (Value::Text(_), _) if what == "run" => {
            ("write a list, such as [git, log]: no shell reads this, so nothing splits it".to_owned(), None)
        }
        _ => (
            example(what).map_or_else(|| format!("write {expected}"), |shown| format!("write it like `{shown}`")),
            None,
        ),
    };
    findings.suggest(&RULE, node.span, format!("{what} is {}: expected {expected}", node.kind()), remedy, suggestion);
}

/// What a key looks like that was written rightly.
fn example(what: &str) -> Option<&'static str> {
    Some(match what {
        "args" => "args: { path: { type: string } }",
        "an argument" => "path: { type: string }",
        "`as`" => "as: { path: path }",
        "env" => "env: [HOME, { TZ: UTC }]",
        "exit_codes" => "exit_codes: [0, 1]",
        "inputSchema" => "inputSchema: { type: object, properties: { path: { type: string } } }",
        "meta" => "meta: { com.example/team: docs }",
        "run" => "run: [git, --version]",
        "icons" => "icons: [{ src: https://example.com/icon.png }]",
        "match" => "match: \"*.md\"",
        "messages" => "messages: [{ role: user, text: Review this. }]",
        "missing_codes" => "missing_codes: [128]",
        "a variable" => "day: { pattern: \"^[0-9-]+$\" }",
        "an argument of a prompt" => "path: { required: true }",
        "resources" => "resources: { readme: { file: README.md } }",
        "a resource" => "readme: { file: README.md }",
        "templates" => "templates: { day: { uri: \"notes:{day}\", file: \"notes/{day}.md\" } }",
        "a template" => "day: { uri: \"notes:{day}\", file: \"notes/{day}.md\" }",
        "prompts" => "prompts: { review: { text: Review this. } }",
        "a prompt" => "review: { text: Review this. }",
        "tools" => "tools: { version: { description: Shows the version., run: [git, --version] } }",
        "a tool" => "version: { description: Shows the version., run: [git, --version] }",
        _ => return None,
    })
}

/// Reports a word that is none of those known.
pub(crate) fn one_of(what: &str, said: &At<String>, known: &[&str], findings: &mut Findings) {
    let message = format!("{what} is {:?}", shortened(&said.value, 64));
    let remedy = format!("write one of {}", known.join(", "));
    let suggestion = did_you_mean(&said.value, known.iter().copied());
    findings.suggest(&RULE, said.span, message, remedy, suggestion);
}

/// Reports an element of `run` that is no text.
pub(crate) fn element(node: &Node, findings: &mut Findings) {
    let written = findings.source().slice(node.span).trim().to_owned();
    let short = !written.contains('\n') && written.len() < 80;
    let message = match &node.value {
        Value::Map(_) => "an element of run is a mapping: YAML reads bare braces as one".to_owned(),
        _ => format!("an element of run is {}: expected text", node.kind()),
    };
    let suggestion = short.then(|| format!("\"{written}\"")).filter(|_| !matches!(node.value, Value::List(_)));
    let remedy = match node.value {
        Value::List(_) => "write a group as one inner list, not deeper",
        _ => "put it in quotes",
    };
    findings.suggest(&RULE, node.span, message, remedy, suggestion);
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn values_of_another_kind_are_refused_with_what_was_meant() {
        for bad in [
            "title: 5",
            "title:",
            "read_only: yes",
            "run: git log",
            "run: [ls, {path}]",
            "run: [ls, true]",
            "run: [ls, [a, [b]]]",
            "args: [a]",
            "args: {a: string}\nrun: [ls, \"x{a}\"]",
            "args: {a: {type: text}}\nrun: [ls, \"x{a}\"]",
            "output: yaml",
            "meta: x",
            "inputSchema: x",
        ] {
            breaks(super::RULE, &tool(bad));
        }
        for good in ["title: \"5\"", "read_only: true", "run: [ls, -w, 5]", "run: [ls, \"true\", [a, b]]"] {
            keeps(super::RULE, &tool(good));
        }
        let meant = |yaml: &str| problems(&tool(yaml)).list().iter().find_map(|p| p.suggestion.clone()).unwrap();
        let remedy =
            |yaml: &str| problems(yaml).list().iter().find(|p| p.rule == super::RULE.id).unwrap().remedy.clone();
        assert_eq!(remedy(&tool("env: 5")), "write it like `env: [HOME, { TZ: UTC }]`");
        assert_eq!(remedy(&tool("exit_codes: 1")), "write it like `exit_codes: [0, 1]`");
        assert_eq!(remedy(&tool("args: [a]")), "write it like `args: { path: { type: string } }`");
        assert!(remedy("surface: s\nversion: 1.0.0\ntools: [a]\n").starts_with("write it like `tools: {"));
        assert_eq!(remedy(&tool("title: [a]")), "write text");
        assert_eq!(meant("read_only: yes"), "true");
        assert_eq!(meant("args: {a: {type: strng}}"), "string");
        assert_eq!(meant("run: [ls, {path}]"), "\"{path}\"");
    }
}
