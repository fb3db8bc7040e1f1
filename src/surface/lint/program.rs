//! The program exists, can be run, and is not one that anybody could have put there.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;

pub(crate) const RULE: Rule =
    Rule::error("program", "the program is found, can be run, and is named absolutely, by search, or beneath the root");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (tool, resolved) in file.backends().zip(&resolved.backends) {
        if let (Some(Err(fault)), Some(program)) = (&resolved.program, tool.templates().next()) {
            findings.suggest(&RULE, program.span, &fault.message, &fault.remedy, fault.suggestion.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, tool};

    #[test]
    fn a_program_is_found_and_can_be_run() {
        let folder = Folder::new("program");
        folder.make("bin");
        folder.file("bin/good", "#!/bin/sh\n", 0o755);
        folder.file("bin/plain", "#!/bin/sh\n", 0o644);
        folder.file("bin/bare", "echo hello\n", 0o755);
        folder.file("bin/open", "#!/bin/sh\n", 0o777);
        folder.link("/bin/sh", "bin/away");
        let run = |program: &str| tool(&format!("run: [{program}]"));
        for bad in [
            "no-such-program-anywhere",
            "\"\"",
            "../bin/good",
            "bin/../bin/good",
            "bin/plain",
            "bin/bare",
            "bin/open",
            "bin/away",
            "bin/none",
            "bin",
            "/no/such",
            "/bin/../bin/sh",
        ] {
            breaks_in(&folder, super::RULE, &run(bad));
        }
        for good in ["ls", "/bin/ls", "bin/good", "./bin/good"] {
            keeps_in(&folder, super::RULE, &run(good));
        }
    }
}
