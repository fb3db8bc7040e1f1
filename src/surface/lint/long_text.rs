//! Clients cut descriptions and instructions; what stands behind the cut is not read.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;

pub(crate) const RULE: Rule = Rule::warning("long-text", "descriptions and instructions have at most 2,048 bytes each");

/// Where a widespread client cuts.
const BYTES: usize = 2048;

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let instructions = file.instructions.iter().map(|text| ("the instructions", text, None));
    let tools = file.tools.iter().map(|tool| (tool.node, &tool.described));
    let resources = file.resources.iter().map(|resource| (resource.node, &resource.described));
    let templates = file.templates.iter().map(|template| (template.node, &template.described));
    let prompts = file.prompts.iter().map(|prompt| (prompt.node, &prompt.described));
    let descriptions = tools.chain(resources).chain(templates).chain(prompts).flat_map(|(node, described)| {
        let key = node.get("description").map(|entry| entry.key.span);
        described.description.iter().map(move |text| ("the description", text, key))
    });
    let long: Vec<(&str, usize, Span)> = instructions
        .chain(descriptions)
        .filter(|(_, text, _)| text.value.len() > BYTES)
        .map(|(what, text, key)| (what, text.value.len(), key.unwrap_or(text.span)))
        .collect();
    for (what, bytes, span) in long {
        let message = format!("{what} has {bytes} bytes: a widespread client cuts at {BYTES}");
        findings.report(
            &RULE,
            span,
            message,
            "put what matters first and move the rest to the arguments' descriptions",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn what_clients_would_cut_is_warned_of() {
        let text = |n: usize| tool("").replace("Shows.", &"x".repeat(n));
        keeps(super::RULE, &text(2048));
        breaks(super::RULE, &text(2049));
        breaks(super::RULE, &format!("instructions: {}\n{}", "x".repeat(2049), tool("")));
    }
}
