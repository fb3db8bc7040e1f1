//! Two values in one element could be cut elsewhere than where they were joined.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::template;

pub(crate) const RULE: Rule = Rule::error("two-placeholders", "an element of `run` has at most one placeholder");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for element in file.backends().flat_map(|backend| backend.templates()) {
        if let Some(second) = template::arguments(&element.value).nth(1) {
            let span = findings.source().narrow(element.span, &format!("{{{second}}}"));
            let remedy = "give each value an element of its own, or make them one argument";
            findings.report(&RULE, span, "a second placeholder in one element", remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn one_element_takes_one_value() {
        let args = "args: {a: {type: string}, b: {type: string}}\n";
        breaks(super::RULE, &tool(&format!("{args}run: [ls, \"x{{a}}:{{b}}\"]")));
        breaks(super::RULE, &tool(&format!("{args}run: [ls, \"x{{a}}{{a}}\"]")));
        keeps(super::RULE, &tool(&format!("{args}run: [ls, \"x{{a}}\", \"x{{b}}\"]")));
    }
}
