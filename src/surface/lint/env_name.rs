//! Variables for the program: named, each once, and nothing that a program could not receive.

use std::collections::HashSet;

use super::value_kind;
use crate::protocol::json::shortened;
use crate::surface::declaration::Variable;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;
use crate::surface::tree::{Entry, Node, Value};

pub(crate) const RULE: Rule =
    Rule::error("env-name", "a variable's name is a letter or _, then letters, digits and _, and stands once");

/// The variables by which what a program leaves behind is found, and which tells it the descriptor to talk on.
const OURS: &[&str] = &["TWODOOR_CALL", "TWODOOR_FD"];

/// Reads `env`: a list of names and mappings, or one mapping.
pub(crate) fn read(env: &Entry, findings: &mut Findings) -> Vec<At<Variable>> {
    let mut variables = Vec::new();
    match &env.node.value {
        Value::Map(entries) => literals(entries, &mut variables, findings),
        Value::List(items) => {
            for item in items {
                match &item.value {
                    Value::Map(entries) => literals(entries, &mut variables, findings),
                    Value::Text(name) => {
                        variables.push(At { span: item.span, value: Variable::Inherited(name.clone()) });
                    }
                    _ => value_kind::report("env", item, "text", findings),
                }
            }
        }
        _ => value_kind::report("env", &env.node, "a list of names, or a mapping of names to values", findings),
    }
    let mut seen = HashSet::new();
    for At { span, value } in &variables {
        let (Variable::Literal(name, _) | Variable::Inherited(name)) = value;
        let shown = shortened(name, 64);
        if !is_name(name) {
            let remedy = "use a letter or _, then letters, digits and _; write `NAME: value` for a value of your own";
            findings.report(&RULE, *span, format!("{shown:?} is not a variable's name"), remedy);
        } else if OURS.contains(&name.as_str()) {
            let remedy = "leave it out: a program that needs it receives one of its own";
            findings.report(&RULE, *span, format!("{name} is set by the server"), remedy);
        } else if !seen.insert(name.as_str()) {
            findings.report(&RULE, *span, format!("{shown:?} stands here a second time"), "keep one of the two");
        }
    }
    variables
}

fn literals(entries: &[Entry], variables: &mut Vec<At<Variable>>, findings: &mut Findings) {
    for Entry { key, node } in entries {
        let text = match node {
            Node { value: Value::Text(text), .. } => text.clone(),
            Node { value: Value::Number(text), .. } => text.to_string(),
            _ => {
                value_kind::report(&format!("the variable {:?}", key.value), node, "text", findings);
                continue;
            }
        };
        variables.push(At { span: key.span, value: Variable::Literal(key.value.clone(), text) });
    }
}

/// Whether a text can be a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn variables_have_names_and_stand_once() {
        for bad in [
            "[A=1]",
            "[\"\"]",
            "[1A]",
            "[A-B]",
            "{A B: x}",
            "[A, A]",
            "[A, {A: x}]",
            "[TWODOOR_CALL]",
            "{TWODOOR_CALL: x}",
            "{TWODOOR_FD: 3}",
        ] {
            breaks(super::RULE, &tool(&format!("env: {bad}")));
        }
        for good in ["[HOME, _A9]", "{TZ: UTC, LEVEL: 3}", "[HOME, {TZ: UTC}]"] {
            keeps(super::RULE, &tool(&format!("env: {good}")));
        }
    }
}
