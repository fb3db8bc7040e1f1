//! A surface without tools serves nobody.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error("no-tools", "a surface has at least one tool");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(span) = file.tools_key.filter(|_| file.tools.is_empty()) else { return };
    findings.report(&RULE, span, "there is no tool here that can be read", "declare one below `tools:`");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn an_empty_surface_is_refused() {
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools: {}\n");
        breaks(super::RULE, "surface: s\nversion: 1.0.0\ntools:\n");
        keeps(super::RULE, &tool(""));
    }
}
