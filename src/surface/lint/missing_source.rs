//! A file that is not there yet may come; one that is misspelt never does.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::{Resolved, ResolvedPath};

pub(crate) const RULE: Rule = Rule::warning("missing-source", "what is read is there when the surface is loaded");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (backend, resolved) in file.backends().zip(&resolved.backends) {
        for (entry, found) in backend.paths.iter().zip(&resolved.paths) {
            if let ResolvedPath::Absent(fault) = found {
                let suggestion = fault.suggestion.clone();
                findings.suggest(&RULE, entry.path.span, &fault.message, &fault.remedy, suggestion);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, problems_in, prompt, resource};

    #[test]
    fn what_is_not_there_is_warned_of() {
        let folder = Folder::new("missing");
        folder.make("docs");
        folder.file("docs/README.md", "x", 0o644);
        for bad in [resource("file: docs/READNE.md"), resource("folder: dosc"), prompt("file: gone.md")] {
            breaks_in(&folder, super::RULE, &bad);
        }
        let problems = problems_in(&folder, &resource("file: docs/READNE.md"));
        assert_eq!(problems.list()[0].suggestion.as_deref(), Some("docs/README.md"));
        keeps_in(&folder, super::RULE, &resource("file: docs/README.md"));
        keeps_in(&folder, super::RULE, &resource("folder: docs"));
    }
}
