//! The folders that a tool works in exist, and a tool's own lies beneath the root.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;
use crate::surface::source::Span;

pub(crate) const RULE: Rule = Rule::error("folder", "`root` is a folder, and `cwd` one beneath it, links resolved");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    if let Err(fault) = &resolved.root {
        let span = file.root.as_ref().map_or(Span::START, |root| root.span);
        findings.report(&RULE, span, &fault.message, &fault.remedy);
    }
    for (tool, folders) in file.backends().zip(&resolved.backends) {
        if let (Some(cwd), Some(Err(fault))) = (&tool.cwd, &folders.cwd) {
            findings.report(&RULE, cwd.span, &fault.message, &fault.remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, tool};

    #[test]
    fn folders_exist_and_stay_beneath_the_root() {
        let folder = Folder::new("folder");
        folder.make("in/deep");
        folder.make("in-secret");
        folder.file("in/file", "", 0o644);
        folder.link("../in-secret", "in/out");
        folder.link("deep", "in/near");
        let root = |root: &str| format!("root: {root}\n{}", tool(""));
        let cwd = |cwd: &str| format!("root: in\n{}", tool(&format!("cwd: {cwd}")));
        for bad in [
            root("none"),
            root("in/file"),
            cwd("none"),
            cwd("../in"),
            cwd("out"),
            cwd("../in-secret"),
            cwd("/"),
            cwd("file"),
        ] {
            breaks_in(&folder, super::RULE, &bad);
        }
        for good in [root("."), root(".."), root("in"), cwd("."), cwd("deep"), cwd("near"), tool("cwd: in")] {
            keeps_in(&folder, super::RULE, &good);
        }
    }
}
