//! A tool that only reads is not called by a verb of doing harm: people believe names.

use crate::surface::effect::{Effect, Policy, classify};
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::warning("read-only-verb", "a tool that says `read_only: true` has no verb of doing harm in its name");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        let Some(reads) = tool.read_only.as_ref().filter(|flag| flag.value) else { continue };
        let judged = classify([tool.name.value.as_str()], Policy::default());
        if let (Effect::Irreversible, Some(verb)) = (judged.effect, judged.verb) {
            let message = format!("{:?} says that it only reads, and its name says {verb:?}", tool.name.value);
            findings.report(&RULE, reads.span, message, "leave out what is not true of it, or give it another name");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_name_does_not_belie_what_is_declared() {
        let named = |name: &str| tool("read_only: true").replace("show", name);
        breaks(super::RULE, &named("delete_all"));
        keeps(super::RULE, &named("get_post"));
        keeps(super::RULE, &tool("").replace("show", "delete_all"));
    }
}
