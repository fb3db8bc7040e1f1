//! Only a program that talks can ask a person before it does what cannot be undone.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error(
    "asks-itself",
    "`asks_itself: true` stands beside `talk: true` alone: only a program that talks can ask",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        if let Some(asks) = tool.asks_itself.as_ref().filter(|flag| flag.value && !tool.backend.talk) {
            let message =
                format!("{:?} says that it asks a person itself, but has nothing to ask with", tool.name.value);
            findings.report(&RULE, asks.span, message, "leave it out, so that the gate asks, or write `talk: true`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn only_a_program_that_talks_asks_itself() {
        breaks(super::RULE, &tool("asks_itself: true"));
        keeps(super::RULE, &tool("asks_itself: false"));
        keeps(super::RULE, &tool("asks_itself: true\ntalk: true"));
    }
}
