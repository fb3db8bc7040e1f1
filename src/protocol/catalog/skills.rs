//! Skills: folders of files that teach a model, served as resources (the skills extension, SEP-2640).
//!
//! Promises: what is listed of a skill is of the very bytes that are read, since both are of one
//! snapshot; every folder of a skill can be listed.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::{CatalogError, Place};
use crate::protocol::content::{Body, ResourceContents, object, text};
use crate::protocol::digest;
use crate::protocol::json::Json;
use crate::protocol::limits::{SKILL_BYTES, SKILL_FILES};
use crate::protocol::uri_template::percent_encoded;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The media type of a folder.
const FOLDER: &str = "inode/directory";

/// What a skill is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillParts {
    /// The URI of its folder without a slash at the end, such as `skill://team/refunds`; its last segment is its name.
    pub uri: String,
    /// The front matter of its `SKILL.md`, whole.
    pub frontmatter: Json,
    /// All of its files, those of skills within it too.
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillFile {
    /// Its path in the skill's folder, with `/` between the parts.
    pub path: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl SkillParts {
    /// The URI of a path within it.
    pub fn locate(&self, path: &str) -> String {
        format!("{}/{}", self.uri, percent_encoded(path, b"!$&'()*+,;=:@/"))
    }

    fn said(&self, key: &str) -> Option<&str> {
        self.frontmatter.get(key).and_then(Json::as_str).filter(|text| !text.is_empty())
    }

    /// Its entry, as listed.
    pub(super) fn entry(&self) -> Json {
        let file = |file: &SkillFile| {
            object([
                ("uri", Some(text(&self.locate(&file.path)))),
                ("digest", Some(text(&digest::of_bytes(&file.bytes).to_string()))),
                ("size", Some(Json::Number(file.bytes.len().to_string().into()))),
            ])
        };
        object([
            ("uri", Some(text(&self.locate(SKILL_FILE)))),
            ("frontmatter", Some(self.frontmatter.clone())),
            ("resources", Some(Json::Array(self.files.iter().map(file).collect()))),
        ])
    }

    /// Its `SKILL.md` as a resource.
    pub(super) fn resource(&self) -> Json {
        object([
            ("uri", Some(text(&self.locate(SKILL_FILE)))),
            ("name", self.said("name").map(text)),
            ("description", self.said("description").map(text)),
            ("mimeType", Some(text("text/markdown"))),
        ])
    }
}

/// The skills of a catalog by the URIs of what is in them.
#[derive(Debug, Default)]
pub(super) struct Skills {
    entries: BTreeMap<String, Json>,
    files: HashMap<String, ResourceContents>,
    folders: BTreeMap<String, BTreeMap<String, Json>>,
}

impl Skills {
    /// Takes checked parts.
    pub(super) fn of(parts: &[SkillParts]) -> Self {
        let mut skills = Self::default();
        for skill in parts {
            skills.entries.insert(skill.locate(SKILL_FILE), skill.entry());
            skills.folders.entry(skill.uri.clone()).or_default();
            for file in &skill.files {
                skills.add(skill, file);
            }
        }
        skills
    }

    fn add(&mut self, skill: &SkillParts, file: &SkillFile) {
        let uri = skill.locate(&file.path);
        let body = match std::str::from_utf8(&file.bytes) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Blob(file.bytes.clone()),
        };
        let contents = ResourceContents { uri: uri.clone(), mime_type: file.mime_type.clone(), body, meta: None };
        let listed = |path: &str, mime_type: Option<&str>| {
            let name = path.rsplit('/').next().unwrap_or_default();
            object([
                ("uri", Some(text(&skill.locate(path)))),
                ("name", Some(text(name))),
                ("mimeType", mime_type.map(text)),
            ])
        };
        let mut child = match file.path.as_str() {
            SKILL_FILE => skill.resource(),
            path => listed(path, file.mime_type.as_deref()),
        };
        self.files.insert(uri.clone(), contents);
        // Each folder on the way up to the skill's own holds the one below it.
        let (mut at, mut path) = (uri, file.path.as_str());
        while let Some((folder, _)) = path.rsplit_once('/') {
            let within = skill.locate(folder);
            self.folders.entry(within.clone()).or_default().insert(at, child);
            child = listed(folder, Some(FOLDER));
            (at, path) = (within, folder);
        }
        self.folders.entry(skill.uri.clone()).or_default().insert(at, child);
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(super) fn entry(&self, uri: &str) -> Option<&Json> {
        self.entries.get(uri)
    }

    pub(super) fn file(&self, uri: &str) -> Option<&ResourceContents> {
        self.files.get(uri)
    }

    /// What is directly in a folder, in order.
    pub(super) fn folder(&self, uri: &str) -> Option<Vec<&Json>> {
        self.folders.get(uri).map(|children| children.values().collect())
    }
}

/// 1 to 64 of lower-case letters, digits and single hyphens within (the Agent Skills naming rules).
fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=64).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// What keeps skills from being served beside the resources of these URIs.
pub(super) fn check(parts: &[SkillParts], resources: &HashMap<String, usize>, problems: &mut Vec<CatalogError>) {
    for (index, skill) in parts.iter().enumerate() {
        let mut report = |rule: &'static str, problem: String, remedy: &str| {
            let (place, pointer) = (Place::Skill(index), String::new());
            problems.push(CatalogError { place, pointer, rule, problem, remedy: remedy.to_owned() });
        };
        let last = skill.uri.rsplit('/').next().unwrap_or_default();
        let name = skill.said("name").unwrap_or_default();
        if !is_name(name) {
            let remedy = "use 1 to 64 of a-z 0-9 and single hyphens within";
            report("skill-name", format!("{name:?} is not a skill's name"), remedy);
        } else if name != last {
            let problem = format!("the skill named {name:?} is served as {:?}", skill.uri);
            report("skill-name", problem, "let its address end in the name in its front matter");
        }
        if !super::is_uri(&skill.uri) {
            report(
                "skill-uri",
                format!("{:?} is not an absolute URI", skill.uri),
                "write it such as skill://team/name",
            );
        }
        if skill.said("description").is_none() {
            let remedy = "write `description:` into the front matter of its SKILL.md";
            report("skill-description", format!("the skill {name:?} has no description"), remedy);
        }
        if !skill.files.iter().any(|file| file.path == SKILL_FILE) {
            report(
                "skill-file",
                format!("the skill {name:?} has no {SKILL_FILE}"),
                "add one at the root of its folder",
            );
        }
        if let Some(file) = skill.files.iter().find(|file| !is_path(&file.path)) {
            let remedy = "name its files relative to its folder";
            report("skill-path", format!("{:?} is not a path within the skill {name:?}", file.path), remedy);
        }
        let bytes: usize = skill.files.iter().map(|file| file.bytes.len()).sum();
        if skill.files.len() > SKILL_FILES || bytes > SKILL_BYTES {
            let count = skill.files.len();
            let problem = format!("the skill {name:?} has {count} files of {bytes} bytes");
            report("skill-size", problem, "keep it within 512 files and 16 MiB, which every host must take");
        }
        let mut files = skill.files.iter().map(|file| skill.locate(&file.path));
        if let Some(uri) = files.find(|uri| resources.contains_key(uri)) {
            problems.push(super::twice(Place::Skill(index), "", "resource-uri-unique", "resources", &uri));
        }
        if parts.iter().take(index).any(|earlier| earlier.uri == skill.uri) {
            problems.push(super::twice(Place::Skill(index), "", "skill-unique", "skills", &skill.uri));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(uri: &str, name: &str, files: &[&str]) -> SkillParts {
        let frontmatter = object([("name", Some(text(name))), ("description", Some(text("d")))]);
        let file = |path: &&str| SkillFile { path: (*path).to_owned(), mime_type: None, bytes: "x".into() };
        SkillParts { uri: uri.to_owned(), frontmatter, files: files.iter().map(file).collect() }
    }

    fn children(skills: &Skills, uri: &str) -> Vec<String> {
        let uri_of = |child: &&Json| child.get("uri").and_then(Json::as_str).unwrap().to_owned();
        skills.folder(uri).unwrap().iter().map(uri_of).collect()
    }

    #[test]
    fn every_folder_of_a_skill_lists_what_is_directly_in_it() {
        let files = ["SKILL.md", "a/b/one.md", "a/b/two words.md", "a/top.md", "z.md"];
        let skills = Skills::of(&[skill("skill://t/s", "s", &files)]);
        assert_eq!(children(&skills, "skill://t/s"), ["skill://t/s/SKILL.md", "skill://t/s/a", "skill://t/s/z.md"]);
        assert_eq!(children(&skills, "skill://t/s/a"), ["skill://t/s/a/b", "skill://t/s/a/top.md"]);
        assert_eq!(children(&skills, "skill://t/s/a/b"), ["skill://t/s/a/b/one.md", "skill://t/s/a/b/two%20words.md"]);
        let within = skill("skill://t/s/in", "in", &["SKILL.md"]);
        let around = skill("skill://t/s", "s", &["SKILL.md", "in/SKILL.md"]);
        for both in [[&within, &around], [&around, &within]] {
            let skills = Skills::of(&both.map(Clone::clone));
            assert_eq!(children(&skills, "skill://t/s"), ["skill://t/s/SKILL.md", "skill://t/s/in"]);
        }
        assert!(skills.folder("skill://t").is_none(), "what is above a skill is not listed");
        assert!(skills.folder("skill://t/s/z.md").is_none());
        assert!(skills.file("skill://t/s/a/b/two%20words.md").is_some());
    }

    #[test]
    fn a_skill_that_no_host_could_load_is_refused() {
        let resources = HashMap::from([("skill://taken/a.md".to_owned(), 0)]);
        let rules = |parts: &[SkillParts]| {
            let mut problems = Vec::new();
            check(parts, &resources, &mut problems);
            problems.into_iter().map(|problem| problem.rule).collect::<Vec<_>>()
        };
        assert!(rules(&[skill("skill://s", "s", &["SKILL.md"])]).is_empty());
        for (uri, name, files, rule) in [
            ("skill://s", "t", &["SKILL.md"][..], "skill-name"),
            ("skill://S", "S", &["SKILL.md"], "skill-name"),
            ("skill://a--b", "a--b", &["SKILL.md"], "skill-name"),
            ("s", "s", &["SKILL.md"], "skill-uri"),
            ("skill://s", "s", &["x.md"], "skill-file"),
            ("skill://s", "s", &["SKILL.md", "../x"], "skill-path"),
            ("skill://taken", "taken", &["SKILL.md", "a.md"], "resource-uri-unique"),
        ] {
            assert_eq!(rules(&[skill(uri, name, files)]), [rule], "{uri} {name} {files:?}");
        }
        let same = || skill("skill://s", "s", &["SKILL.md"]);
        assert_eq!(rules(&[same(), same()]), ["skill-unique"]);
    }
}
