//! What a surface reads lies beneath its root and is what it is taken for.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::{Resolved, ResolvedPath};

pub(crate) const RULE: Rule =
    Rule::error("source-path", "what is read is a regular file or a folder beneath the root, links resolved");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (backend, resolved) in file.backends().zip(&resolved.backends) {
        for (entry, found) in backend.paths.iter().zip(&resolved.paths) {
            if let ResolvedPath::Refused(fault) = found {
                findings.report(&RULE, entry.path.span, &fault.message, &fault.remedy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, prompt, resource, template};

    #[test]
    fn what_is_read_is_beneath_the_root() {
        let folder = Folder::new("source");
        folder.make("in/deep");
        folder.make("outside");
        folder.file("outside/key", "s", 0o644);
        folder.file("in/file", "f", 0o644);
        folder.link("../outside/key", "in/out");
        folder.link("../outside", "in/away");
        folder.link("file", "in/near");
        let beneath = |text: String| text.replace("surface: s", "surface: s\nroot: in");
        for bad in ["../outside/key", "out", "away/key", "/etc/passwd", "deep", "deep/../file", "\"\"", "."] {
            breaks_in(&folder, super::RULE, &beneath(resource(&format!("file: {bad}"))));
            breaks_in(&folder, super::RULE, &beneath(prompt(&format!("file: {bad}"))));
            breaks_in(&folder, super::RULE, &beneath(prompt(&format!("messages: [{{image: {bad}}}]"))));
        }
        for bad in ["../outside", "away", "file", "/", ".."] {
            breaks_in(&folder, super::RULE, &beneath(resource(&format!("folder: {bad}"))));
        }
        for bad in ["../{x}", "/{x}", "a/../{x}"] {
            breaks_in(&folder, super::RULE, &beneath(template(&format!("uri: \"s:{{x}}\"\nfile: \"{bad}\""))));
        }
        for good in [
            resource("file: file"),
            resource("file: ./near"),
            resource("file: gone"),
            resource("folder: ."),
            resource("folder: deep"),
            prompt("file: file"),
            template("uri: \"s:{x}\"\nfile: \"none/{x}.md\""),
        ] {
            keeps_in(&folder, super::RULE, &beneath(good));
        }
    }
}
