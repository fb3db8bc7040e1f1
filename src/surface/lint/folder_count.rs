//! A client that lists resources reads them all: a listing of everything helps nobody.

use crate::surface::file::SurfaceFile;
use crate::surface::listing::FILES_AT_MOST;
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::{Resolved, ResolvedPath};

pub(crate) const RULE: Rule = Rule::warning("folder-count", "a folder lists at most 1,000 files");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (backend, resolved) in file.backends().zip(&resolved.backends) {
        for (entry, found) in backend.paths.iter().zip(&resolved.paths) {
            if let ResolvedPath::Folder(listing) = found
                && listing.more
            {
                let message = format!("more than {FILES_AT_MOST} files lie here: the first are listed");
                let remedy = "narrow it with `match`, or name a folder further down; all of them can be read";
                findings.report(&RULE, entry.path.span, message, remedy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, resource};

    #[test]
    fn a_folder_of_too_many_files_is_warned_of() {
        let folder = Folder::new("count");
        folder.make("docs");
        for number in 0..1000 {
            folder.file(&format!("docs/{number}.md"), "", 0o644);
        }
        keeps_in(&folder, super::RULE, &resource("folder: docs"));
        folder.file("docs/more.txt", "", 0o644);
        breaks_in(&folder, super::RULE, &resource("folder: docs"));
        keeps_in(&folder, super::RULE, &resource("folder: docs\nmatch: \"*.md\""));
    }
}
