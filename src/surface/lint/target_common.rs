//! The arguments that tools share stand in one place, and a tool takes each once.

use crate::surface::arguments::ArgumentEntry;
use crate::surface::did_you_mean;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;

pub(crate) const RULE: Rule =
    Rule::error("common", "`common` names entries of `common_args`, each once, beside `args` that have no such name");

/// The entries that a tool takes, in its order.
pub(crate) fn taken(
    names: &[At<String>],
    own: &[ArgumentEntry],
    common: &[ArgumentEntry],
    findings: &mut Findings,
) -> Vec<ArgumentEntry> {
    let mut taken: Vec<ArgumentEntry> = Vec::new();
    for name in names {
        let Some(entry) = common.iter().find(|entry| entry.name.value == name.value) else {
            let message = format!("there is no {:?} in `common_args`", name.value);
            let meant = did_you_mean(&name.value, common.iter().map(|entry| entry.name.value.as_str()));
            findings.suggest(&RULE, name.span, message, "declare it below `common_args:`, or leave it out", meant);
            continue;
        };
        if own.iter().chain(&taken).any(|argument| argument.name.value == name.value) {
            let message = format!("the tool has an argument {:?} already", name.value);
            findings.report(&RULE, name.span, message, "leave out one of the two");
            continue;
        }
        taken.push(ArgumentEntry { name: name.clone(), ..entry.clone() });
    }
    taken
}
