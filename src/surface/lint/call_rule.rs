//! A rule over arguments says one thing, of tools that are there.

use super::super::rules::Ruling;
use crate::surface::fields::Fields;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::source::{At, Span};

pub(crate) const RULE: Rule = Rule::error(
    "call-rule",
    "a rule has exactly one of `allow`, `ask` and `deny`, is about tools of this surface, and gives a `message` only where it denies",
);

/// What a rule says, and of what.
pub(crate) fn ruling(fields: &Fields<'_>, owner: Span, findings: &mut Findings) -> Option<(Ruling, At<String>)> {
    let all = [Ruling::Allow, Ruling::Ask, Ruling::Deny];
    let present: Vec<Ruling> = all.into_iter().filter(|ruling| fields.get(ruling.name()).is_some()).collect();
    match present.as_slice() {
        [ruling] => {
            if let Some(message) = fields.get("message").filter(|_| *ruling != Ruling::Deny) {
                let remedy = "leave it out, or write it as a comment";
                findings.report(&RULE, message.key.span, "only whoever is denied is told a message", remedy);
            }
            fields.text(ruling.name(), findings).map(|source| (*ruling, source))
        }
        [] => {
            let remedy = "write the expression under one of them, such as `deny: \"args.path.startsWith('secrets/')\"`";
            findings.report(&RULE, owner, "a rule has none of `allow`, `ask` and `deny`", remedy);
            None
        }
        [_, second, ..] => {
            let span = fields.get(second.name()).map_or(owner, |entry| entry.key.span);
            findings.report(
                &RULE,
                span,
                "a rule says two things",
                "make two rules of it; the first that matches decides",
            );
            None
        }
    }
}

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let known: Vec<&str> = file.tools.iter().map(|tool| tool.name.value.as_str()).collect();
    for rule in file.rules.iter().flatten() {
        for name in rule.tools.iter().flatten().filter(|name| !known.contains(&name.value.as_str())) {
            let remedy = match did_you_mean(&name.value, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "name a tool of this surface, or leave `tools` out for all of them".to_owned(),
            };
            findings.report(&RULE, name.span, format!("there is no tool {:?}", name.value), remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_rule_says_one_thing_of_tools_that_are_there() {
        for bad in [
            "{}",
            "{ tools: [show] }",
            "{ allow: 'true', deny: 'true' }",
            "{ allow: 'true', tools: [shwo] }",
            "{ allow: 'true', message: x }",
        ] {
            breaks(super::RULE, &format!("{}rules: [{bad}]\n", tool("")));
        }
        for good in ["", "{ allow: 'true' }", "{ deny: 'true', tools: [show], message: no }"] {
            keeps(super::RULE, &format!("{}rules: [{good}]\n", tool("")));
        }
    }
}
