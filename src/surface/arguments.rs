//! A tool's arguments: the `args` shorthand or a whole `inputSchema`, as one schema and one list.
//!
//! Promises: the schema has its keys in the order written. An argument is optional unless it says
//! `required: true`. One that is declared badly still counts as declared, so that its placeholders
//! are not reported too.

use super::declaration::ArgumentKind;
use super::fields::Fields;
use super::lint::{argument_as, argument_name, arguments_twice, misplaced_key, missing_key, value_kind};
use super::problem::Findings;
use super::source::{At, Span};
use super::tree::{Entry, Node, Value};
use crate::protocol::Json;

/// A tool's arguments.
#[derive(Debug)]
pub(crate) struct Input<'t> {
    /// Where they are declared.
    pub(crate) origin: Origin<'t>,
    /// What is published; `None` for a tool without arguments.
    pub(crate) schema: Option<Json>,
    pub(crate) arguments: Vec<ArgumentEntry>,
}

/// Where arguments are declared.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'t> {
    Nowhere,
    Shorthand(&'t Entry),
    Schema(&'t Entry),
}

/// One argument.
#[derive(Debug)]
pub(crate) struct ArgumentEntry {
    pub(crate) name: At<String>,
    pub(crate) kind: ArgumentKind,
    pub(crate) required: bool,
    pub(crate) default: Option<At<Json>>,
    /// Its own schema.
    pub(crate) schema: Json,
    /// The header that HTTP requests mirror it in.
    pub(crate) header: Option<At<String>>,
}

/// The keys that an argument's shorthand may have.
const KEYS: &[&str] = &[
    "type",
    "title",
    "description",
    "required",
    "default",
    "as",
    "header",
    "enum",
    "const",
    "examples",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "additionalProperties",
    "deprecated",
];

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// Reads the arguments of a tool.
pub(crate) fn read<'t>(tool: &Fields<'t>, findings: &mut Findings) -> Input<'t> {
    if let (None, Some(roles)) = (tool.get("inputSchema"), tool.get("as")) {
        misplaced_key::beside_no_schema(roles, findings);
    }
    match (tool.get("args"), tool.get("inputSchema")) {
        (None, None) => Input { origin: Origin::Nowhere, schema: None, arguments: Vec::new() },
        (Some(args), schema) => {
            if schema.is_some() {
                arguments_twice::report(args, findings);
            }
            shorthand(args, findings)
        }
        (None, Some(schema)) => whole(schema, tool.get("as"), findings),
    }
}

fn shorthand<'t>(args: &'t Entry, findings: &mut Findings) -> Input<'t> {
    let Some(entries) = args.node.as_map() else {
        value_kind::report("args", &args.node, "a mapping of names to arguments", findings);
        return Input { origin: Origin::Shorthand(args), schema: None, arguments: Vec::new() };
    };
    let arguments: Vec<_> = entries.iter().map(|entry| argument(entry, findings)).collect();
    let properties = arguments.iter().map(|a| (a.name.value.clone(), a.schema.clone())).collect();
    let required: Vec<_> =
        arguments.iter().filter(|a| a.required).map(|a| Json::String(a.name.value.clone())).collect();
    let members = [
        ("type", Some(Json::String("object".to_owned()))),
        ("properties", Some(Json::Object(properties))),
        ("required", (!required.is_empty()).then_some(Json::Array(required))),
        ("additionalProperties", Some(Json::Bool(false))),
    ];
    let schema = Json::Object(members.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v?))).collect());
    Input { origin: Origin::Shorthand(args), schema: Some(schema), arguments }
}

fn argument(entry: &Entry, findings: &mut Findings) -> ArgumentEntry {
    argument_name::check(&entry.key, findings);
    let mut argument = ArgumentEntry {
        name: entry.key.clone(),
        kind: ArgumentKind::Value,
        required: false,
        default: None,
        schema: Json::Object(Vec::new()),
        header: None,
    };
    let Some(fields) = Fields::of(&entry.node, entry.key.span, "an argument", KEYS, findings) else {
        return argument;
    };
    let kind = fields.text("type", findings);
    match &kind {
        Some(kind) if !TYPES.contains(&kind.value.as_str()) => value_kind::one_of("type", kind, &TYPES, findings),
        None if fields.get("type").is_none() => {
            missing_key::report(entry.key.span, "an argument", "type", "write one, such as `type: string`", findings);
        }
        _ => {}
    }
    argument.required = fields.flag("required", findings).is_some_and(|flag| flag.value);
    argument.header = fields.text("header", findings);
    if let Some(said) = fields.text("as", findings) {
        argument.kind = argument_as::read(&said, kind.as_ref().map(|k| k.value.as_str()), findings);
    }
    argument.default = fields.get("default").map(json_at);
    let keywords = entry.node.as_map().unwrap_or_default().iter().filter_map(|Entry { key, node }| {
        let keyword = match key.value.as_str() {
            "required" | "as" => return None,
            "header" => "x-mcp-header",
            known if KEYS.contains(&known) => known,
            _ => return None,
        };
        Some((keyword.to_owned(), node.to_json()))
    });
    argument.schema = Json::Object(keywords.collect());
    argument
}

fn json_at(entry: &Entry) -> At<Json> {
    At { span: entry.node.span, value: entry.node.to_json() }
}

/// Reads a whole schema: the properties at its root are the arguments.
fn whole<'t>(schema: &'t Entry, roles: Option<&'t Entry>, findings: &mut Findings) -> Input<'t> {
    if schema.node.as_map().is_none() {
        value_kind::report("inputSchema", &schema.node, "a JSON Schema of type object", findings);
        return Input { origin: Origin::Schema(schema), schema: None, arguments: Vec::new() };
    }
    let required: Vec<&str> = schema
        .node
        .get("required")
        .and_then(|entry| entry.node.as_list())
        .unwrap_or_default()
        .iter()
        .filter_map(Node::as_text)
        .collect();
    let properties = schema.node.get("properties").and_then(|entry| entry.node.as_map()).unwrap_or_default();
    let mut arguments: Vec<_> = properties
        .iter()
        .map(|Entry { key, node }| {
            argument_name::check(key, findings);
            ArgumentEntry {
                name: key.clone(),
                kind: ArgumentKind::Value,
                required: required.contains(&key.value.as_str()),
                default: node.get("default").map(json_at),
                schema: node.to_json(),
                header: node
                    .get("x-mcp-header")
                    .and_then(|e| Some(At { span: e.node.span, value: e.node.as_text()?.to_owned() })),
            }
        })
        .collect();
    misplaced_key::check_schema(&schema.node, findings);
    if let Some(roles) = roles {
        assign_roles(roles, &mut arguments, findings);
    }
    Input { origin: Origin::Schema(schema), schema: Some(schema.node.to_json()), arguments }
}

/// Reads `as: {NAME: path}`, which stands beside a whole schema.
fn assign_roles(roles: &Entry, arguments: &mut [ArgumentEntry], findings: &mut Findings) {
    let names: Vec<String> = arguments.iter().map(|a| a.name.value.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(fields) = Fields::of(&roles.node, roles.key.span, "`as`", &names, findings) else { return };
    for argument in arguments {
        let Some(said) = fields.text(&argument.name.value, findings) else { continue };
        let kind = argument.schema.get("type").and_then(Json::as_str);
        argument.kind = argument_as::read(&said, kind, findings);
    }
}

impl Input<'_> {
    /// Where a pointer into the published `inputSchema` leads in the file.
    pub(crate) fn locate<'p>(&self, tool: Span, mut steps: impl Iterator<Item = &'p str>) -> Span {
        match self.origin {
            Origin::Nowhere => tool,
            Origin::Schema(entry) => entry.node.locate(entry.key.span, steps),
            Origin::Shorthand(args) => match steps.next() {
                Some("properties") => {
                    let steps = steps.map(|step| if step == "x-mcp-header" { "header" } else { step });
                    args.node.locate(args.key.span, steps)
                }
                _ => args.key.span,
            },
        }
    }
}

/// Whether arguments were declared in a way that could be read at all.
pub(crate) fn are_known(input: &Input<'_>) -> bool {
    match input.origin {
        Origin::Nowhere => true,
        Origin::Shorthand(entry) | Origin::Schema(entry) => matches!(entry.node.value, Value::Map(_)),
    }
}
