//! A target leads to an action of a capability that the registry has.

use crate::surface::did_you_mean;
use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;
use crate::surface::source::Span;
use crate::surface::target::Miss;

pub(crate) const REGISTRY: Rule = Rule::error(
    "registry",
    "`registry` is the folder of a project, and stands where a tool has a target or is built in",
);
pub(crate) const RULE: Rule =
    Rule::error("target", "a target names a capability of the registry that can be read, and one of its actions");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    if let (Some(said), Some(Err(fault))) = (&file.registry, &resolved.project) {
        findings.report(&REGISTRY, said.span, &fault.message, &fault.remedy);
    }
    for tool in file.tools.iter().filter(|tool| matches!(tool.kind, Some(KindEntry::Builtin(_)))) {
        if resolved.project.is_none() {
            let message = format!("{:?} is built upon a registry, and the surface names none", tool.name.value);
            findings.report(&REGISTRY, tool.name.span, message, "write `registry:` and the folder that has `tools/`");
        }
    }
    for (tool, target) in file.targets() {
        let Some(project) = &resolved.project else {
            let remedy = "write `registry:` and the folder that has `tools/`, relative to this file";
            findings.report(&REGISTRY, target.span, "a target stands in a surface without a registry", remedy);
            continue;
        };
        let Ok(project) = project else { continue };
        let name = &target.name.value;
        match project.aim(target) {
            Ok(_) => {}
            Err(Miss::NoCapability) => {
                let kind = target.kind.map_or("tool or agent", |kind| kind.name());
                let known: Vec<&str> = project.scan.capabilities().map(|manifest| manifest.name.as_str()).collect();
                let meant = did_you_mean(name, known.iter().copied());
                let whole = meant.map(|meant| match &target.action {
                    Some(action) if target.kind.is_none() => format!("{meant}/{}", action.value),
                    _ => meant,
                });
                let message =
                    format!("{:?} wants {name:?}, but the registry has no {kind} of that name", tool.name.value);
                findings.suggest(&RULE, target.name.span, message, "correct its name, or add its manifest", whole);
            }
            Err(Miss::Broken(problems)) => {
                let why = problems.list().first();
                let (place, why) = why.map_or((String::new(), "it cannot be read"), |problem| {
                    let place = format!(", {}:{}:{}", problem.file.display(), problem.line, problem.column);
                    (place, problem.message.as_str())
                });
                let message = format!("the manifest of {name:?} cannot be used{place}: {why}");
                findings.report(&RULE, target.name.span, message, "mend the manifest, then check again");
            }
            Err(Miss::NoAction(manifest)) => {
                no_action(target.action.as_ref().map(|a| (a.value.as_str(), a.span)), manifest, target.span, findings)
            }
        }
    }
}

fn no_action(
    named: Option<(&str, Span)>,
    manifest: &crate::surface::manifest::Manifest,
    whole: Span,
    findings: &mut Findings,
) {
    let name = &manifest.name;
    let known: Vec<&str> = manifest.actions.iter().map(|action| action.name.as_str()).collect();
    let first: Vec<&str> = known.iter().copied().take(8).collect();
    let (message, span) = match named {
        Some((_, span)) if known.is_empty() => (format!("{name} has no actions: it is called as it is"), span),
        Some((action, span)) => (format!("{name} has no action {action:?}"), span),
        None => (format!("{name} has actions, and the target names none"), whole),
    };
    let remedy = match known.as_slice() {
        [] => format!("write `target: {name}`"),
        [..] => format!("name one of its actions, such as {}", first.join(", ")),
    };
    let meant =
        named.and_then(|(action, _)| did_you_mean(action, known.iter().copied()).or_else(|| renamed(action, &known)));
    // It may stand in the place of what is marked: in a mapping the action alone, else the whole target.
    let meant = meant.map(|meant| if span == whole { format!("{name}/{meant}") } else { meant });
    findings.suggest(&RULE, span, message, remedy, meant);
}

/// The action with most words in common, if there is one: a rename keeps most of them, in another order or number.
fn renamed(action: &str, known: &[&str]) -> Option<String> {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(['-', '_', '.', ':']).filter(|word| !word.is_empty());
        words.map(|word| word.to_lowercase().trim_end_matches('s').to_owned()).collect()
    };
    let wanted = words(action);
    let common = |name: &str| words(name).iter().filter(|word| wanted.contains(word)).count();
    let best = known.iter().map(|name| (common(name), *name)).max_by_key(|(common, _)| *common)?;
    (best.0 * 2 > wanted.len()).then(|| best.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, problems_in, project, target};

    #[test]
    fn a_target_leads_to_an_action_of_the_registry() {
        let folder = project("target");
        folder.make("tools/broken");
        folder.file("tools/broken/tool.yaml", "name: broken\n", 0o644);
        for bad in [
            "xlx/read-sheet",
            "xlsx/read-sheets-all",
            "xlsx",
            "xlsx/",
            "flat/read",
            "broken/x",
            "{agent: xlsx, action: read-sheet}",
            "{tool: flat, action: x}",
            "reporter/none",
        ] {
            breaks_in(&folder, super::RULE, &target(&format!("target: {bad}")));
        }
        for good in [
            "xlsx/read-sheet",
            "flat",
            "{tool: xlsx, action: read-sheet}",
            "{agent: reporter, action: view}",
            "reporter/view",
        ] {
            keeps_in(&folder, super::RULE, &target(&format!("target: {good}")));
        }
        let said = |target_: &str| {
            let problems = problems_in(&folder, &target(&format!("target: {target_}")));
            problems.list().iter().find(|p| p.rule == "target").cloned().unwrap()
        };
        assert_eq!(said("xlxs/read-sheet").suggestion.as_deref(), Some("xlsx/read-sheet"));
        assert_eq!(said("xlsx/sheet-read").suggestion.as_deref(), Some("xlsx/read-sheet"), "renamed");
        assert_eq!(said("{tool: xlsx, action: sheets-read}").suggestion.as_deref(), Some("read-sheet"));
        let broken = said("broken/x").message;
        assert!(broken.contains("tools/broken/tool.yaml:1:1"), "{broken}");
    }

    #[test]
    fn a_registry_is_a_folder() {
        let folder = project("registry-folder");
        let with = |registry: &str| target("target: xlsx/read-sheet").replace("registry: .\n", registry);
        for bad in ["", "registry: none\n", "registry: tools/xlsx/tool.yaml\n"] {
            breaks_in(&folder, super::REGISTRY, &with(bad));
        }
        keeps_in(&folder, super::REGISTRY, &with("registry: ./\n"));
        keeps_in(&folder, super::REGISTRY, "surface: s\nversion: 1.0.0\ntools: {t: {description: x, run: [ls]}}\n");
    }
}
