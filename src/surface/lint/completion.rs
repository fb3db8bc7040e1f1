//! What is suggested for an argument is a value that it takes.

use serde_json::Value;

use crate::protocol::schema::Schema;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Finding, Findings, Rule, Severity};

pub(crate) const RULE: Rule = Rule::error("completion", "what `complete` suggests fits its argument");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let templates = file.templates.iter().flat_map(|template| &template.backend.input.arguments);
    let prompts = file.prompts.iter().flat_map(|prompt| &prompt.backend.input.arguments);
    for argument in templates.chain(prompts) {
        let schema = match Schema::compile(&argument.schema) {
            Ok(schema) => schema,
            // Of a tool the catalog says this, which knows no schema of the others.
            Err(error) => {
                findings.add(Finding {
                    rule: error.rule,
                    severity: Severity::Error,
                    span: argument.name.span,
                    message: error.problem,
                    remedy: error.remedy,
                    suggestion: None,
                });
                continue;
            }
        };
        let is_text = argument.said("type").is_none_or(|kind| kind == "string");
        for suggested in &argument.complete {
            let value = match is_text {
                true => Value::String(suggested.value.clone()),
                false => serde_json::from_str(&suggested.value).unwrap_or(Value::Null),
            };
            if let Some(violation) = schema.violations(&value).first() {
                let message = format!("what is suggested does not fit: {}", violation.problem);
                findings.report(
                    &RULE,
                    suggested.span,
                    message,
                    "write a value that the argument's own rules let through",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, prompt, template};

    #[test]
    fn what_is_suggested_is_let_through() {
        let with = |arg: &str| prompt(&format!("args: {{x: {{{arg}}}}}\ntext: \"{{x}}\""));
        breaks(super::RULE, &with("pattern: \"^a\", complete: [b]"));
        breaks(super::RULE, &with("enum: [a, b], complete: c"));
        keeps(super::RULE, &with("pattern: \"^a\", complete: [ab]"));
        let number = |values: &str| {
            template(&format!(
                "uri: \"s:{{x}}\"\nargs: {{x: {{type: integer, maximum: 9, complete: {values}}}}}\ntext: \"{{x}}\""
            ))
        };
        breaks(super::RULE, &number("[\"10\"]"));
        breaks(super::RULE, &number("[many]"));
        keeps(super::RULE, &number("[\"1\", \"9\"]"));
        assert!(problems(&with("pattern: \"(a\"")).list().iter().any(|p| p.rule == "schema-valid"));
    }
}
