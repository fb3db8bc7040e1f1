//! Exit codes that mean success, such as 1 of `grep` for "nothing found".

use super::value_kind;
use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule =
    Rule::error("exit-code", "an exit code is a whole number from 0 to 255, and there is at least one");

/// Reads `exit_codes`, or another list of codes.
pub(crate) fn read(entry: &Entry, findings: &mut Findings) -> Option<Vec<i32>> {
    let Some(items) = entry.node.as_list() else {
        value_kind::report(&entry.key.value, &entry.node, "a list of numbers, such as [0, 1]", findings);
        return None;
    };
    if items.is_empty() {
        findings.report(
            &RULE,
            entry.key.span,
            "there is no exit code in the list",
            "write one, such as [0], or leave it out",
        );
    }
    let codes: Vec<Option<i32>> = items
        .iter()
        .map(|item| {
            let code = match &item.value {
                Value::Number(text) => text.parse::<u8>().ok(),
                _ => None,
            };
            if code.is_none() {
                let message = format!("{} is no exit code", findings.source().slice(item.span).trim());
                findings.report(&RULE, item.span, message, "write a whole number from 0 to 255");
            }
            code.map(i32::from)
        })
        .collect();
    codes.into_iter().collect::<Option<Vec<_>>>().filter(|codes| !codes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn exit_codes_are_small_whole_numbers() {
        for bad in ["[]", "[256]", "[-1]", "[0, one]", "[1.5]"] {
            breaks(super::RULE, &tool(&format!("exit_codes: {bad}")));
        }
        keeps(super::RULE, &tool("exit_codes: [0, 1, 255]"));
    }
}
