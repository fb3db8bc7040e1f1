//! Clients that are given too many tools leave some out without a word.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("tool-count", "a surface has at most 40 tools");

/// What the strictest of the widespread clients takes.
const TOOLS: usize = 40;

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(first) = file.tools.get(TOOLS) else { return };
    let message = format!("this is tool {} of {}: some clients take 40, others 128", TOOLS + 1, file.tools.len());
    findings.report(&RULE, first.name.span, message, "split the surface by task");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn more_tools_than_a_client_takes_are_warned_of() {
        let names: Vec<String> = (0..41).map(|n| format!("tool_{}", "x".repeat(n % 7) + &n.to_string())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        breaks(super::RULE, &named("s", &names));
        keeps(super::RULE, &named("s", &names[..40]));
    }
}
