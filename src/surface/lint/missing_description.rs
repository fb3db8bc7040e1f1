//! A model chooses a tool by its description.

use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("missing-description", "a tool says what it does");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    // What is built in brings its own.
    let told = file.tools.iter().filter(|tool| !matches!(tool.kind, Some(KindEntry::Builtin(_))));
    for tool in told {
        let empty = tool.described.description.as_ref().is_none_or(|text| text.value.trim().is_empty());
        if empty && tool.node.get("description").is_none_or(|entry| entry.node.as_text().is_some()) {
            let message = format!("{:?} has no description: models choose tools by it", tool.name.value);
            findings.report(&RULE, tool.name.span, message, "say in a sentence what it does and when to use it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_tool_without_a_description_is_warned_of() {
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools: {t: {run: [ls]}}\n");
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools: {t: {run: [ls], description: \" \"}}\n");
        keeps(super::RULE, &tool(""));
    }
}
