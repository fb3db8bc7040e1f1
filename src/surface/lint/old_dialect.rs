//! A widespread client refuses a tool whose outputSchema names draft-07.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("old-dialect", "an outputSchema is of 2020-12, which needs no `$schema`");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for schema in file.tools.iter().filter_map(|tool| tool.output_schema) {
        let Some(dialect) = schema.node.get("$schema") else { continue };
        if dialect.node.as_text().is_some_and(|text| text.contains("draft-07")) {
            let message = "a widespread client refuses an outputSchema that names draft-07";
            findings.report(&RULE, dialect.node.span, message, "leave $schema out: 2020-12 is understood");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn draft_07_results_are_warned_of() {
        let with = |uri: &str| tool(&format!("output: json\noutputSchema: {{$schema: \"{uri}\", type: object}}"));
        breaks(super::RULE, &with("http://json-schema.org/draft-07/schema#"));
        keeps(super::RULE, &with("https://json-schema.org/draft/2020-12/schema"));
    }
}
