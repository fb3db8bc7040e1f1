//! What the catalog is built of, from a surface file.
//!
//! Promises: where something is missing, which was reported, a stand-in keeps the catalog's own
//! checks going; every part can be told its place in the file. A folder becomes the files in it,
//! and a template of all that will be in it.

use super::arguments::ArgumentEntry;
use super::builtin::Builtin;
use super::file::{KindEntry, PromptEntry, ResourceEntry, SourceEntry, SurfaceFile, ToolEntry};
use super::listing::Listing;
use super::manifest::CapabilityKind;
use super::resolve::{Resolved, ResolvedPath};
use super::source::At;
use super::{address, media};
use crate::protocol::{
    Annotations, CacheHints, CacheScope, CatalogParts, Completes, PromptArgument, PromptParts, ResourceParts,
    TemplateParts, ToolParts,
};

/// What is published, and which entries of the file it came from.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) parts: CatalogParts,
    /// The entry behind each resource.
    pub(crate) resources: Vec<usize>,
    /// The entry behind each template of a folder; these stand behind all others.
    pub(crate) folders: Vec<usize>,
}

/// What the catalog is built of.
pub(crate) fn of(file: &SurfaceFile<'_>, resolved: &Resolved) -> Published {
    let text = |at: &Option<At<String>>| at.as_ref().map(|at| at.value.clone());
    let ttl_ms = file.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let mut parts = CatalogParts::new(text(&file.name).unwrap_or_default(), text(&file.version).unwrap_or_default());
    parts.identity.title = text(&file.title);
    parts.identity.description = text(&file.description);
    parts.identity.website = text(&file.website);
    parts.identity.icons.clone_from(&file.icons);
    parts.instructions = text(&file.instructions);
    if let Some(key) = text(&file.digest_key) {
        parts.digest_key = key;
    }
    parts.cache = CacheHints { ttl_ms, scope: CacheScope::Private };
    parts.tools = file.tools.iter().map(tool_parts).collect();
    parts.logging = file.tools.iter().any(|tool| tool.backend.talk);
    parts.templates = file.templates.iter().map(template_parts).collect();
    parts.prompts = file.prompts.iter().map(prompt_parts).collect();
    parts.skills = resolved.skills.iter().flatten().flatten().map(|(_, skill)| skill.clone()).collect();
    let mut published = Published { parts, resources: Vec::new(), folders: Vec::new() };
    let surface = text(&file.name).unwrap_or_default();
    let backends = resolved.backends.iter().skip(file.tools.len());
    for ((index, resource), backend) in file.resources.iter().enumerate().zip(backends) {
        add(index, resource, listing(&backend.paths), &surface, &mut published);
    }
    published
}

/// The files of a folder, where that was found.
pub(crate) fn listing(paths: &[ResolvedPath]) -> &[String] {
    match paths.first() {
        Some(ResolvedPath::Folder(Listing { files, .. })) => files,
        _ => &[],
    }
}

/// The address of a resource. One that can have none, which was reported, has one that nobody sees.
pub(crate) fn uri(resource: &ResourceEntry<'_>, surface: &str) -> String {
    match &resource.uri {
        Some(uri) => uri.value.clone(),
        None => {
            let name = &resource.name.value;
            address::of_entry(surface, name).or_else(|| address::of_entry("x", name)).unwrap_or_default()
        }
    }
}

fn add(index: usize, resource: &ResourceEntry<'_>, files: &[String], surface: &str, published: &mut Published) {
    let uri = uri(resource, surface);
    let described = &resource.described;
    let audience = resource.hints.audience();
    if !matches!(resource.source, Some(SourceEntry::Folder)) {
        published.resources.push(index);
        published.parts.resources.push(ResourceParts {
            uri,
            name: resource.name.value.clone(),
            title: described.title(),
            description: described.description(),
            mime_type: mime_type(resource),
            size: None,
            audience,
            icons: described.icons.clone(),
            meta: described.meta(),
        });
        return;
    }
    for file in files {
        published.resources.push(index);
        published.parts.resources.push(ResourceParts {
            uri: address::of_file(&uri, file),
            name: file.clone(),
            mime_type: resource.mime_type.clone().or_else(|| media::type_of(file)),
            audience: audience.clone(),
            icons: described.icons.clone(),
            ..ResourceParts::default()
        });
    }
    published.folders.push(index);
    published.parts.templates.push(TemplateParts {
        uri_template: address::of_folder(&uri),
        name: resource.name.value.clone(),
        title: described.title(),
        description: described.description(),
        mime_type: resource.mime_type.clone(),
        audience,
        icons: described.icons.clone(),
        meta: described.meta(),
        completes: vec![("path".to_owned(), Completes::Backend)],
    });
}

/// What was said, else what the name of the file tells, or the kind of output.
fn mime_type(resource: &ResourceEntry<'_>) -> Option<String> {
    let told = || match &resource.source {
        Some(SourceEntry::File(_)) => resource.backend.paths.first().and_then(|path| media::type_of(&path.path.value)),
        Some(SourceEntry::Command) => Some(super::declare::mime_type_of_output(&resource.backend).to_owned()),
        Some(SourceEntry::Text(_)) => Some("text/plain".to_owned()),
        Some(SourceEntry::Folder) | None => None,
    };
    resource.mime_type.clone().or_else(told)
}

fn template_parts(template: &ResourceEntry<'_>) -> TemplateParts {
    let completes = template.backend.input.arguments.iter().map(|argument| {
        let listed = || match &template.source {
            Some(SourceEntry::File(path)) => super::template::completed_by_folder(path) == Some(&argument.name.value),
            _ => false,
        };
        (argument.name.value.clone(), completes(argument, listed))
    });
    TemplateParts {
        uri_template: template.uri.as_ref().map(|uri| uri.value.clone()).unwrap_or_default(),
        name: template.name.value.clone(),
        title: template.described.title(),
        description: template.described.description(),
        mime_type: mime_type(template),
        audience: template.hints.audience(),
        icons: template.described.icons.clone(),
        meta: template.described.meta(),
        completes: completes.collect(),
    }
}

fn completes(argument: &ArgumentEntry, listed: impl Fn() -> bool) -> Completes {
    match argument.suggestions() {
        values if !values.is_empty() => Completes::Of(values),
        _ if listed() => Completes::Backend,
        _ => Completes::Nothing,
    }
}

fn prompt_parts(prompt: &PromptEntry<'_>) -> PromptParts {
    let arguments = prompt.backend.input.arguments.iter().map(|argument| PromptArgument {
        name: argument.name.value.clone(),
        title: argument.said("title"),
        description: argument.said("description"),
        required: argument.required,
        completes: completes(argument, || false),
    });
    PromptParts {
        name: prompt.name.value.clone(),
        title: prompt.described.title(),
        description: prompt.described.description(),
        arguments: arguments.collect(),
        icons: prompt.described.icons.clone(),
        meta: prompt.described.meta(),
    }
}

fn tool_parts(tool: &ToolEntry<'_>) -> ToolParts {
    let mut parts = ToolParts::new(tool.name.value.clone());
    parts.title = tool.described.title();
    parts.description = tool.described.description();
    parts.deadline = tool.backend.timeout;
    if let Some(KindEntry::Builtin(builtin)) = tool.kind {
        let definition = builtin.definition();
        parts.title = parts.title.or_else(|| Some(definition.title.to_owned()));
        parts.description = parts.description.or_else(|| Some(definition.description.to_owned()));
        parts.input_schema = definition.input_schema;
        parts.annotations = definition.annotations;
        parts.deadline = Some(builtin.deadline(tool.backend.timeout));
    } else {
        parts.annotations = annotations(tool);
    }
    if let Some(KindEntry::Target(target)) = &tool.kind {
        // An agent may take its time; one that is meant without being said so too.
        let builtin = match target.kind {
            Some(CapabilityKind::Tool) => Builtin::RunTool,
            _ => Builtin::RunAgent,
        };
        parts.deadline = Some(builtin.deadline(tool.backend.timeout));
    }
    if let Some(schema) = &tool.backend.input.schema {
        parts.input_schema = schema.clone();
    }
    parts.output_schema = tool.output_schema.map(|entry| entry.node.to_json());
    parts.icons.clone_from(&tool.described.icons);
    parts.meta = tool.described.meta();
    parts.divergent = tool.divergent;
    parts.task = tool.task;
    parts.scopes = tool.scopes.iter().map(|scope| scope.value.clone()).collect();
    parts
}

/// Only what was said; what only reads destroys nothing, and what is reversible neither.
fn annotations(tool: &ToolEntry<'_>) -> Annotations {
    let value = |flag: &Option<At<bool>>| flag.as_ref().map(|flag| flag.value);
    let read_only = value(&tool.read_only);
    let destructive = match read_only {
        Some(true) => Some(false),
        _ => value(&tool.reversible).map(|reversible| !reversible),
    };
    Annotations { read_only, destructive, idempotent: value(&tool.idempotent), open_world: value(&tool.open_world) }
}
