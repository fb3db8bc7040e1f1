//! How much a resource matters, from what may be left out to what must not.

use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error("priority", "a priority is a number from 0 to 1");

/// Reads `priority`.
pub(crate) fn read(entry: &Entry, findings: &mut Findings) -> Option<f64> {
    let number = match &entry.node.value {
        Value::Number(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    if number.is_none() {
        let written = shortened(findings.source().slice(entry.node.span).trim(), 40);
        let message = format!("priority is {written:?}: expected a number from 0 to 1");
        findings.report(&RULE, entry.node.span, message, "write 1 for what matters most, 0 for what may be left out");
    }
    number
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, resource};

    #[test]
    fn a_priority_is_between_nothing_and_everything() {
        for bad in ["-1", "1.5", "high", "\"1\"", "[1]"] {
            breaks(super::RULE, &resource(&format!("text: x\npriority: {bad}")));
        }
        for good in ["0", "1", "0.5"] {
            keeps(super::RULE, &resource(&format!("text: x\npriority: {good}")));
        }
    }
}
