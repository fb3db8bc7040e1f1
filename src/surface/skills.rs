//! A skill's folder read into a snapshot of its files (the skills extension; the Agent Skills format).
//!
//! Promises: only regular files beneath the folder are read, no link is followed, names that begin
//! with a dot are left out; what is too large is refused before it is read.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::problem::Findings;
use super::source::Source;
use super::tree;
use crate::protocol::catalog::SKILL_FILE;
use crate::protocol::limits::{SKILL_BYTES, SKILL_FILES};
use crate::protocol::{Json, SkillFile, SkillParts};

/// Deepest folder within a skill.
const DEPTH: usize = 16;

/// Why a folder is no skill, for the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkillError {
    /// Something cannot be read.
    #[error("{path:?} in the skill's folder cannot be read: {source}")]
    Unreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// A link, a device, a name that is not UTF-8.
    #[error("{0:?} in the skill's folder is not a plain file or folder with a name in UTF-8")]
    NotPlain(String),
    /// Too much of it.
    #[error("the skill's folder holds more than {SKILL_FILES} files, 16 MiB, or {DEPTH} levels of folders")]
    TooLarge,
    /// No `SKILL.md`, or none with front matter.
    #[error("{SKILL_FILE} must begin with front matter: YAML between two lines of `---`")]
    NoFrontMatter,
    /// The front matter cannot be read.
    #[error("the front matter of {SKILL_FILE}, line {line}: {problem}")]
    FrontMatter { line: usize, problem: String },
}

/// Reads a skill's folder; `uri` is that of the folder.
pub(crate) fn read(folder: &Path, uri: String, mime_type: impl Fn(&str) -> String) -> Result<SkillParts, SkillError> {
    let mut files = Vec::new();
    walk(folder, "", 0, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for file in &mut files {
        file.mime_type = Some(mime_type(&file.path));
    }
    let manifest = files.iter().find(|file| file.path == SKILL_FILE).ok_or(SkillError::NoFrontMatter)?;
    let frontmatter = front_matter(&manifest.bytes)?;
    Ok(SkillParts { uri, frontmatter, files })
}

fn walk(folder: &Path, within: &str, depth: usize, files: &mut Vec<SkillFile>) -> Result<(), SkillError> {
    if depth > DEPTH {
        return Err(SkillError::TooLarge);
    }
    let unreadable = |path: &str, source| SkillError::Unreadable { path: path.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(|error| unreadable(within, error))? {
        let entry = entry.map_err(|error| unreadable(within, error))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(SkillError::NotPlain(name.to_string_lossy().into_owned()));
        };
        if name.starts_with('.') {
            continue;
        }
        let path = if within.is_empty() { name.to_owned() } else { format!("{within}/{name}") };
        let kind = entry.file_type().map_err(|error| unreadable(&path, error))?;
        if kind.is_dir() {
            walk(&entry.path(), &path, depth + 1, files)?;
        } else if kind.is_file() {
            let held: usize = files.iter().map(|file| file.bytes.len()).sum();
            let bytes = contents(&entry.path(), SKILL_BYTES.saturating_sub(held))
                .map_err(|error| unreadable(&path, error))?
                .ok_or(SkillError::TooLarge)?;
            files.push(SkillFile { path, mime_type: None, bytes: bytes.into() });
        } else {
            return Err(SkillError::NotPlain(path));
        }
        if files.len() > SKILL_FILES {
            return Err(SkillError::TooLarge);
        }
    }
    Ok(())
}

/// A file's bytes; `None` if there are more than `most`.
fn contents(path: &Path, most: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

/// The YAML between the first two lines of `---`, whole, as JSON.
fn front_matter(bytes: &[u8]) -> Result<Json, SkillError> {
    let text = std::str::from_utf8(bytes).map_err(|_| SkillError::NoFrontMatter)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    if !lines.next().is_some_and(is_fence) {
        return Err(SkillError::NoFrontMatter);
    }
    let mut yaml = String::new();
    let closed = lines.by_ref().any(|line| {
        let fence = is_fence(line);
        if !fence {
            yaml.push_str(line);
        }
        fence
    });
    if !closed {
        return Err(SkillError::NoFrontMatter);
    }
    let mut findings = Findings::new(Source::new(SKILL_FILE.into(), yaml));
    let tree = tree::parse(&mut findings);
    if let Some(first) = findings.into_problems().list().first() {
        // The fence above it is a line too.
        return Err(SkillError::FrontMatter { line: first.line + 1, problem: first.message.clone() });
    }
    tree.filter(|tree| tree.as_map().is_some()).map(|tree| tree.to_json()).ok_or(SkillError::NoFrontMatter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(files: &[(&str, &str)]) -> Result<SkillParts, String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        read(folder.path(), "skill://s".to_owned(), |_| "text/markdown".to_owned()).map_err(|error| error.to_string())
    }

    const MANIFEST: &str = "---\nname: s\ndescription: d\nmetadata: {version: \"2.0\"}\n---\nBody.\n";

    #[test]
    fn a_folder_becomes_a_sorted_snapshot_with_its_whole_front_matter() {
        let files = [("b/x.md", "x"), ("SKILL.md", MANIFEST), (".git/config", "no"), ("a.md", "")];
        let parts = skill(&files).unwrap();
        let paths: Vec<&str> = parts.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["SKILL.md", "a.md", "b/x.md"]);
        let text = r#"{"name":"s","description":"d","metadata":{"version":"2.0"}}"#;
        assert_eq!(parts.frontmatter.to_text(), text);
    }

    #[test]
    fn what_is_no_skill_is_refused_with_the_reason() {
        for (text, why) in [
            ("name: s\n", "must begin with front matter"),
            ("---\nname: s\n", "must begin with front matter"),
            ("---\n- a\n---\n", "must begin with front matter"),
            ("---\nname: [s\n---\n", "the front matter of SKILL.md, line"),
            ("---\nname: s\nname: t\n---\n", "the front matter of SKILL.md, line 3"),
        ] {
            let refused = skill(&[("SKILL.md", text)]).unwrap_err();
            assert!(refused.contains(why), "{text:?}: {refused}");
        }
        assert!(skill(&[("x.md", "x")]).unwrap_err().contains("must begin with front matter"));
    }

    #[test]
    fn a_link_in_a_skill_is_refused_and_nothing_behind_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("SKILL.md"), MANIFEST).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("x.md")).unwrap();
        let refused = read(folder.path(), "skill://s".to_owned(), |_| String::new()).unwrap_err();
        assert!(matches!(refused, SkillError::NotPlain(path) if path == "x.md"));
    }
}
