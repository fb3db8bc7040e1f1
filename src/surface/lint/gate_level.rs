//! How much runs unasked is one of four levels, said in full.

use crate::surface::level::{Latitude, Level};
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::source::{At, Span};

pub(crate) const RULE: Rule = Rule::error(
    "gate-level",
    "`gate` has a `level`, one of L0 to L3; L2 says under `allow` what runs unasked, and no other level has that",
);

/// Settles what is said. A level that cannot be read is none, and the file is refused.
pub(crate) fn settle(
    level: &At<String>,
    allow: &[At<String>],
    key: Option<Span>,
    findings: &mut Findings,
) -> Option<Latitude> {
    let Some(known) = Level::parse(&level.value) else {
        let remedy = match did_you_mean(&level.value, Level::ALL.map(Level::name)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "write one of L0, L1, L2 and L3, or leave `gate` out for L1".to_owned(),
        };
        findings.report(&RULE, level.span, format!("{:?} is no level", level.value), remedy);
        return None;
    };
    if known == Level::L2 && allow.is_empty() {
        let remedy =
            "name under `allow` what runs unasked: a tool, NAME:ACTION, an action or a verb; or write `level: L1`";
        findings.report(
            &RULE,
            key.unwrap_or(level.span),
            "L2 lets nothing more through than L1 as long as nothing is named",
            remedy,
        );
    }
    if let Some(key) = key.filter(|_| known != Level::L2) {
        let message = format!("at {} nothing is looked up under `allow`", known.name());
        findings.report(&RULE, key, message, "leave it out, or write `level: L2`");
    }
    for name in allow.iter().filter(|name| name.value.trim().is_empty() || name.value.trim() != name.value) {
        let remedy = "write a tool, NAME:ACTION, an action or a verb, as it is named";
        findings.report(&RULE, name.span, format!("{:?} is no name", name.value), remedy);
    }
    Some(Latitude { level: known, allow: allow.iter().map(|name| name.value.clone()).collect() })
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_level_is_one_of_four_and_what_is_allowed_belongs_to_one_of_them() {
        let with = |gate: &str| format!("{}gate: {gate}\n", tool(""));
        for bad in [
            "{ level: L4 }",
            "{ level: l1 }",
            "{ level: '' }",
            "{ level: L2 }",
            "{ level: L2, allow: [] }",
            "{ level: L2, allow: [''] }",
            "{ level: L3, allow: [send] }",
            "{ level: L1, allow: [] }",
        ] {
            breaks(super::RULE, &with(bad));
        }
        for good in ["{ level: L0 }", "{ level: L1 }", "{ level: L2, allow: [mail:send, wipe] }", "{ level: L3 }"] {
            keeps(super::RULE, &with(good));
        }
    }
}
