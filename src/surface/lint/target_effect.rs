//! A curated surface offers what can be undone, and says that something only reads where that is so.

use crate::surface::effect::{Effect, Policy, classify};
use crate::surface::file::SurfaceFile;
use crate::surface::manifest::{Effects, ManifestAction};
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;
use crate::surface::target::Aim;

pub(crate) const RULE: Rule = Rule::error("target-effect", "what a target does can be undone");
pub(crate) const READS: Rule = Rule::error(
    "target-reads",
    "`read_only: true` stands beside a target that neither declares nor is named as doing more",
);

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    let Some(Ok(project)) = &resolved.project else { return };
    for (tool, target) in file.targets() {
        let Ok(aim) = project.aim(target) else { continue };
        let flag = |flag: &Option<crate::surface::source::At<bool>>| flag.as_ref().map(|flag| flag.value);
        let said = Policy::of_flags(flag(&tool.read_only), flag(&tool.reversible));
        let policy = Policy { said: said.said, ..manifest_policy(aim) };
        let judged = classify(names(aim), policy);
        if judged.effect == Effect::Irreversible {
            let message = format!("{:?} leads to what cannot be undone: {}", tool.name.value, judged.reason());
            let remedy =
                "leave it out and name it under `excluded`; or say `reversible: true` where its name alone misleads";
            findings.report(&RULE, target.span, message, remedy);
            continue;
        }
        let Some(reads) = tool.read_only.as_ref().filter(|flag| flag.value) else { continue };
        // What the surface says is left out: it is what is to be checked.
        let judged = classify(names(aim), manifest_policy(aim));
        let declared = aim.action.and_then(|action| action.effects) == Some(Effects::Write);
        if declared || judged.verb.is_some() {
            let why = judged
                .verb
                .filter(|_| !declared)
                .map_or_else(|| "its manifest declares it write".to_owned(), |verb| format!("its name says {verb:?}"));
            let message = format!("{:?} says that it only reads, but its action does more: {why}", tool.name.value);
            findings.report(&READS, reads.span, message, "say `reversible: true` in its place, if that is so");
        }
    }
}

/// What a manifest declares of an action.
pub(crate) fn manifest_policy(aim: Aim<'_>) -> Policy {
    aim.action.map(ManifestAction::policy).unwrap_or_default()
}

fn names<'r>(aim: Aim<'r>) -> impl Iterator<Item = &'r str> {
    std::iter::once(aim.manifest.name.as_str()).chain(aim.action.map(|action| action.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, project, target};

    #[test]
    fn what_cannot_be_undone_is_no_target() {
        let folder = project("target-effect");
        for bad in [
            "target: xlsx/delete-sheet",
            "target: xlsx/archive",
            "target: xlsx/archive\nread_only: true",
            "target: xlsx/archive\nreversible: true",
            "target: xlsx/write-sheet\nreversible: false",
        ] {
            breaks_in(&folder, super::RULE, &target(bad));
        }
        for good in [
            "target: xlsx/write-sheet",
            "target: xlsx/read-sheet\nread_only: true",
            "target: xlsx/delete-sheet\nreversible: true",
        ] {
            keeps_in(&folder, super::RULE, &target(good));
        }
    }

    #[test]
    fn what_only_reads_is_neither_declared_nor_named_otherwise() {
        let folder = project("target-reads");
        for bad in ["xlsx/write-sheet", "xlsx/delete-sheet"] {
            breaks_in(&folder, super::READS, &target(&format!("target: {bad}\nread_only: true")));
        }
        keeps_in(&folder, super::READS, &target("target: xlsx/read-sheet\nread_only: true"));
        keeps_in(&folder, super::READS, &target("target: xlsx/write-sheet\nread_only: false"));
    }
}
