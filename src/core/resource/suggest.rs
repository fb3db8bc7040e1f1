//! Values for a variable that is being typed, from the names in a folder.
//!
//! Promises: one folder is looked at, and no more than so many of its entries; nothing is suggested
//! that could not be read.

use std::path::Path;

use rustix::fs::FileType;

use crate::core::confine::Root;
use crate::protocol::Completion;
use crate::protocol::json::is_invisible;
use crate::protocol::limits::COMPLETIONS_AT_MOST;
use crate::surface::declaration::{FileSource, FolderSource, Piece, is_in_sight};

/// Most entries of one folder that are looked at.
const ENTRIES_AT_MOST: usize = 5000;

/// Paths of files and folders that begin with what was typed; a folder ends in a slash.
pub(super) fn files(folder: &FolderSource, typed: &str) -> Completion {
    let (above, begun) = typed.rsplit_once('/').map_or(("", typed), |(above, begun)| (above, begun));
    if !is_in_sight(above) || typed.starts_with('/') {
        return Completion::default();
    }
    let Some(within) = folder.path.to_str() else { return Completion::default() };
    let prefix = if above.is_empty() { String::new() } else { format!("{above}/") };
    let named = names(&folder.root, &format!("{within}/{above}"));
    let values = named.into_iter().filter(|(name, _)| begins(name, begun)).filter_map(|(name, kind)| {
        let path = format!("{prefix}{name}");
        match kind {
            FileType::Directory => is_in_sight(&path).then(|| format!("{path}/")),
            _ => folder.matching.takes(&path).then_some(path),
        }
    });
    completion(values.collect())
}

/// Values of the one placeholder in a file's path, from the names that it stands in.
pub(super) fn values(file: &FileSource, typed: &str, fits: impl Fn(&str) -> bool) -> Completion {
    let (before, after) = match file.path.0.as_slice() {
        [Piece::Argument(_)] => ("", ""),
        [Piece::Literal(before), Piece::Argument(_)] => (before.as_str(), ""),
        [Piece::Argument(_), Piece::Literal(after)] => ("", after.as_str()),
        [Piece::Literal(before), Piece::Argument(_), Piece::Literal(after)] => (before.as_str(), after.as_str()),
        _ => return Completion::default(),
    };
    let (folder, before) = before.rsplit_once('/').map_or((".", before), |(folder, before)| (folder, before));
    // A name with something below it is a folder, and of those not all have it.
    if after.contains('/') {
        return Completion::default();
    }
    let named = names(&file.root, folder).into_iter().filter(|(_, kind)| *kind == FileType::RegularFile);
    let values = named.filter_map(|(name, _)| {
        let value = name.strip_prefix(before)?.strip_suffix(after)?;
        (!value.is_empty() && begins(value, typed) && is_in_sight(value) && fits(value)).then(|| value.to_owned())
    });
    completion(values.collect())
}

fn names(root: &Path, folder: &str) -> Vec<(String, FileType)> {
    let named = Root::open(root).ok().and_then(|root| root.names(folder, ENTRIES_AT_MOST).ok()).unwrap_or_default();
    let shown = |(name, _): &(String, FileType)| !name.chars().any(|c| c.is_control() || is_invisible(c));
    named.into_iter().filter(shown).collect()
}

fn begins(name: &str, begun: &str) -> bool {
    name.to_lowercase().starts_with(&begun.to_lowercase())
}

fn completion(mut values: Vec<String>) -> Completion {
    values.sort();
    let total = u64::try_from(values.len()).ok();
    let more = values.len() > COMPLETIONS_AT_MOST;
    values.truncate(COMPLETIONS_AT_MOST);
    Completion { values, total, more }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::surface::declaration::{Matching, Template};

    fn tree() -> tempfile::TempDir {
        let base = tempfile::tempdir().unwrap();
        for folder in ["docs/guide", "docs/.git", "notes"] {
            fs::create_dir_all(base.path().join(folder)).unwrap();
        }
        for file in
            ["docs/a.md", "docs/Also.md", "docs/.env", "docs/guide/b.md", "notes/2026-01.md", "notes/2026-02.md"]
        {
            fs::write(base.path().join(file), "").unwrap();
        }
        fs::write(base.path().join("notes/other.txt"), "").unwrap();
        base
    }

    #[test]
    fn a_folder_suggests_what_lies_in_it() {
        let base = tree();
        let folder =
            FolderSource { root: base.path().to_owned(), path: "docs".into(), matching: Matching::default(), cap: 1 };
        for (typed, expected) in [
            ("", &["Also.md", "a.md", "guide/"][..]),
            ("a", &["Also.md", "a.md"]),
            ("guide/", &["guide/b.md"]),
            ("guide/x", &[]),
            (".", &[]),
            (".git/", &[]),
            ("../notes/", &[]),
            ("/", &[]),
            ("gone/", &[]),
        ] {
            assert_eq!(files(&folder, typed).values, expected, "{typed}");
        }
    }

    #[test]
    fn a_path_suggests_what_its_placeholder_stands_for() {
        let base = tree();
        let source = |path: &str| FileSource {
            root: base.path().to_owned(),
            path: Template::parse(path).unwrap(),
            deep: Vec::new(),
            cap: 1,
        };
        let suggested = |path: &str, typed: &str| values(&source(path), typed, |value| value != "2026-02").values;
        assert_eq!(suggested("notes/{day}.md", ""), ["2026-01"]);
        assert_eq!(suggested("notes/2026-{month}.md", ""), ["01", "02"]);
        assert!(suggested("notes/{day}.md", "x").is_empty());
        assert!(suggested("{a}/{b}", "").is_empty() && suggested("{a}/README", "").is_empty());
        assert!(suggested("../{a}", "").is_empty());
    }
}
