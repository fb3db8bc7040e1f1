//! What has no sensible default must be said.

use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;

pub(crate) const RULE: Rule = Rule::error("missing-key", "what has no default is written");

pub(crate) fn report(span: Span, owner: &str, key: &str, remedy: &str, findings: &mut Findings) {
    findings.report(&RULE, span, format!("{owner} lacks `{key}`"), remedy);
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn what_has_no_default_is_asked_for() {
        breaks(super::RULE, "version: 1.0.0\ntools: {t: {run: [ls]}}\n");
        breaks(super::RULE, "surface: s\ntools: {t: {run: [ls]}}\n");
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntemplates: {t: {text: x}}\n");
        breaks(super::RULE, &tool("run: []"));
        breaks(super::RULE, &tool("args: {a: {description: x}}\nrun: [ls, \"x{a}\"]"));
        keeps(super::RULE, &tool(""));
    }
}
