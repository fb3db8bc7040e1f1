//! A published, immutable set of tools, resources and prompts, with every listing encoded once.
//!
//! Promises: a catalog that exists is valid: names, addresses, schemas, header annotations and
//! numbers were checked, validators are compiled, listings and handshakes are bytes. Both eras
//! receive byte-identical definitions, except for a tool that declares itself divergent.

mod definition;
mod encoded;
mod parts;
mod served;
mod skills;
mod tool;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use self::encoded::Encoded;
pub use self::encoded::{List, Page};
pub use self::parts::{
    Annotations, CacheHints, CacheScope, CatalogParts, Completes, DEFAULT_DIGEST_KEY, Icon, Identity, PromptArgument,
    PromptParts, ResourceParts, TaskSupport, TemplateParts, ToolParts,
};
use self::served::Served;
use self::skills::Skills;
pub use self::skills::{SKILL_FILE, SkillFile, SkillParts};
pub use self::tool::{Tool, ToolName, is_scope};
use super::content::ResourceContents;
use super::digest::Digest;
use super::json::Json;
use super::revision::{Offer, Revision};
use super::uri_template::UriTemplate;

/// Which part a problem is in, by its position among its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The catalog itself.
    Catalog,
    /// A tool.
    Tool(usize),
    /// A resource.
    Resource(usize),
    /// A resource template.
    Template(usize),
    /// A prompt.
    Prompt(usize),
    /// A skill.
    Skill(usize),
}

/// One thing that keeps a set of parts from being a catalog.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{problem}: {remedy}")]
pub struct CatalogError {
    /// Where.
    pub place: Place,
    /// JSON pointer into the definition, such as `/inputSchema/properties/path`; empty for the whole.
    pub pointer: String,
    /// Short name of the rule that was broken.
    pub rule: &'static str,
    /// What is wrong.
    pub problem: String,
    /// How to mend it.
    pub remedy: String,
}

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The resource of that position.
    Resource(usize),
    /// What a template stands for.
    Template {
        /// The template's position.
        index: usize,
        /// Its variables' values, decoded.
        variables: Vec<(String, String)>,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Catalog {
    tools: Vec<Tool>,
    by_name: HashMap<ToolName, usize>,
    resources: Vec<ResourceParts>,
    by_uri: HashMap<String, usize>,
    templates: Vec<(TemplateParts, UriTemplate)>,
    prompts: Vec<PromptParts>,
    skills: Skills,
    offer: Offer,
    page: usize,
    served: Served,
    cache: CacheScope,
    encoded: Encoded,
    identity: Identity,
    behind: Option<Arc<dyn Any + Send + Sync>>,
}

impl Catalog {
    /// Checks the parts and encodes all that will be sent. Gives every problem at once.
    pub fn build(parts: CatalogParts) -> Result<Self, Vec<CatalogError>> {
        let mut problems = Vec::new();
        check_digest_key(&parts.digest_key, &mut problems);
        let mut tools = Vec::new();
        let mut by_name = HashMap::new();
        for (index, tool) in parts.tools.iter().enumerate() {
            let before = problems.len();
            let built = tool::build(index, tool, &mut problems);
            if let Some(built) = built.filter(|_| problems.len() == before) {
                if by_name.insert(built.name.clone(), index).is_some() {
                    problems.push(twice(Place::Tool(index), "/name", "tool-name-unique", "tools", &tool.name));
                }
                tools.push(built);
            }
        }
        let by_uri = check_resources(&parts.resources, &mut problems);
        let templates = check_templates(&parts.templates, &mut problems);
        check_prompts(&parts.prompts, &mut problems);
        skills::check(&parts.skills, &by_uri, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let served = Served::of(&parts);
        let encoded = Encoded::of(&parts, served);
        Ok(Self {
            tools,
            by_name,
            by_uri,
            templates: parts.templates.into_iter().zip(templates).collect(),
            resources: parts.resources,
            prompts: parts.prompts,
            skills: Skills::of(&parts.skills),
            offer: parts.offer,
            page: parts.page.max(1),
            served,
            cache: parts.cache.scope,
            encoded,
            identity: parts.identity,
            behind: None,
        })
    }

    /// The same catalog with what carries out its calls: published together, dropped when the last call on it ends.
    /// It must not hold the catalog.
    #[must_use]
    pub fn with_behind<T: Any + Send + Sync>(mut self, behind: T) -> Self {
        self.behind = Some(Arc::new(behind));
        self
    }

    /// What is behind it, if it is a `T`.
    pub fn behind<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.behind.as_ref()?).downcast().ok()
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(&ToolName::new(name)?).and_then(|index| self.tools.get(*index))
    }

    /// All tools, in their order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// All resources, in their order.
    pub fn resources(&self) -> &[ResourceParts] {
        &self.resources
    }

    /// All resource templates, in their order.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = &TemplateParts> {
        self.templates.iter().map(|(parts, _)| parts)
    }

    /// All prompts, in their order.
    pub fn prompts(&self) -> &[PromptParts] {
        &self.prompts
    }

    /// The prompt of that name.
    pub fn prompt(&self, name: &str) -> Option<&PromptParts> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }

    /// The template of exactly that text.
    pub fn template(&self, uri_template: &str) -> Option<&TemplateParts> {
        self.templates().find(|template| template.uri_template == uri_template)
    }

    /// What a URI names: the resource of exactly that URI, else the first template that matches.
    pub fn find(&self, uri: &str) -> Option<Found> {
        if let Some(index) = self.by_uri.get(uri) {
            return Some(Found::Resource(*index));
        }
        let mut matching = self.templates.iter().enumerate();
        matching.find_map(|(index, (_, template))| {
            template.matched(uri).map(|variables| Found::Template { index, variables })
        })
    }

    /// Which eras are offered.
    pub fn offer(&self) -> Offer {
        self.offer
    }

    /// Whether calls may log to their client.
    pub fn logs(&self) -> bool {
        self.served.logs
    }

    /// Whether there are resources, templates or skills.
    pub fn has_resources(&self) -> bool {
        self.served.resources
    }

    /// Whether there are skills.
    pub fn has_skills(&self) -> bool {
        self.served.skills
    }

    /// Whether a URI can be read, and so subscribed to.
    pub fn names(&self, uri: &str) -> bool {
        self.skill_file(uri).is_some() || self.find(uri).is_some()
    }

    /// The URIs of the skills' `SKILL.md`, in order.
    pub fn skills(&self) -> impl Iterator<Item = &str> {
        self.skills.uris()
    }

    /// A file of a skill.
    pub fn skill_file(&self, uri: &str) -> Option<&ResourceContents> {
        self.skills.file(uri)
    }

    /// The entry of the skill whose `SKILL.md` has that URI.
    pub(super) fn skill(&self, uri: &str) -> Option<&Json> {
        self.skills.entry(uri)
    }

    /// What is directly in a folder of a skill.
    pub(super) fn skill_folder(&self, uri: &str) -> Option<Vec<&Json>> {
        self.skills.folder(uri)
    }

    /// Most definitions on one page.
    pub(super) fn page_size(&self) -> usize {
        self.page
    }

    /// Whether any argument of a prompt or variable of a template can be completed.
    pub fn completes(&self) -> bool {
        self.served.completions
    }

    /// Whether any tool's call may become a task.
    pub fn has_tasks(&self) -> bool {
        self.served.tasks
    }

    /// Whether a client may list its tasks.
    pub fn lists_tasks(&self) -> bool {
        self.served.task_list
    }

    /// Who it says it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The definitions of the tools as peers of a revision receive them.
    pub fn definitions(&self, revision: Revision) -> Vec<Json> {
        let pages = &self.encoded.of_revision(revision).list(List::Tools).pages;
        pages.iter().flat_map(|page| page.definitions(List::Tools)).collect()
    }

    /// The digest of the tools as peers of a revision receive them; the same for all unless a tool is divergent.
    pub fn digest(&self, revision: Revision) -> Digest {
        self.encoded.of_revision(revision).digest
    }

    /// Whether another catalog lists the same, to peers of every revision.
    pub fn same_list(&self, other: &Self, list: List) -> bool {
        let definitions = |catalog: &Self, revision| catalog.encoded.of_revision(revision).list(list).definitions;
        Revision::ALL.into_iter().all(|revision| definitions(self, revision) == definitions(other, revision))
    }

    /// How many bytes the tools take as peers of the modern revision receive them.
    pub fn tool_list_bytes(&self) -> usize {
        let pages = &self.encoded.of_revision(Revision::MODERN).list(List::Tools).pages;
        pages.iter().map(|page| page.result(String::new).len()).sum()
    }

    /// The digest of a whole list, its other members included.
    pub(super) fn list_digest(&self, list: List, revision: Revision) -> Digest {
        self.encoded.of_revision(revision).list(list).digest
    }

    /// A page of a list, counted from 0; `None` past the end.
    pub(super) fn page(&self, list: List, revision: Revision, number: usize) -> Option<&Page> {
        self.encoded.of_revision(revision).list(list).pages.get(number)
    }

    /// The result of `initialize` for a legacy revision, of `server/discover` for a modern one. Without a way back
    /// to the client, nothing is promised that needs one.
    pub(super) fn opening(&self, revision: Revision, way_back: bool) -> Bytes {
        let encoded = self.encoded.of_revision(revision);
        if way_back { encoded.opening.clone() } else { encoded.opening_one_way.clone() }
    }

    /// The `_meta` object of every modern result.
    pub(super) fn identity_meta(&self) -> &Bytes {
        &self.encoded.identity_meta
    }

    /// The same as a value, for a result that is put together as one.
    pub(super) fn identity_value(&self) -> Value {
        serde_json::from_slice(self.identity_meta()).unwrap_or_default()
    }

    /// Who is told to keep what is listed.
    pub fn cache_scope(&self) -> CacheScope {
        self.cache
    }

    /// The end of a result that may be cached, from `ttlMs` on, for a revision that has such hints.
    pub(super) fn cache_hints(&self) -> &Bytes {
        &self.encoded.cache_hints
    }
}

/// The `_meta` key of the server's identity (2026-07-28 basic, General Fields).
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The identifier of the skills extension.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn twice(place: Place, pointer: &str, rule: &'static str, things: &str, name: &str) -> CatalogError {
    CatalogError {
        place,
        pointer: pointer.to_owned(),
        rule,
        problem: format!("two {things} are named {name:?}"),
        remedy: "give each its own name".to_owned(),
    }
}

/// An absolute URI (RFC 3986), since it is compared as text and resolved against nothing.
fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        && text.len() > scheme.len() + 1
        && text.bytes().all(allowed)
}

fn check_resources(resources: &[ResourceParts], problems: &mut Vec<CatalogError>) -> HashMap<String, usize> {
    let mut by_uri = HashMap::new();
    for (index, resource) in resources.iter().enumerate() {
        let place = Place::Resource(index);
        if !is_uri(&resource.uri) {
            problems.push(CatalogError {
                place,
                pointer: "/uri".to_owned(),
                rule: "resource-uri",
                problem: format!("{:?} is not an absolute URI", resource.uri),
                remedy: "write a scheme, a colon and ASCII without blanks, others as %XX, such as `notes:today`"
                    .to_owned(),
            });
        }
        if by_uri.insert(resource.uri.clone(), index).is_some() {
            problems.push(twice(place, "/uri", "resource-uri-unique", "resources", &resource.uri));
        }
    }
    by_uri
}

fn check_templates(templates: &[TemplateParts], problems: &mut Vec<CatalogError>) -> Vec<UriTemplate> {
    let mut parsed = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        let mut report = |problem: String| {
            problems.push(CatalogError {
                place: Place::Template(index),
                pointer: "/uriTemplate".to_owned(),
                rule: "uri-template",
                problem,
                remedy: "write literals and variables, such as `notes:{day}`".to_owned(),
            });
        };
        match UriTemplate::parse(&template.uri_template) {
            Ok(read) if is_uri(&read.expand(|_| Some("x".to_owned())).unwrap_or_default()) => parsed.push(read),
            Ok(_) => report(format!("{:?} never makes an absolute URI", template.uri_template)),
            Err(bad) => report(format!("{:?}: {bad}", template.uri_template)),
        }
        if templates.iter().take(index).any(|earlier| earlier.uri_template == template.uri_template) {
            let place = Place::Template(index);
            problems.push(twice(place, "/uriTemplate", "uri-template-unique", "templates", &template.uri_template));
        }
    }
    parsed
}

fn check_prompts(prompts: &[PromptParts], problems: &mut Vec<CatalogError>) {
    for (index, prompt) in prompts.iter().enumerate() {
        let place = Place::Prompt(index);
        if ToolName::new(&prompt.name).is_none() {
            problems.push(CatalogError {
                place,
                pointer: "/name".to_owned(),
                rule: "prompt-name",
                problem: format!("{:?} is not a prompt name", prompt.name),
                remedy: "use 1 to 64 of A-Z a-z 0-9 _ . -".to_owned(),
            });
        }
        if prompts.iter().take(index).any(|earlier| earlier.name == prompt.name) {
            problems.push(twice(place, "/name", "prompt-name-unique", "prompts", &prompt.name));
        }
        for (position, argument) in prompt.arguments.iter().enumerate() {
            if prompt.arguments.iter().take(position).any(|earlier| earlier.name == argument.name) {
                let pointer = format!("/arguments/{position}");
                problems.push(twice(place, &pointer, "prompt-argument-unique", "arguments", &argument.name));
            }
        }
    }
}

/// 2025-11-25 basic, `_meta`: an optional dotted prefix whose labels start with a letter, then a name.
fn check_digest_key(key: &str, problems: &mut Vec<CatalogError>) {
    let label = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let problem = match key.split_once('/') {
        None => Some("it has no prefix"),
        Some((prefix, rest)) if prefix.split('.').count() < 2 || !prefix.split('.').all(label) || !name(rest) => {
            Some("it is not a dotted prefix, a slash and a name")
        }
        Some((prefix, _)) if prefix.split('.').any(|l| matches!(l, "modelcontextprotocol" | "mcp")) => {
            Some("its prefix is reserved by the protocol")
        }
        Some(_) => None,
    };
    if let Some(why) = problem {
        problems.push(CatalogError {
            place: Place::Catalog,
            pointer: "/digest_key".to_owned(),
            rule: "digest-key",
            problem: format!("{key:?} cannot name the digest: {why}"),
            remedy: format!("use a reverse-DNS name of your own, such as {DEFAULT_DIGEST_KEY:?}"),
        });
    }
}
