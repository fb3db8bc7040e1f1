//! What only reads cannot do harm that is not undone.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::error("contradiction", "`read_only: true` does not stand beside `reversible: false`");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        let reads = tool.read_only.as_ref().is_some_and(|flag| flag.value);
        if let Some(reversible) = tool.reversible.as_ref().filter(|flag| reads && !flag.value) {
            let message = format!("{:?} says that it only reads, and that it cannot be undone", tool.name.value);
            findings.report(&RULE, reversible.span, message, "leave out what is not true of it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_reader_that_cannot_be_undone_is_refused() {
        breaks(super::RULE, &tool("read_only: true\nreversible: false"));
        keeps(super::RULE, &tool("read_only: true\nreversible: true"));
        keeps(super::RULE, &tool("read_only: false\nreversible: false"));
    }
}
