//! A capability that lacks something is published and fails: whoever checks should know.

use crate::surface::file::SurfaceFile;
use crate::surface::manifest::{CapabilityKind, ManifestSecret, State, readiness};
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;

pub(crate) const RULE: Rule =
    Rule::warning("unready-target", "a target has the secrets that it and what it drives need");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    let Some(Ok(project)) = &resolved.project else { return };
    let tool = |name: &str| project.scan.find(Some(CapabilityKind::Tool), name).map(|manifest| &**manifest);
    let is_set = |secret: &ManifestSecret| match std::env::var_os(secret.variable()) {
        Some(value) if !value.is_empty() => State::Ready,
        _ => State::NeedsCredentials,
    };
    for (_, target) in file.targets() {
        let Ok(aim) = project.aim(target) else { continue };
        let readiness = readiness(aim.manifest, tool, is_set);
        if readiness.ready {
            continue;
        }
        let driven = readiness.tool_status.iter().filter(|status| !status.ready);
        let absent = driven.clone().filter(|status| !status.present).map(|status| format!("the tool {}", status.name));
        let secrets = readiness.missing_secrets.iter().chain(driven.flat_map(|status| &status.missing_secrets));
        let lacks: Vec<String> = secrets.map(|secret| format!("the secret {secret}")).chain(absent).collect();
        let message = format!("{} lacks {}: calls will fail", aim.manifest.name, lacks.join(", "));
        let remedy = "set the variable of each secret where the server runs: its name in upper case, `_` for the rest";
        findings.report(&RULE, target.span, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, project, target};

    #[test]
    fn what_lacks_a_secret_is_warned_of() {
        let folder = project("unready");
        breaks_in(&folder, super::RULE, &target("target: locked/read"));
        breaks_in(&folder, super::RULE, &target("target: reporter/view"));
        keeps_in(&folder, super::RULE, &target("target: xlsx/read-sheet"));
    }
}
