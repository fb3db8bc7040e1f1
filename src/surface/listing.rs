//! The files of a folder, as they are when a surface is loaded.
//!
//! Promises: bounded in files, entries and depth; sorted, so that the same files give the same list;
//! no link to a folder is entered, no link out of the root is listed, nothing is opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::matching::{Matching, is_in_sight};
use crate::protocol::json::is_invisible;

/// Most files of one folder that are listed.
pub(crate) const FILES_AT_MOST: usize = 1000;
/// Most entries that are looked at: a tree that is larger is not listed whole.
const ENTRIES_AT_MOST: usize = 50_000;
/// Deepest folder that is entered.
const DEPTH_AT_MOST: usize = 32;

/// What lies in a folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Paths relative to the folder, sorted.
    pub(crate) files: Vec<String>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// Lists the files of a folder that match; `root` is where links may lead.
pub(crate) fn list(root: &Path, folder: &Path, matching: &Matching) -> Listing {
    let mut files = BTreeSet::new();
    let mut more = false;
    let mut seen = 0usize;
    let mut folders: Vec<(PathBuf, String, usize)> = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES_AT_MOST {
                more = true;
                folders.clear();
                break;
            }
            // What is not UTF-8 has no address, and what nobody sees hides one behind another.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.chars().any(|c| c.is_control() || is_invisible(c)) || !is_in_sight(&name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                match depth < DEPTH_AT_MOST {
                    true => folders.push((entry.path(), format!("{path}/"), depth + 1)),
                    false => more = true,
                }
            } else if matching.takes(&path) && (kind.is_file() || is_file_beneath(root, &entry.path())) {
                files.insert(path);
                if files.len() > FILES_AT_MOST {
                    files.pop_last();
                    more = true;
                }
            }
        }
    }
    Listing { files: files.into_iter().collect(), more }
}

/// Whether a link leads to a regular file beneath the root.
fn is_file_beneath(root: &Path, link: &Path) -> bool {
    fs::canonicalize(link).is_ok_and(|path| path.starts_with(root) && path.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_listed_in_order_without_what_is_hidden_or_leads_out() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let root = base.join("root");
        for folder in ["docs/b", "docs/.git", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(base.join("secret"), "s").unwrap();
        for file in
            ["docs/z.md", "docs/a.md", "docs/b/c.txt", "docs/.env", "docs/.git/config", "docs/x\ny", "other/o.md"]
        {
            fs::write(root.join(file), "x").unwrap();
        }
        symlink("../../secret", root.join("docs/out.md")).unwrap();
        symlink("../other/o.md", root.join("docs/in.md")).unwrap();
        symlink("../other", root.join("docs/folder")).unwrap();
        symlink(".", root.join("docs/circle")).unwrap();
        symlink("gone", root.join("docs/dangling.md")).unwrap();
        let listed = list(&root, &root.join("docs"), &Matching::default());
        assert_eq!(
            (listed.files.as_slice(), listed.more),
            (&["a.md", "b/c.txt", "in.md", "z.md"].map(str::to_owned)[..], false)
        );
        let mut only = Matching::default();
        only.add("*.txt").unwrap();
        assert_eq!(list(&root, &root.join("docs"), &only).files, ["b/c.txt"]);
    }

    #[test]
    fn the_first_of_many_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..1100 {
            fs::write(folder.path().join(format!("{number:04}")), "").unwrap();
        }
        let listed = list(folder.path(), folder.path(), &Matching::default());
        assert!(listed.more);
        assert_eq!((listed.files.len(), listed.files[999].as_str()), (1000, "0999"));
    }
}
