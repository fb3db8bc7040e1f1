//! A skill is a folder that can be served.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;

pub(crate) const RULE: Rule = Rule::error(
    "skill-folder",
    "a skill is a folder beneath `root` of plain files, with a SKILL.md that begins with front matter",
);

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (skill, found) in file.skills.iter().zip(&resolved.skills) {
        if let (Some(folder), Some(Err(fault))) = (&skill.folder, found) {
            findings.report(&RULE, folder.span, &fault.message, &fault.remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in};

    #[test]
    fn a_skill_is_a_folder_with_a_manifest() {
        let folder = Folder::new("skill");
        folder.make("good/greet");
        folder.make("bare/greet");
        folder.file("good/greet/SKILL.md", "---\nname: greet\ndescription: d\n---\nx\n", 0o644);
        folder.file("bare/greet/x.md", "x", 0o644);
        let surface = |at: &str| format!("surface: s\nversion: 1.0.0\nskills:\n  greet: {{ folder: {at} }}\n");
        for bad in ["none", "../x", "bare/greet", "good/greet/SKILL.md"] {
            breaks_in(&folder, super::RULE, &surface(bad));
        }
        keeps_in(&folder, super::RULE, &surface("good/greet"));
    }
}
