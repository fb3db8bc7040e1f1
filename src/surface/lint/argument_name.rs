//! Names of arguments become keys that model APIs restrict.

use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;
use crate::surface::template::is_argument_name;

pub(crate) const RULE: Rule = Rule::error("argument-name", "an argument's name is 1 to 64 of A-Z a-z 0-9 _ . -");

pub(crate) fn check(name: &At<String>, findings: &mut Findings) {
    if !is_argument_name(&name.value) {
        let message = format!("{:?} is not an argument's name", shortened(&name.value, 80));
        findings.report(&RULE, name.span, message, "use 1 to 64 of A-Z a-z 0-9 _ . -: model APIs refuse others");
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn names_that_model_apis_refuse_are_refused() {
        for bad in ["\"\"", "a b", "a/b", "é", &"a".repeat(65)] {
            breaks(super::RULE, &tool(&format!("args: {{{bad}: {{type: string}}}}")));
            breaks(super::RULE, &tool(&format!("inputSchema: {{type: object, properties: {{{bad}: {{}}}}}}")));
        }
        keeps(super::RULE, &tool("args: {a-b.c_D9: {type: string}}"));
    }
}
