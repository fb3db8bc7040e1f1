//! A schema for results needs results that are data.

use crate::surface::declaration::Output;
use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::error("output-schema", "`outputSchema` stands beside `output: json` or `output: content`");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        // What an upstream returns is data where it says so.
        let Some(schema) = tool.output_schema.filter(|_| !matches!(tool.kind, Some(KindEntry::Upstream(_)))) else {
            continue;
        };
        let said = tool.backend.output.as_ref().map(|output| output.value);
        // A value of `output` that could not be read was reported.
        let unread = said.is_none() && tool.node.get("output").is_some();
        if !matches!(said, Some(Output::Json | Output::Content)) && !unread {
            let message = format!("{:?} promises data by its outputSchema, but its output is text", tool.name.value);
            let remedy = "write `output: json` if the program prints one JSON value, or leave the schema out";
            findings.report(&RULE, schema.key.span, message, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_schema_for_text_is_refused() {
        breaks(super::RULE, &tool("outputSchema: {type: object}"));
        breaks(super::RULE, &tool("outputSchema: {type: object}\noutput: text"));
        keeps(super::RULE, &tool("outputSchema: {type: object}\noutput: json"));
        keeps(super::RULE, &tool("outputSchema: {type: object}\noutput: content"));
        keeps(super::RULE, &tool("output: json"));
    }
}
