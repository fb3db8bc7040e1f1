//! Some names mean something else to a client.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::warning("reserved-name", "a surface's name is not one that a client keeps for itself");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(name) = file.name.as_ref().filter(|name| name.value.eq_ignore_ascii_case("workspace")) else { return };
    findings.report(&RULE, name.span, "a widespread client keeps \"workspace\" for itself", "choose another name");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn a_name_that_a_client_keeps_is_warned_of() {
        breaks(super::RULE, &named("workspace", &["t"]));
        keeps(super::RULE, &named("workspaces", &["t"]));
    }
}
