//! The surface's name becomes part of every tool's name in many clients.

use crate::protocol::ToolName;
use crate::protocol::json::shortened;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error("surface-name", "a surface's name is 1 to 64 of A-Z a-z 0-9 _ . -");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(name) = file.name.as_ref().filter(|name| ToolName::new(&name.value).is_none()) else { return };
    let message = format!("{:?} is not a surface's name", shortened(&name.value, 64));
    findings.report(&RULE, name.span, message, "use 1 to 64 of A-Z a-z 0-9 _ . -; `title` takes any text");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn names_with_spaces_are_refused() {
        for bad in ["\"\"", "a b", "a/b", "ä", &"a".repeat(65)] {
            breaks(super::RULE, &named(bad, &["t"]));
        }
        keeps(super::RULE, &named("repo-1.x_y", &["t"]));
    }
}
