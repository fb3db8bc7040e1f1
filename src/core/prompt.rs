//! What prompts come to.
//!
//! Promises: a value is data: it is never read as a template, nor as a path; a prompt's files lie
//! beneath the declared root; all of it together is bounded. An argument that does not fit, and a
//! resource that is not there, are the caller's to change; a file that is not there is the
//! operator's. Used by the router.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;

use super::backend::defect;
use super::fill::{self, TooLong, among};
use super::outgoing::Outgoing;
use super::resource::{Resources, Unreadable, open_and_read};
use crate::protocol::json::shortened;
use crate::protocol::schema::{self, Schema};
use crate::protocol::{
    Block, Body, Caller, Catalog, Content, Found, Outcome, PromptMessage, Prompted, ResourceContents, ResourceLink,
};
use crate::surface::declaration::{DeclaredMessage, DeclaredPrompt, PROMPT_BYTES, Said, Template, encoded, type_of};

/// Most bytes of a prompt's files and resources together.
const SHOWN_BYTES: usize = 8 * 1024 * 1024;
/// Most bytes of one picture or sound.
const MEDIA_BYTES: usize = 4 * 1024 * 1024;

/// The prompts of one surface.
#[derive(Debug, Default)]
pub struct Prompts(HashMap<String, Prompt>);

#[derive(Debug)]
struct Prompt {
    declared: DeclaredPrompt,
    /// `None` where there is nothing to check.
    schema: Option<Schema>,
}

/// Why a prompt does not come about, as it is answered.
type Ended = Box<Outcome>;

impl Prompts {
    /// Takes what was declared.
    pub fn new(prompts: Vec<DeclaredPrompt>) -> Self {
        let prompt = |declared: DeclaredPrompt| {
            // Checked when the surface was loaded.
            let schema = declared.schema.get("properties").and_then(|_| Schema::compile(&declared.schema).ok());
            (declared.name.clone(), Prompt { declared, schema })
        };
        Self(prompts.into_iter().map(prompt).collect())
    }

    /// What a prompt comes to with these arguments.
    pub async fn say(
        &self,
        name: &str,
        arguments: &[(Box<str>, String)],
        resources: &Resources,
        catalog: &Catalog,
        caller: &dyn Caller,
    ) -> Outcome {
        let Some(prompt) = self.0.get(name) else {
            return defect(&format!("the prompt {name} is published but has no backend"));
        };
        let values: Vec<(String, String)> = arguments.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
        let given = serde_json::Map::from_iter(values.iter().map(|(k, v)| (k.clone(), v.clone().into())));
        let violations = prompt.schema.as_ref().map(|schema| schema.violations(&given.into())).unwrap_or_default();
        if !violations.is_empty() {
            let explained = schema::explain("the arguments", &violations);
            return Outcome::Refused(format!("the arguments of {name} do not fit:\n{explained}"));
        }
        let defaults = prompt.declared.defaults.iter().filter(|(name, _)| among(&values, name).is_none());
        let values = values.iter().chain(defaults).cloned().collect();
        let telling = Telling { prompt: &prompt.declared, values, resources, catalog, caller };
        match telling.messages().await {
            Ok(messages) => Outcome::Prompted(Prompted { description: prompt.declared.description.clone(), messages }),
            Err(ended) => *ended,
        }
    }
}

/// One prompt that is being put together.
struct Telling<'p> {
    prompt: &'p DeclaredPrompt,
    values: Vec<(String, String)>,
    resources: &'p Resources,
    catalog: &'p Catalog,
    caller: &'p dyn Caller,
}

impl Telling<'_> {
    async fn messages(&self) -> Result<Vec<PromptMessage>, Ended> {
        let mut messages = Vec::new();
        let (mut text_left, mut shown_left) = (PROMPT_BYTES, SHOWN_BYTES);
        for DeclaredMessage { role, said } in &self.prompt.messages {
            let blocks = match said {
                Said::Text(template) => vec![Block::text(self.text(template, &mut text_left)?)],
                Said::File(path) => {
                    let template = self.template(path).await?;
                    vec![Block::text(self.text(&template, &mut text_left)?)]
                }
                Said::Resource(uri) => self.resource(uri).await?.into_iter().map(Block::resource).collect(),
                Said::Link(uri) => vec![Block::link(self.link(uri)?)],
                Said::Image(path) => {
                    let (data, mime_type) = self.media(path).await?;
                    vec![Block::image(data, mime_type)]
                }
                Said::Audio(path) => {
                    let (data, mime_type) = self.media(path).await?;
                    vec![Block::audio(data, mime_type)]
                }
            };
            for block in blocks {
                take(&mut shown_left, size(&block))?;
                messages.push(PromptMessage { role: *role, block });
            }
        }
        Ok(messages)
    }

    fn text(&self, template: &Template, left: &mut usize) -> Result<String, Ended> {
        let filled = fill::fill(template, *left, |name| among(&self.values, name));
        let text = filled.map_err(|TooLong| too_long(PROMPT_BYTES))?;
        take(left, text.len())?;
        Ok(Outgoing::clean(text.as_bytes(), usize::MAX).text)
    }

    /// The text of a file, which has placeholders too.
    async fn template(&self, path: &Path) -> Result<Template, Ended> {
        let bytes = self.file(path, PROMPT_BYTES).await?;
        let defective =
            |problem: &str| Box::new(defect(&format!("the file of prompt {}: {problem}", self.prompt.name)));
        let text = std::str::from_utf8(&bytes).map_err(|_| defective("it is not UTF-8"))?;
        Template::parse(text).map_err(|problem| defective(&problem))
    }

    async fn media(&self, path: &Path) -> Result<(Bytes, String), Ended> {
        let bytes = self.file(path, MEDIA_BYTES).await?;
        let mime_type = path.to_str().and_then(type_of);
        Ok((bytes, mime_type.unwrap_or_else(|| "application/octet-stream".to_owned())))
    }

    /// A file of the prompt's own. That it is not there is no fault of the caller.
    async fn file(&self, path: &Path, cap: usize) -> Result<Bytes, Ended> {
        let Some(path) = path.to_str().map(str::to_owned) else { return Err(Box::new(defect("a path is not UTF-8"))) };
        let (root, name) = (self.prompt.root.clone(), path.clone());
        match tokio::task::spawn_blocking(move || open_and_read(&root, &path, cap)).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(why @ (Unreadable::Absent | Unreadable::Refused(_)))) => {
                tracing::warn!(prompt = %self.prompt.name, path = name, "not read: {why}");
                let text = "a file of this prompt cannot be read: the operator's log has the cause";
                Err(Box::new(Outcome::Failed(Content::text(text))))
            }
            Ok(Err(why)) => Err(Box::new(why.outcome(&name))),
            Err(_) => Err(Box::new(defect("a file could not be looked at"))),
        }
    }

    /// The address, with values in it as data: whatever they hold, they end no part of it but by a slash.
    fn find(&self, uri: &Template) -> Result<(String, Found), Ended> {
        let value = |name: &str| among(&self.values, name).map(|value| Cow::Owned(encoded(&value)));
        let uri = fill::fill(uri, PROMPT_BYTES, value).map_err(|TooLong| too_long(PROMPT_BYTES))?;
        match self.catalog.find(&uri) {
            Some(found) => Ok((uri, found)),
            None => Err(no_resource(&uri)),
        }
    }

    async fn resource(&self, uri: &Template) -> Result<Vec<ResourceContents>, Ended> {
        let (uri, found) = self.find(uri)?;
        match self.resources.read(&uri, &found, self.catalog, self.caller).await {
            Outcome::Read(contents) => Ok(contents),
            Outcome::NotFound => Err(no_resource(&uri)),
            outcome => Err(Box::new(outcome)),
        }
    }

    fn link(&self, uri: &Template) -> Result<ResourceLink, Ended> {
        let (uri, found) = self.find(uri)?;
        let link = match found {
            Found::Resource(index) => self.catalog.resources().get(index).map(|published| ResourceLink {
                name: published.name.clone(),
                title: published.title.clone(),
                description: published.description.clone(),
                mime_type: published.mime_type.clone(),
                size: published.size,
                ..ResourceLink::default()
            }),
            Found::Template { index, .. } => self.catalog.templates().nth(index).map(|published| ResourceLink {
                name: published.name.clone(),
                mime_type: published.mime_type.clone(),
                ..ResourceLink::default()
            }),
        };
        Ok(ResourceLink { uri, ..link.unwrap_or_default() })
    }
}

fn take(left: &mut usize, bytes: usize) -> Result<(), Ended> {
    *left = left.checked_sub(bytes).ok_or_else(|| too_long(SHOWN_BYTES))?;
    Ok(())
}

fn size(block: &Block) -> usize {
    use crate::protocol::Piece;
    match &block.piece {
        // Counted as text.
        Piece::Text(_) | Piece::Link(_) => 0,
        Piece::Image { data, .. } | Piece::Audio { data, .. } => data.len(),
        Piece::Resource(contents) => match &contents.body {
            Body::Text(text) => text.len(),
            Body::Blob(bytes) => bytes.len(),
        },
    }
}

fn too_long(most: usize) -> Ended {
    Box::new(Outcome::Refused(format!("the prompt would be longer than {most} bytes: give shorter arguments")))
}

fn no_resource(uri: &str) -> Ended {
    Box::new(Outcome::Refused(format!("there is no resource {}: give another argument", shortened(uri, 200))))
}
