//! What is written to a program's standard input is an argument of the tool, or all of them.

use super::value_kind;
use crate::surface::arguments;
use crate::surface::declaration::{Feed, Piece};
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::source::At;
use crate::surface::template;
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error("stdin-argument", "`stdin` names one argument of its tool, or is `\"{*}\"`");

/// Stands for all arguments: no argument has this name.
const ALL: &str = "{*}";

/// Reads `"{*}"`, `"{name}"`, `name`, and `{name}` without quotes, which YAML takes for a mapping.
pub(crate) fn read(stdin: &Entry, findings: &mut Findings) -> Option<At<Feed>> {
    let span = stdin.node.span;
    if matches!(&stdin.node.value, Value::Text(text) if text == ALL) {
        return Some(At { span, value: Feed::Arguments });
    }
    let name = match &stdin.node.value {
        Value::Map(entries) => match entries.as_slice() {
            [Entry { key, node }] if matches!(node.value, Value::Null) => Some(key.value.clone()),
            _ => None,
        },
        Value::Text(text) => match template::parse(text).as_ref().map(|template| template.0.as_slice()) {
            Ok([Piece::Argument(name)]) => Some(name.clone()),
            Ok([Piece::Literal(name)]) if template::is_argument_name(name) => Some(name.clone()),
            Ok(_) | Err(_) => None,
        },
        _ => None,
    };
    if name.is_none() {
        value_kind::report("stdin", &stdin.node, "one argument, such as \"{text}\", or \"{*}\" for all", findings);
    }
    Some(At { span, value: Feed::Argument(name?) })
}

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends().filter(|tool| arguments::are_known(&tool.input)) {
        let Some(At { span, value: Feed::Argument(name) }) = &tool.stdin else { continue };
        let known = || tool.input.arguments.iter().map(|a| a.name.value.as_str());
        if !known().any(|argument| argument == name) {
            let message = format!("stdin names {:?}, which is no argument of {:?}", name, tool.name.value);
            let meant = did_you_mean(name, known()).map(|name| format!("\"{{{name}}}\""));
            findings.suggest(&RULE, *span, message, "declare it under `args`", meant);
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
        for good in ["\"{text}\"", "text", "{text}", "\"{*}\""] {
            keeps(super::RULE, &with(good));
        }
        for odd in ["\"{text} {text}\"", "\"{*} {*}\"", "\"{text\"", "5", "[text]"] {
            breaks(super::value_kind::RULE, &with(odd));
        }
    }
}
