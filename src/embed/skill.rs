//! Skills: folders of files that teach a model (the skills extension, SEP-2640).

use bytes::Bytes;
use serde_json::Value;

use crate::protocol::catalog::SKILL_FILE;
use crate::protocol::{Json, SkillFile, SkillParts};

/// A skill: instructions for a model, with files beside them. They are served as resources.
///
/// ```
/// use twodoor::embed::Skill;
///
/// let skill = Skill::new("skill://shop/refunds", "How to refund an order.", "1. Find the order.\n2. Refund it.\n")
///     .file("forms/letter.txt", "text/plain", "Dear customer,\n");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    uri: String,
    front: Vec<(String, Json)>,
    instructions: String,
    files: Vec<SkillFile>,
}

impl Skill {
    /// A skill under the URI of its folder, whose last part is its name; what it is for; and what it teaches, in Markdown.
    pub fn new(uri: impl Into<String>, description: impl Into<String>, instructions: impl Into<String>) -> Self {
        let uri = uri.into();
        let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
        let front =
            vec![("name".to_owned(), Json::String(name)), ("description".to_owned(), Json::String(description.into()))];
        Self { uri, front, instructions: instructions.into(), files: Vec::new() }
    }

    /// One more entry of its front matter, such as `license`; another `description` takes the place of the first.
    #[must_use]
    pub fn front_matter(mut self, key: impl Into<String>, value: &Value) -> Self {
        let key = key.into();
        self.front.retain(|(known, _)| *known != key);
        self.front.push((key, Json::from(value)));
        self
    }

    /// A file beside its instructions, by its path in the folder.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, mime_type: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        self.files.push(SkillFile { path: path.into(), mime_type: Some(mime_type.into()), bytes: bytes.into() });
        self
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    pub(super) fn parts(&self) -> SkillParts {
        // JSON is YAML (YAML 1.2, 1.3).
        let line = |(key, value): &(String, Json)| format!("{key}: {}\n", value.to_text());
        let front: String = self.front.iter().map(line).collect();
        let text = format!("---\n{front}---\n\n{}", self.instructions);
        let first =
            SkillFile { path: SKILL_FILE.to_owned(), mime_type: Some("text/markdown".to_owned()), bytes: text.into() };
        let files = std::iter::once(first).chain(self.files.iter().cloned()).collect();
        SkillParts { uri: self.uri.clone(), frontmatter: Json::Object(self.front.clone()), files }
    }
}
