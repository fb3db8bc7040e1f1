//! A brace opens or closes a placeholder, or is doubled; a slip is not passed on to a program.

use crate::protocol::json::shortened;
use crate::surface::declaration::Template;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;
use crate::surface::template;

pub(crate) const RULE: Rule = Rule::error("braces", "a brace is part of a placeholder or doubled");

/// Reads a template; a stray brace is reported.
pub(crate) fn read(text: &str, span: Span, findings: &mut Findings) -> Option<Template> {
    match template::parse(text) {
        Ok(template) => Some(template),
        Err(stray) => {
            let span = findings.source().narrow(span, &stray.at);
            let remedy = "write {{ and }} for braces that the program shall see, or {name} for an argument";
            findings.report(&RULE, span, shortened(&stray.problem, 120), remedy);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn stray_braces_are_refused() {
        for bad in ["'{print $1}'", "'{}'", "'{'", "'a}'", "'{ a }'"] {
            breaks(super::RULE, &tool(&format!("run: [ls, {bad}]")));
        }
        keeps(super::RULE, &tool("run: [ls, '{{print $1}}', '{{}}']"));
    }
}
