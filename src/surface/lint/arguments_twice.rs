//! Arguments are declared in one place.

use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::Entry;

pub(crate) const RULE: Rule = Rule::error("arguments-twice", "a tool has `args` or `inputSchema`, not both");

pub(crate) fn report(args: &Entry, findings: &mut Findings) {
    findings.report(&RULE, args.key.span, "`args` stands beside `inputSchema`", "keep one of the two");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn one_declaration_of_arguments_is_enough() {
        breaks(super::RULE, &tool("args: {}\ninputSchema: {type: object}"));
        keeps(super::RULE, &tool("inputSchema: {type: object}"));
        keeps(super::RULE, &tool("args: {}"));
    }
}
