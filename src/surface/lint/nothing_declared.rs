//! A surface that declares nothing serves nobody.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;

pub(crate) const RULE: Rule =
    Rule::error("nothing-declared", "a surface has at least one tool, resource, template or prompt");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    if file.backends().next().is_none() {
        let span = file.list_key.or(file.name.as_ref().map(|name| name.span)).unwrap_or(Span::START);
        let remedy = "declare one below `tools:`, `resources:`, `templates:` or `prompts:`";
        findings.report(&RULE, span, "there is nothing here that clients could use", remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, prompt, resource, template, tool};

    #[test]
    fn an_empty_surface_is_refused() {
        breaks(super::RULE, "surface: s\nversion: 1.0.0\n");
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools: {}\n");
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools:\nresources:\n");
        keeps(super::RULE, &tool(""));
        keeps(super::RULE, &resource("text: x"));
        keeps(super::RULE, &template("uri: \"s:{x}\"\ntext: \"{x}\""));
        keeps(super::RULE, &prompt("text: x"));
    }
}
