//! A skill's text and the files that come with it, for models.
//!
//! Promises: only regular files beneath the skill's folder are read, in three of its folders, checked by the kernel in
//! one step where it can; bounded in files, depth and bytes; no text names a path of the machine. Used by `get_skill`.

use std::fs::File;
use std::io::Read as _;

use rustix::fs::FileType;

use crate::core::confine::{PathRefusal, Root};
use crate::core::outgoing::Outgoing;
use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::surface::declaration::type_of;
use crate::surface::manifest::SkillManifest;

/// Most bytes of a skill's text, and of a file of it, that are read.
pub const TEXT_BYTES: usize = 512_000;

const SKILL_FILE: &str = "SKILL.md";
/// The folders of a skill whose files are read.
const CATEGORIES: [&str; 3] = ["references", "scripts", "assets"];
const FILES_AT_MOST: usize = 1000;
const NAMES_AT_MOST: usize = 10_000;
const DEPTH_AT_MOST: usize = 16;

/// Why there is no answer. The texts are for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// The path is none of a resource, or what it leads to may not be read.
    #[error("{0}")]
    Invalid(String),
    /// There is nothing of that path.
    #[error("the skill has no resource {0:?}: ask for the skill without `resource` to see which it has")]
    NotFound(String),
    /// It is no text.
    #[error("the resource {0:?} is not UTF-8 text, and no other is passed on")]
    NotText(String),
    /// The skill itself cannot be read.
    #[error("the skill {0:?} cannot be read: its {SKILL_FILE} is missing, no text, or larger than {TEXT_BYTES} bytes")]
    Unreadable(String),
}

impl SkillError {
    /// The word for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_skill_resource",
            Self::NotFound(_) => "skill_resource_not_found",
            Self::NotText(_) => "skill_resource_not_text",
            Self::Unreadable(_) => "skill_unreadable",
        }
    }
}

/// The text of a skill and the list of its files; or one of its files, where `resource` names one.
pub fn read(skill: &SkillManifest, resource: Option<&str>) -> Result<Json, SkillError> {
    let unreadable = || SkillError::Unreadable(skill.name.clone());
    let root = Root::open(&skill.folder).map_err(|_| unreadable())?;
    let name = ("name", text(&skill.name));
    match resource {
        Some(resource) => Ok(object([name, ("resource", read_resource(&root, resource)?)])),
        None => {
            let file = root.open_file(SKILL_FILE).ok().flatten().ok_or_else(unreadable)?;
            let (content, _) = read_text(file).map_err(|_| unreadable())?;
            Ok(object([name, ("content", text(&content)), ("resources", index(&root))]))
        }
    }
}

/// The files of a skill by category, then all of them with size and type.
fn index(root: &Root) -> Json {
    let mut looking = Looking { root, files: Vec::new(), names: 0 };
    let mut members = Vec::new();
    let mut resources = Vec::new();
    for category in CATEGORIES {
        looking.walk(category, 0);
        looking.files.sort();
        let files = std::mem::take(&mut looking.files);
        members.push((category, Json::Array(files.iter().map(|(path, _)| text(path)).collect())));
        resources.extend(files.iter().map(|(path, size)| object(described(path, *size))));
    }
    members.push(("resources", Json::Array(resources)));
    object(members)
}

struct Looking<'r> {
    root: &'r Root,
    files: Vec<(String, u64)>,
    names: usize,
}

impl Looking<'_> {
    fn walk(&mut self, folder: &str, depth: usize) {
        let left = NAMES_AT_MOST.saturating_sub(self.names);
        if depth > DEPTH_AT_MOST || left == 0 {
            return;
        }
        let mut found = self.root.names(folder, left).unwrap_or_default();
        self.names += found.len();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in found {
            if name.starts_with('.') || name.contains('\\') || name.chars().any(char::is_control) {
                continue;
            }
            let path = format!("{folder}/{name}");
            if kind == FileType::Directory {
                self.walk(&path, depth + 1);
            } else if self.files.len() < FILES_AT_MOST
                && let Ok(Some(file)) = self.root.open_file(&path)
                && let Ok(metadata) = file.metadata()
            {
                self.files.push((path, metadata.len()));
            }
        }
    }
}

fn read_resource(root: &Root, requested: &str) -> Result<Json, SkillError> {
    let path = admit(requested)?;
    let file = match root.open_file(&path) {
        Ok(Some(file)) => file,
        Ok(None) => return Err(SkillError::NotFound(shortened(&path, 200))),
        Err(PathRefusal::Special) => return Err(SkillError::NotFound(shortened(&path, 200))),
        Err(_) => {
            return Err(SkillError::Invalid("the resource is out of reach: it lies outside the skill".to_owned()));
        }
    };
    let (content, size) = read_text(file).map_err(|problem| match problem {
        Problem::TooLarge(size) => {
            SkillError::Invalid(format!("the resource has {size} bytes, more than the {TEXT_BYTES} that are read"))
        }
        Problem::NotText => SkillError::NotText(shortened(&path, 200)),
        Problem::Unreadable => SkillError::Invalid("the resource cannot be read now: try again".to_owned()),
    })?;
    let members = described(&path, size).into_iter().chain([("content", text(&content))]);
    Ok(object(members))
}

/// The path of a resource in its plain form.
fn admit(requested: &str) -> Result<String, SkillError> {
    let plain = requested.trim().replace('\\', "/");
    let refuse = |problem: &str| {
        Err(SkillError::Invalid(format!("{problem}: give a path from the skill's list, such as references/guide.md")))
    };
    if plain.is_empty() {
        return refuse("the path of the resource is empty");
    }
    if plain.contains('\0') {
        return refuse("the path of the resource contains a NUL character");
    }
    // A drive's letter is absolute elsewhere.
    let drive = plain.get(1..2) == Some(":");
    let parts: Vec<&str> = plain.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if plain.starts_with('/') || drive || parts.contains(&"..") {
        return refuse("the path of the resource must stay inside the skill");
    }
    if parts.len() < 2 || !parts.first().is_some_and(|first| CATEGORIES.contains(first)) {
        return refuse("the path of the resource must begin with references/, scripts/ or assets/");
    }
    if parts.iter().any(|part| part.starts_with('.')) {
        return Err(SkillError::NotFound(shortened(&plain, 200)));
    }
    Ok(parts.join("/"))
}

enum Problem {
    TooLarge(u64),
    NotText,
    Unreadable,
}

/// A file's text, without what nobody sees, and its size.
fn read_text(file: File) -> Result<(String, u64), Problem> {
    let most = u64::try_from(TEXT_BYTES).unwrap_or(u64::MAX);
    let size = file.metadata().map_err(|_| Problem::Unreadable)?.len();
    if size > most {
        return Err(Problem::TooLarge(size));
    }
    let mut bytes = Vec::new();
    // One byte more, so that a file that grows meanwhile is not taken for whole.
    file.take(most + 1).read_to_end(&mut bytes).map_err(|_| Problem::Unreadable)?;
    let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if read > most {
        return Err(Problem::TooLarge(read));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Problem::NotText)?;
    if text.contains('\0') {
        return Err(Problem::NotText);
    }
    Ok((Outgoing::clean(text.as_bytes(), usize::MAX).text, read))
}

fn described(path: &str, size: u64) -> Vec<(&'static str, Json)> {
    let category = CATEGORIES.into_iter().find(|category| path.starts_with(category)).unwrap_or_default();
    let media_type = type_of(path).unwrap_or_else(|| "text/plain".to_owned());
    vec![
        ("path", text(path)),
        ("category", text(category)),
        ("size", Json::Number(size.to_string().into())),
        ("media_type", text(&media_type)),
    ]
}

fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn object<'k>(members: impl IntoIterator<Item = (&'k str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::surface::manifest::Routing;

    struct Skill(tempfile::TempDir);

    impl Skill {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("secret"), "s").unwrap();
            let skill = Self(folder);
            skill.file("SKILL.md", "---\nname: s\n---\nBody \u{e0041}é\n");
            skill.file("references/a.md", "A");
            skill.file("references/deep/b.txt", "B");
            skill.file("scripts/run.py", "print()");
            skill.file("references/.hidden", "H");
            skill.file("other/c.md", "C");
            skill
        }

        fn folder(&self) -> std::path::PathBuf {
            self.0.path().join("skill")
        }

        fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
            let path = self.folder().join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, bytes).unwrap();
        }

        fn read(&self, resource: Option<&str>) -> Result<String, SkillError> {
            let folder = self.folder();
            let (name, description) = ("s".to_owned(), "d".to_owned());
            let manifest = SkillManifest { name, description, version: None, routing: Routing::default(), folder };
            read(&manifest, resource).map(|value| value.to_text())
        }

        fn code(&self, resource: &str) -> &'static str {
            let error = self.read(Some(resource)).unwrap_err();
            let said = error.to_string();
            assert!(!said.contains(&*self.0.path().to_string_lossy()), "{said}");
            error.code()
        }
    }

    #[test]
    fn a_skill_is_told_with_its_files() {
        let skill = Skill::new();
        symlink("a.md", skill.folder().join("references/near.md")).unwrap();
        symlink("../../secret", skill.folder().join("references/out.md")).unwrap();
        symlink("..", skill.folder().join("references/circle")).unwrap();
        let said = skill.read(None).unwrap();
        assert!(
            said.starts_with(r#"{"name":"s","content":"---\nname: s\n---\nBody é\n","resources":{"references":["#),
            "{said}"
        );
        assert!(
            said.contains(r#""references/a.md","references/"#) && !said.contains("hidden") && !said.contains("out.md")
        );
        assert!(said.contains(r#""references/near.md""#) && said.contains(r#""assets":[]"#));
        let row = r#"{"path":"references/deep/b.txt","category":"references","size":1,"media_type":"text/plain"}"#;
        assert!(said.contains(row), "{said}");
    }

    #[test]
    fn a_resource_is_told_alone() {
        let skill = Skill::new();
        let expected = r#"{"name":"s","resource":{"path":"references/a.md","category":"references","size":1,"media_type":"text/markdown","content":"A"}}"#;
        for path in ["references/a.md", "  references\\a.md ", "./references//a.md", "references/./a.md"] {
            assert_eq!(skill.read(Some(path)).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_is_none_of_a_resource_is_refused_and_names_no_path_of_ours() {
        let skill = Skill::new();
        symlink("../../secret", skill.folder().join("references/out.md")).unwrap();
        symlink("/etc", skill.folder().join("references/etc")).unwrap();
        for path in [
            "",
            "  ",
            "/etc/passwd",
            "\\etc\\passwd",
            "C:/x/y",
            "../secret",
            "references/../SKILL.md",
            "references/..\\..\\secret",
            "SKILL.md",
            "references",
            "references/",
            "other/c.md",
            "references/a\0.md",
            "references/out.md",
            "references/etc/passwd",
        ] {
            assert_eq!(skill.code(path), "invalid_skill_resource", "{path:?}");
        }
        assert!(std::process::Command::new("mkfifo").arg(skill.folder().join("assets")).status().unwrap().success());
        for path in [
            "references/none.md",
            "references/deep",
            "references/.hidden",
            "references/a.md/x",
            "references/%2e%2e/x",
            "assets/x",
        ] {
            assert_eq!(skill.code(path), "skill_resource_not_found", "{path:?}");
        }
    }

    #[test]
    fn only_text_of_a_bounded_size_is_read() {
        let skill = Skill::new();
        skill.file("assets/latin.txt", b"\xe9");
        skill.file("assets/nul.txt", b"a\0b");
        assert_eq!(
            (skill.code("assets/latin.txt"), skill.code("assets/nul.txt")),
            ("skill_resource_not_text", "skill_resource_not_text")
        );
        skill.file("assets/full.txt", vec![b'x'; TEXT_BYTES]);
        assert!(skill.read(Some("assets/full.txt")).is_ok());
        skill.file("assets/more.txt", vec![b'x'; TEXT_BYTES + 1]);
        assert_eq!(skill.code("assets/more.txt"), "invalid_skill_resource");
        let sparse = File::create(skill.folder().join("assets/sparse.txt")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert_eq!(skill.code("assets/sparse.txt"), "invalid_skill_resource");
        skill.file("SKILL.md", vec![b'x'; TEXT_BYTES + 1]);
        assert_eq!(skill.read(None).unwrap_err().code(), "skill_unreadable");
        fs::remove_dir_all(skill.folder()).unwrap();
        assert_eq!(skill.read(None).unwrap_err().code(), "skill_unreadable");
    }
}
