//! What is written to a program's standard input is an argument of the tool.

use super::value_kind;
use crate::surface::arguments;
use crate::surface::declaration::Piece;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::source::At;
use crate::surface::template;
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error("stdin-argument", "`stdin` names one argument of its tool");

/// Reads `"{name}"`, `name`, and `{name}` without quotes, which YAML takes for a mapping.
pub(crate) fn read(stdin: &Entry, findings: &mut Findings) -> Option<At<String>> {
    let span = stdin.node.span;
    let name = match &stdin.node.value {
        Value::Map(entries) => match entries.as_slice() {
            [Entry { key, node }] if matches!(node.value, Value::Null) => Some(key.value.clone()),
            _ => None,
        },
        Value::Text(text) => match template::parse(text).ok()?.0.as_slice() {
            [Piece::Argument(name)] => Some(name.clone()),
            [Piece::Literal(name)] if template::is_argument_name(name) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    if name.is_none() {
        value_kind::report("stdin", &stdin.node, "one argument, such as \"{text}\"", findings);
    }
    Some(At { span, value: name? })
}

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends().filter(|tool| arguments::are_known(&tool.input)) {
        let Some(name) = &tool.stdin else { continue };
        let known = || tool.input.arguments.iter().map(|a| a.name.value.as_str());
        if !known().any(|argument| argument == name.value) {
            let message = format!("stdin names {:?}, which is no argument of {:?}", name.value, tool.name.value);
            let meant = did_you_mean(&name.value, known()).map(|name| format!("\"{{{name}}}\""));
            findings.suggest(&RULE, name.span, message, "declare it under `args`", meant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn stdin_names_an_argument() {
        let with = |stdin: &str| tool(&format!("args: {{text: {{type: string}}}}\nstdin: {stdin}"));
        for bad in ["\"{txt}\"", "txt", "{txt}"] {
            breaks(super::RULE, &with(bad));
        }
        for good in ["\"{text}\"", "text", "{text}"] {
            keeps(super::RULE, &with(good));
        }
        for odd in ["\"{text} {text}\"", "5", "[text]"] {
            breaks(super::value_kind::RULE, &with(odd));
        }
    }
}
