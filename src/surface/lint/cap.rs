//! How much of a program's output a result may hold.

use super::value_kind;
use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule};
use crate::surface::quantity;
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error("cap", "a cap is a whole number of bytes, KiB or MiB, from 1 byte to 4 MiB");

/// What a child's output is captured up to; a cap beyond it would promise what is never kept.
const CAP_AT_MOST: usize = 4 * 1024 * 1024;

/// Reads `cap`.
pub(crate) fn read(entry: &Entry, findings: &mut Findings) -> Option<usize> {
    let text: &str = match &entry.node.value {
        Value::Text(text) => text,
        Value::Number(text) => text,
        _ => {
            value_kind::report("cap", &entry.node, "a size, such as 16KiB", findings);
            return None;
        }
    };
    match quantity::bytes(text).map(usize::try_from) {
        Some(Ok(bytes)) if (1..=CAP_AT_MOST).contains(&bytes) => return Some(bytes),
        Some(_) => {
            let message = format!("cap is {}: expected 1 byte to 4MiB", shortened(text, 40));
            findings.report(&RULE, entry.node.span, message, "choose one in that range");
        }
        None => {
            let message = format!("cap is {:?}: expected a whole number of bytes, KiB or MiB", shortened(text, 40));
            findings.report(&RULE, entry.node.span, message, "write it like 60000, 16KiB or 1MiB");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn caps_have_a_known_unit_and_stay_in_range() {
        for bad in ["0", "5MiB", "4194305", "16KB", "16 KiB", "many", "-1", "1.5"] {
            breaks(super::RULE, &tool(&format!("cap: {bad}")));
        }
        for good in ["1", "60000", "16KiB", "4MiB"] {
            keeps(super::RULE, &tool(&format!("cap: {good}")));
        }
    }
}
