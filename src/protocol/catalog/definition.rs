//! Definitions as they are listed: whole for every revision, except where a tool is divergent.

use super::parts::{
    Annotations, Icon, Identity, PromptArgument, PromptParts, ResourceParts, TaskSupport, TemplateParts, ToolParts,
};
use crate::protocol::content::{object, text};
use crate::protocol::json::Json;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::schema;

fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Json {
    Json::Array(texts.into_iter().map(|t| text(t)).collect())
}

fn icons(icons: &[Icon]) -> Option<Json> {
    let icon = |icon: &Icon| {
        object([
            ("src", Some(text(&icon.src))),
            ("mimeType", icon.mime_type.as_deref().map(text)),
            ("sizes", (!icon.sizes.is_empty()).then(|| texts(&icon.sizes))),
            ("theme", icon.theme.as_deref().map(text)),
        ])
    };
    (!icons.is_empty()).then(|| Json::Array(icons.iter().map(icon).collect()))
}

/// The server's identity, as far as a revision has it.
pub(super) fn identity(identity: &Identity, revision: Revision) -> Json {
    let rules = revision.rules();
    let detail = |value: &Option<String>| value.as_deref().filter(|_| rules.identity_details).map(text);
    object([
        ("name", Some(text(&identity.name))),
        ("version", Some(text(&identity.version))),
        ("title", identity.title.as_deref().filter(|_| rules.identity_title).map(text)),
        ("description", detail(&identity.description)),
        ("websiteUrl", detail(&identity.website)),
        ("icons", icons(&identity.icons).filter(|_| rules.identity_details)),
    ])
}

/// A tool.
pub(super) fn tool(parts: &ToolParts, revision: Revision) -> Json {
    let rewrite = parts.divergent && revision.era() == Era::Legacy;
    let schema = |schema: &Json| if rewrite { schema::without_boolean_subschemas(schema) } else { schema.clone() };
    let output =
        parts.output_schema.as_ref().filter(|s| !rewrite || revision.rules().any_output_root || !root_is_not_object(s));
    let support = match parts.task {
        TaskSupport::Forbidden => None,
        TaskSupport::Optional => Some("optional"),
        TaskSupport::Required => Some("required"),
    };
    object([
        ("name", Some(text(&parts.name))),
        ("title", parts.title.as_deref().map(text)),
        ("description", parts.description.as_deref().map(text)),
        ("inputSchema", Some(schema(&parts.input_schema))),
        ("outputSchema", output.map(schema)),
        ("annotations", annotations(&parts.annotations)),
        ("icons", icons(&parts.icons)),
        ("execution", support.map(|support| object([("taskSupport", Some(text(support)))]))),
        ("_meta", parts.meta.clone()),
    ])
}

/// Whether a schema's root is declared anything but an object.
pub(super) fn root_is_not_object(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) != Some("object")
}

fn annotations(hints: &Annotations) -> Option<Json> {
    let members = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ];
    let said: Vec<_> = members.into_iter().filter_map(|(k, v)| Some((k.to_owned(), Json::Bool(v?)))).collect();
    (!said.is_empty()).then_some(Json::Object(said))
}

/// A resource.
pub(super) fn resource(parts: &ResourceParts) -> Json {
    object([
        ("uri", Some(text(&parts.uri))),
        ("name", Some(text(&parts.name))),
        ("title", parts.title.as_deref().map(text)),
        ("description", parts.description.as_deref().map(text)),
        ("mimeType", parts.mime_type.as_deref().map(text)),
        ("size", parts.size.map(|size| Json::Number(size.to_string().into()))),
        ("annotations", parts.audience.to_json()),
        ("icons", icons(&parts.icons)),
        ("_meta", parts.meta.clone()),
    ])
}

/// A resource template.
pub(super) fn template(parts: &TemplateParts) -> Json {
    object([
        ("uriTemplate", Some(text(&parts.uri_template))),
        ("name", Some(text(&parts.name))),
        ("title", parts.title.as_deref().map(text)),
        ("description", parts.description.as_deref().map(text)),
        ("mimeType", parts.mime_type.as_deref().map(text)),
        ("annotations", parts.audience.to_json()),
        ("icons", icons(&parts.icons)),
        ("_meta", parts.meta.clone()),
    ])
}

/// A prompt.
pub(super) fn prompt(parts: &PromptParts) -> Json {
    let argument = |argument: &PromptArgument| {
        object([
            ("name", Some(text(&argument.name))),
            ("title", argument.title.as_deref().map(text)),
            ("description", argument.description.as_deref().map(text)),
            ("required", argument.required.then_some(Json::Bool(true))),
        ])
    };
    let arguments = || Json::Array(parts.arguments.iter().map(argument).collect());
    object([
        ("name", Some(text(&parts.name))),
        ("title", parts.title.as_deref().map(text)),
        ("description", parts.description.as_deref().map(text)),
        ("arguments", (!parts.arguments.is_empty()).then(arguments)),
        ("icons", icons(&parts.icons)),
        ("_meta", parts.meta.clone()),
    ])
}
