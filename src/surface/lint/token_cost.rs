//! Every tool's definition is read by the model in every conversation.

use crate::protocol::Catalog;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning(
    "token-cost",
    "the tools of a surface take at most about 10,000 tokens, counted as bytes of the list by 4",
);

/// What a model can spare for a list that it may not need.
const TOKENS: usize = 10_000;
const BYTES_A_TOKEN: usize = 4;

pub(crate) fn check(file: &SurfaceFile<'_>, catalog: &Catalog, findings: &mut Findings) {
    let tokens = catalog.tool_list_bytes() / BYTES_A_TOKEN;
    let Some(first) = file.tools.first().filter(|_| tokens > TOKENS) else { return };
    let message = format!("the {} tools take about {tokens} tokens of every conversation", file.tools.len());
    findings.report(&RULE, first.name.span, message, "shorten descriptions and schemas, or split the surface by task");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn a_list_that_fills_a_conversation_is_warned_of() {
        let names: Vec<String> = (b'a'..=b'z').map(|c| format!("tool_{}", char::from(c))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let with = |bytes: usize| named("s", &names).replace("Shows.", &"x".repeat(bytes));
        keeps(super::RULE, &with(1300));
        breaks(super::RULE, &with(1600));
    }
}
