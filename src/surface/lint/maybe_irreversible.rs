//! A name that may mean what cannot be undone, and that the gate does not take for it, is declared.

use crate::surface::effect::near_verb;
use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;

pub(crate) const RULE: Rule = Rule::warning(
    "maybe-irreversible",
    "what is named by a form of a verb of doing harm, or a short word for one, says what it does",
);

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    let project = resolved.project.as_ref().and_then(|project| project.as_ref().ok());
    for tool in file.tools.iter().filter(|tool| tool.read_only.is_none() && tool.reversible.is_none()) {
        let mut names = vec![tool.name.value.as_str()];
        match &tool.kind {
            Some(KindEntry::Upstream(Some(of))) => names.push(&of.tool),
            Some(KindEntry::Target(target)) => {
                let Some(aim) = project.and_then(|project| project.aim(target).ok()) else { continue };
                if aim.action.is_some_and(|action| action.effects.is_some()) {
                    continue;
                }
                names.push(&aim.manifest.name);
                names.extend(aim.action.map(|action| action.name.as_str()));
            }
            // What runs here is known by its arguments, and looked at below.
            Some(KindEntry::Builtin(_)) => continue,
            Some(KindEntry::Command | KindEntry::Http(_) | KindEntry::Upstream(None)) | None => {}
        }
        if let Some((word, verb)) = names.into_iter().find_map(near_verb) {
            let message = format!(
                "{:?} says {word:?}, which the gate does not take for {verb:?}: it runs unasked",
                tool.name.value
            );
            let remedy =
                "say `reversible: false` if it cannot be undone, otherwise `reversible: true` or `read_only: true`";
            findings.report(&RULE, tool.name.span, message, remedy);
        }
    }
    let runner = file.tools.iter().find(|tool| matches!(&tool.kind, Some(KindEntry::Builtin(of)) if of.runs()));
    let (Some(runner), Some(project)) = (runner, project) else { return };
    for manifest in project.scan.capabilities() {
        for action in manifest.actions.iter().filter(|action| action.effects.is_none()) {
            let Some((word, verb)) = near_verb(&action.name) else { continue };
            let message = format!(
                "{}/{} says {word:?}, which the gate does not take for {verb:?}: it runs unasked",
                manifest.name, action.name
            );
            let remedy = "declare `effects: irreversible` of the action in its manifest, or what else it does";
            findings.report(&RULE, runner.name.span, message, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, breaks_in, keeps, keeps_in, project, target, tool};

    #[test]
    fn a_form_of_a_verb_is_declared_or_told_of() {
        let named = |name: &str, more: &str| tool(more).replace("show", name);
        for bad in ["deletes", "user_deleted", "rm", "unlink", "get-transfer-do"] {
            breaks(super::RULE, &named(bad, ""));
            for said in ["reversible: false", "reversible: true", "read_only: true"] {
                keeps(super::RULE, &named(bad, said));
            }
        }
        for good in ["show", "delete", "blog-posts", "list-deleted"] {
            keeps(super::RULE, &named(good, ""));
        }
    }

    #[test]
    fn so_is_an_action_that_is_published_or_can_be_run() {
        let folder = project("maybe-irreversible");
        let manifest = "name: files\ndescription: Files.\nactions:\n  - { name: unlink }\n  \
            - { name: dropped, effects: read }\n";
        folder.make("tools/files");
        folder.file("tools/files/tool.yaml", manifest, 0o644);
        folder.file("tools/files/main.py", "", 0o644);
        breaks_in(&folder, super::RULE, &target("target: files/unlink"));
        keeps_in(&folder, super::RULE, &target("target: files/unlink\nreversible: true"));
        keeps_in(&folder, super::RULE, &target("target: files/dropped"));
        let head = "surface: s\nversion: 1.0.0\nregistry: .\ntools:\n";
        breaks_in(&folder, super::RULE, &format!("{head}  run_tool: {{ builtin: run_tool }}\n"));
        keeps_in(&folder, super::RULE, &format!("{head}  capabilities: {{ builtin: capabilities }}\n"));
    }
}
