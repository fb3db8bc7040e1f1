//! Frozen versions of a surface file: files beside it that stay as they are, each held to a lock of its own.
//!
//! Promises: of `NAME.yaml` the version that is frozen under a label is `NAME@LABEL.yaml` in the same folder, so
//! whatever is relative in it leads to the same; a file that looks like one and is none is refused, not passed
//! over. Used by the command line.

use std::fmt;
use std::path::{Path, PathBuf};

use super::problem::{Findings, Problems, Rule};
use super::source::{self, Source, Span};
use crate::protocol::json::shortened;
use crate::protocol::{Digest, ToolName, digest};

/// No label.
pub(crate) const LABEL: Rule =
    Rule::error("frozen-label", "a frozen surface's file is `NAME@LABEL.yaml`, its label 1 to 64 of A-Z a-z 0-9 _ . -");
/// Frozen from another surface.
pub(crate) const NAME: Rule = Rule::error("frozen-name", "a frozen surface has the name of the file beside it");
/// Not what it was.
pub(crate) const CHANGED: Rule =
    Rule::error("frozen-changed", "while it is served, a frozen surface's file stays as it is");

/// What tells a frozen version from the others of its surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(ToolName);

impl Label {
    /// Reads a label: what can be a surface's name can be one.
    pub fn new(text: &str) -> Option<Self> {
        ToolName::new(text).map(Self)
    }

    /// The label of a version where nobody says another: what breaking changes count up.
    pub fn of(version: &semver::Version) -> Option<Self> {
        Self::new(&match version.major {
            0 => format!("0.{}", version.minor),
            major => major.to_string(),
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the name of a frozen surface's file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    /// The file of which it is a version.
    pub base: PathBuf,
    /// Under which label.
    pub label: Label,
}

/// The name under which a file is served: that of its surface, with the label of a frozen one.
pub fn served_as(path: &Path, surface: &str) -> String {
    match Frozen::of(path) {
        Ok(Some(frozen)) => format!("{surface}@{}", frozen.label),
        Ok(None) | Err(_) => surface.to_owned(),
    }
}

fn refuse(path: &Path, rule: &Rule, message: String, remedy: &str) -> Problems {
    let mut findings = Findings::new(Source::new(path.to_owned(), String::new()));
    findings.report(rule, Span::START, message, remedy);
    findings.into_problems()
}

impl Frozen {
    /// What a file is frozen from, if its name says that it is.
    pub fn of(path: &Path) -> Result<Option<Self>, Problems> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (stem, extension) = name.rsplit_once('.').map_or((&*name, String::new()), |(s, e)| (s, format!(".{e}")));
        let Some((base, label)) = stem.split_once('@').filter(|(base, _)| !base.is_empty()) else { return Ok(None) };
        match Label::new(label) {
            Some(label) => Ok(Some(Self { base: path.with_file_name(format!("{base}{extension}")), label })),
            None => {
                let message = format!("{:?} is no label of a frozen surface", shortened(label, 64));
                let remedy =
                    "use 1 to 64 of A-Z a-z 0-9 _ . - between @ and the ending, or rename it so that it has no @";
                Err(refuse(path, &LABEL, message, remedy))
            }
        }
    }

    /// How its owner is told of it: its file, and what that is.
    pub fn named(&self) -> String {
        let (file, base) = (self.path(), self.base.display().to_string());
        format!("{}, which is {base} as it was frozen under the label {}", file.display(), self.label)
    }

    /// What its owner can do where it cannot be served any more.
    pub fn remedy(&self) -> String {
        let file = self.path();
        let (lock, file) = (super::lock::path_of(&file), file.display());
        format!(
            "its clients know these tools: bring back what they lead to; or have {file} lead there under the new name \
             (`target`, `flag`), since its lock holds what is published alone; or remove {file} and {} if nobody uses it",
            lock.display()
        )
    }

    /// The file of this version.
    pub fn path(&self) -> PathBuf {
        let mut name = self.base.file_stem().unwrap_or_default().to_owned();
        name.push(format!("@{}", self.label));
        if let Some(extension) = self.base.extension() {
            name.push(".");
            name.push(extension);
        }
        self.base.with_file_name(name)
    }

    /// Sees to it that a frozen surface goes by the name of the one that it is a version of.
    pub fn check_name(&self, name: &str, of_base: &str) -> Result<(), Problems> {
        if name == of_base {
            return Ok(());
        }
        let message = format!("it is the surface {name:?}, but {} is {of_base:?}", self.base.display());
        Err(refuse(&self.path(), &NAME, message, "rename it, or freeze the surface again"))
    }
}

/// Sees to it that a file is the one whose text had this digest when it was first served.
pub fn check_kept(path: &Path, kept: Digest) -> Result<(), Problems> {
    let mut findings = source::open(path).map_err(Findings::into_problems)?.findings;
    if text_digest(&findings) == kept {
        return Ok(());
    }
    let remedy = "restore it, and freeze what is new under another label; or start the server again";
    findings.report(&CHANGED, Span::START, "it is not what it was when the server started", remedy);
    Err(findings.into_problems())
}

fn text_digest(findings: &Findings) -> Digest {
    digest::of_bytes(findings.source().text().as_bytes())
}

/// A surface's file, and what it is a frozen version of.
pub type File = (PathBuf, Option<Frozen>);

/// The files that were named, each followed by the frozen versions `beside` it if they are wanted too, once each.
pub fn with_versions(paths: &[PathBuf], with_beside: bool) -> Vec<Result<File, Problems>> {
    let named: Vec<PathBuf> = paths.iter().map(|path| place_of(path)).collect();
    let mut files = Vec::new();
    for path in paths {
        let frozen = match Frozen::of(path) {
            Ok(frozen) => frozen,
            Err(problems) => {
                files.push(Err(problems));
                continue;
            }
        };
        let found = if with_beside && frozen.is_none() { beside(path) } else { Ok(Vec::new()) };
        files.push(Ok((path.clone(), frozen)));
        match found {
            Ok(found) => {
                for path in found.into_iter().filter(|path| !named.contains(&place_of(path))) {
                    files.push(Frozen::of(&path).map(|frozen| (path, frozen)));
                }
            }
            Err(problems) => files.push(Err(problems)),
        }
    }
    files
}

/// A path by which two names of one file are the same.
pub fn place_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    folder.join(path.file_name().unwrap_or_default())
}

/// The files of all frozen versions that stand beside a surface file, in the order of their names.
pub fn beside(path: &Path) -> Result<Vec<PathBuf>, Problems> {
    let unreadable = |error: std::io::Error| {
        let message = format!("its folder cannot be listed: {error}");
        refuse(path, &source::UNREADABLE, message, "let it be listed, or leave frozen surfaces out by --no-frozen")
    };
    let start = format!("{}@", path.file_stem().unwrap_or_default().to_string_lossy());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        // That the file is not there either is said by whoever reads it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(unreadable)?,
    };
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let same_kind = Path::new(&name).extension() == path.extension();
        if same_kind && name.as_encoded_bytes().starts_with(start.as_bytes()) {
            found.push(path.with_file_name(name));
        }
    }
    found.sort();
    Ok(found)
}

/// The digest of a surface file's text, to tell whether it is the one that was read before.
pub fn digest_of(path: &Path) -> Result<Digest, Problems> {
    source::open(path).map(|opened| text_digest(&opened.findings)).map_err(Findings::into_problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Result<Option<(String, String)>, &'static str> {
        match Frozen::of(Path::new(path)) {
            Ok(found) => {
                assert!(found.as_ref().is_none_or(|frozen| frozen.path() == Path::new(path)), "{path}");
                Ok(found.map(|Frozen { base, label }| (base.display().to_string(), label.to_string())))
            }
            Err(problems) => Err(problems.list()[0].rule),
        }
    }

    #[test]
    fn the_name_of_a_file_says_what_it_is_frozen_from() {
        let frozen = |base: &str, label: &str| Ok(Some((base.to_owned(), label.to_owned())));
        assert_eq!(of("a/ops@1.yaml"), frozen("a/ops.yaml", "1"));
        assert_eq!(of("ops@0.3.yaml"), frozen("ops.yaml", "0.3"));
        assert_eq!(of("ops@1.json"), frozen("ops.json", "1"));
        assert_eq!(of("ops@1"), frozen("ops", "1"));
        for live in ["ops.yaml", "a@b/ops.yaml", "ops", "@1.yaml", "", "/"] {
            assert_eq!(of(live), Ok(None), "{live}");
        }
        let long = format!("ops@{}.yaml", "x".repeat(65));
        for odd in
            ["ops@.yaml", "ops@1@2.yaml", "ops@a b.yaml", "ops@ä.yaml", "ops@1%2f.yaml", "ops@\u{1b}[2J.yaml", &long]
        {
            assert_eq!(of(odd), Err("frozen-label"), "{odd}");
        }
    }

    #[test]
    fn a_label_is_what_breaking_changes_count_up() {
        for (version, label) in [("1.2.3", "1"), ("12.0.0-rc.1", "12"), ("0.3.9", "0.3"), ("0.0.1", "0.0")] {
            assert_eq!(Label::of(&version.parse().unwrap()).unwrap().to_string(), label);
        }
    }

    #[test]
    fn frozen_files_are_found_beside_theirs_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names = [
            "ops.yaml",
            "ops@2.yaml",
            "ops@1.yaml",
            "ops@1.lock",
            "ops@1.json",
            "ops@1.yaml~",
            "xops@1.yaml",
            "op@1.yaml",
        ];
        names.iter().for_each(|name| std::fs::write(path(name), "").unwrap());
        assert_eq!(beside(&path("ops.yaml")).unwrap(), [path("ops@1.yaml"), path("ops@2.yaml")]);
        assert!(beside(&path("none.yaml")).unwrap().is_empty());
        assert!(beside(&path("gone/ops.yaml")).unwrap().is_empty());
        assert_eq!(beside(&path("ops.yaml/ops.yaml")).unwrap_err().list()[0].rule, "file-unreadable");
    }
}
