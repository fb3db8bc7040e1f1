//! What `args` says of a template is of a variable of its address.

use crate::surface::arguments::ArgumentEntry;
use crate::surface::problem::{Findings, Rule, did_you_mean};

pub(crate) const RULE: Rule = Rule::error("variable", "an entry of a template's `args` is a variable of its `uri`");

/// Checks what was declared against the variables that there are.
pub(crate) fn check(declared: &[ArgumentEntry], variables: &[String], findings: &mut Findings) {
    for name in declared.iter().map(|argument| &argument.name).filter(|name| !variables.contains(&name.value)) {
        let message = format!("{:?} is no variable of this template's `uri`", name.value);
        let meant = did_you_mean(&name.value, variables.iter().map(String::as_str));
        let remedy = format!("write {{{}}} into `uri`, or leave it out", name.value);
        findings.suggest(&RULE, name.span, message, remedy, meant);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, template};

    #[test]
    fn what_is_said_is_of_a_variable() {
        let with = |args: &str| template(&format!("uri: \"s:{{day}}\"\nargs: {args}\ntext: \"{{day}}\""));
        breaks(super::RULE, &with("{dya: {}}"));
        let problems = problems(&with("{dya: {}}"));
        assert_eq!(problems.list()[0].suggestion.as_deref(), Some("day"));
        keeps(super::RULE, &with("{day: {type: string}}"));
        keeps(super::RULE, &with("{day: }"));
    }
}
