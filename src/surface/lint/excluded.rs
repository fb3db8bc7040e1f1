//! What is left out on purpose exists, is left out, and has a reason.

use globset::GlobBuilder;

use crate::surface::did_you_mean;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;

pub(crate) const RULE: Rule =
    Rule::error("excluded", "an exclusion has a reason, names an action of the registry, and none that is published");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for excluded in &file.excluded {
        if let Some(reason) = excluded.reason.as_ref().filter(|reason| reason.value.trim().is_empty()) {
            findings.report(&RULE, reason.span, "the reason is empty", "say why it is left out");
        }
        let pattern = &excluded.target;
        let glob = match GlobBuilder::new(&pattern.value).literal_separator(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => {
                let message = format!("{:?} is no pattern: {}", pattern.value, error.kind());
                findings.report(&RULE, pattern.span, message, "write NAME/ACTION, with `*` for any part of it");
                continue;
            }
        };
        let Some(project) = &resolved.project else {
            findings.report(
                &RULE,
                pattern.span,
                "nothing is left out of a surface without a registry",
                "write `registry:`",
            );
            continue;
        };
        let Ok(project) = project else { continue };
        let known: Vec<String> = project
            .scan
            .capabilities()
            .flat_map(|manifest| {
                let own = manifest.actions.is_empty().then(|| manifest.name.clone());
                own.into_iter()
                    .chain(manifest.actions.iter().map(|action| format!("{}/{}", manifest.name, action.name)))
            })
            .collect();
        if !known.iter().any(|action| glob.is_match(action)) {
            let message = format!("{:?} names nothing in the registry", pattern.value);
            let meant = did_you_mean(&pattern.value, known.iter().map(String::as_str));
            findings.suggest(&RULE, pattern.span, message, "correct it, or leave it out", meant);
        }
        for (tool, target) in file.targets() {
            let name = &target.name.value;
            let whole = target.action.as_ref().map_or(name.clone(), |action| format!("{name}/{}", action.value));
            if glob.is_match(&whole) {
                let message = format!("{whole} is left out, and published as {:?}", tool.name.value);
                findings.report(&RULE, pattern.span, message, "take away the exclusion or the tool");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, project, target};

    #[test]
    fn exclusions_exist_have_a_reason_and_are_not_published() {
        let folder = project("excluded");
        let with = |excluded: &str| format!("excluded: [{{{excluded}}}]\n{}", target("target: xlsx/read-sheet"));
        for bad in [
            "target: xlsx/dump, reason: large",
            "target: xlsx/delete-sheet, reason: \" \"",
            "target: xlsx/read-sheet, reason: no",
            "target: \"xlsx/*\", reason: no",
            "target: \"*/read-*\", reason: no",
            "target: \"xlsx/[\", reason: no",
            "target: xlsx, reason: it has actions",
        ] {
            breaks_in(&folder, super::RULE, &with(bad));
        }
        for good in [
            "target: xlsx/delete-sheet, reason: it cannot be undone",
            "target: \"*/delete-*\", reason: none can be undone",
            "target: flat, reason: x",
        ] {
            keeps_in(&folder, super::RULE, &with(good));
        }
        breaks_in(&folder, super::super::missing_key::RULE, &with("target: xlsx/delete-sheet"));
    }
}
