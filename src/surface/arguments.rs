//! Arguments: of a tool, by the `args` shorthand or a whole `inputSchema`; of a template, whose
//! variables they are; of a prompt. One schema and one list each.
//!
//! Promises: the schema has its keys in the order written. An argument is optional unless it says
//! `required: true`, a variable is always there. One that is declared badly still counts as
//! declared, so that its placeholders are not reported too.

use super::declaration::ArgumentKind;
use super::fields::Fields;
use super::lint::{
    argument_as, argument_name, arguments_twice, misplaced_key, missing_key, target_common, value_kind, variable,
};
use super::problem::Findings;
use super::source::{At, Span};
use super::tree::{Entry, Node, Value};
use crate::protocol::{Json, UriTemplate};

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
    /// In an address that cannot be read.
    Unreadable,
    Shorthand(&'t Entry),
    Schema(&'t Entry),
}

/// One argument.
#[derive(Debug, Clone)]
pub(crate) struct ArgumentEntry {
    pub(crate) name: At<String>,
    pub(crate) kind: ArgumentKind,
    pub(crate) required: bool,
    pub(crate) default: Option<At<Json>>,
    /// Its own schema.
    pub(crate) schema: Json,
    /// The header that HTTP requests mirror it in.
    pub(crate) header: Option<At<String>>,
    /// What may be suggested for it.
    pub(crate) complete: Vec<At<String>>,
    /// The argument of a target's action that it is passed on as, if that was said.
    pub(crate) flag: Option<At<String>>,
}

/// The keys that an argument of a target may have; all but the first are those of any argument's shorthand.
const TARGET_KEYS: &[&str] = &[
    "flag",
    "as",
    "type",
    "title",
    "description",
    "required",
    "default",
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

/// The keys that an argument's shorthand may have.
const KEYS: &[&str] = without_first(TARGET_KEYS);

const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// The keys that a variable of a template with a command may have: each is in the address, so none has a default.
const COMMAND_VARIABLE_KEYS: &[&str] = &[
    "as",
    "type",
    "title",
    "description",
    "complete",
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
];

/// Whether the shorthand can say a schema: one type, and no keyword that is unknown to it or means something else in it.
pub(crate) fn can_say(schema: &Json) -> bool {
    const OTHERWISE: [&str; 4] = ["required", "as", "header", "complete"];
    let known = |key: &str| KEYS.contains(&key) && !OTHERWISE.contains(&key);
    schema.get("type").and_then(Json::as_str).is_some_and(|kind| TYPES.contains(&kind))
        && schema.as_object().is_some_and(|members| members.iter().all(|(key, _)| known(key)))
}

/// What a part of an address can be read as.
const VARIABLE_TYPES: [&str; 4] = ["string", "integer", "number", "boolean"];

/// The keys that an argument of a prompt may have, which is text.
const PROMPT_KEYS: &[&str] = &[
    "type",
    "title",
    "description",
    "required",
    "default",
    "complete",
    "enum",
    "examples",
    "minLength",
    "maxLength",
    "pattern",
    "format",
];

/// All keys but the first, which has a meaning for some owners alone.
const fn without_first(keys: &'static [&'static str]) -> &'static [&'static str] {
    match keys.split_first() {
        Some((_, others)) => others,
        None => keys,
    }
}

/// What an entry of `args` may say.
#[derive(Debug, Clone, Copy)]
struct Form {
    owner: &'static str,
    keys: &'static [&'static str],
    types: &'static [&'static str],
    /// The type where none is said; `None` where it must be.
    usual: Option<&'static str>,
}

const OF_TOOL: Form = Form { owner: "an argument", keys: KEYS, types: &TYPES, usual: None };
const OF_TARGET: Form = Form { keys: TARGET_KEYS, ..OF_TOOL };
const OF_COMMAND_TEMPLATE: Form =
    Form { owner: "a variable", keys: COMMAND_VARIABLE_KEYS, types: &VARIABLE_TYPES, usual: Some("string") };
/// A variable that no command is given: `as` has no effect there.
const OF_TEMPLATE: Form = Form { keys: without_first(COMMAND_VARIABLE_KEYS), ..OF_COMMAND_TEMPLATE };
const OF_PROMPT: Form =
    Form { owner: "an argument of a prompt", keys: PROMPT_KEYS, types: &["string"], usual: Some("string") };

/// Reads the arguments of a target: its own, then those of `common` that it names.
pub(crate) fn read_target<'t>(
    tool: &Fields<'t>,
    names: &[At<String>],
    common: &[ArgumentEntry],
    findings: &mut Findings,
) -> Input<'t> {
    let mut input = read_as(tool, OF_TARGET, findings);
    if let (Origin::Schema(_), Some(first)) = (input.origin, names.first()) {
        let message = "`common` stands beside `inputSchema`, which is published as it is";
        findings.report(&target_common::RULE, first.span, message, "write `args`, or the arguments into the schema");
        return input;
    }
    let taken = target_common::taken(names, &input.arguments, common, findings);
    if !taken.is_empty() {
        input.arguments.extend(taken);
        input.schema = Some(object(&input.arguments));
    }
    input
}

/// Reads the arguments that targets share.
pub(crate) fn read_common(args: &Entry, findings: &mut Findings) -> Vec<ArgumentEntry> {
    read_all(args, OF_TARGET, findings)
}

/// Reads the arguments of a tool.
pub(crate) fn read<'t>(tool: &Fields<'t>, findings: &mut Findings) -> Input<'t> {
    read_as(tool, OF_TOOL, findings)
}

fn read_as<'t>(tool: &Fields<'t>, form: Form, findings: &mut Findings) -> Input<'t> {
    if let (None, Some(roles)) = (tool.get("inputSchema"), tool.get("as")) {
        misplaced_key::beside_no_schema(roles, findings);
    }
    match (tool.get("args"), tool.get("inputSchema")) {
        (None, None) => Input::none(),
        (Some(args), schema) => {
            if schema.is_some() {
                arguments_twice::report(args, findings);
            }
            shorthand(args, form, findings)
        }
        (None, Some(schema)) => whole(schema, tool.get("as"), findings),
    }
}

/// Reads the arguments of a prompt.
pub(crate) fn read_prompt<'t>(prompt: &Fields<'t>, findings: &mut Findings) -> Input<'t> {
    prompt.get("args").map_or_else(Input::none, |args| shorthand(args, OF_PROMPT, findings))
}

/// Reads the variables of a template: those of its address, with what `args` says of them.
pub(crate) fn read_variables<'t>(
    template: &Fields<'t>,
    uri: Option<&At<String>>,
    of_command: bool,
    findings: &mut Findings,
) -> Input<'t> {
    let form = if of_command { OF_COMMAND_TEMPLATE } else { OF_TEMPLATE };
    let declared = template.get("args").map(|args| read_all(args, form, findings));
    let origin = template.get("args").map_or(Origin::Nowhere, Origin::Shorthand);
    let mut declared = declared.unwrap_or_default();
    // What is no template is reported by the catalog, and says nothing of `args`.
    let parsed = uri.and_then(|uri| Some((uri, UriTemplate::parse(&uri.value).ok()?)));
    let Some((uri, parsed)) = parsed else {
        return Input { origin: Origin::Unreadable, schema: None, arguments: declared };
    };
    variable::check(&declared, parsed.variables(), findings);
    let arguments = parsed.variables().iter().map(|name| {
        let known = declared.iter().position(|argument| argument.name.value == *name);
        let mut argument = match known {
            Some(index) => declared.swap_remove(index),
            None => ArgumentEntry {
                schema: Json::Object(vec![("type".to_owned(), Json::String("string".to_owned()))]),
                ..ArgumentEntry::new(At { span: uri.span, value: name.clone() })
            },
        };
        argument.required = true;
        argument
    });
    let arguments: Vec<_> = arguments.collect();
    Input { origin, schema: Some(object(&arguments)), arguments }
}

fn shorthand<'t>(args: &'t Entry, form: Form, findings: &mut Findings) -> Input<'t> {
    let arguments = read_all(args, form, findings);
    let schema = args.node.as_map().map(|_| object(&arguments));
    Input { origin: Origin::Shorthand(args), schema, arguments }
}

fn read_all(args: &Entry, form: Form, findings: &mut Findings) -> Vec<ArgumentEntry> {
    let Some(entries) = args.node.as_map() else {
        value_kind::report("args", &args.node, "a mapping of names to arguments", findings);
        return Vec::new();
    };
    entries.iter().map(|entry| argument(entry, form, findings)).collect()
}

/// The schema of an object that has these arguments and no others.
fn object(arguments: &[ArgumentEntry]) -> Json {
    let properties = arguments.iter().map(|a| (a.name.value.clone(), a.schema.clone())).collect();
    let required: Vec<_> =
        arguments.iter().filter(|a| a.required).map(|a| Json::String(a.name.value.clone())).collect();
    let members = [
        ("type", Some(Json::String("object".to_owned()))),
        ("properties", Some(Json::Object(properties))),
        ("required", (!required.is_empty()).then_some(Json::Array(required))),
        ("additionalProperties", Some(Json::Bool(false))),
    ];
    Json::Object(members.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v?))).collect())
}

fn argument(entry: &Entry, form: Form, findings: &mut Findings) -> ArgumentEntry {
    argument_name::check(&entry.key, findings);
    let mut argument = ArgumentEntry::new(entry.key.clone());
    // A word on an argument that says nothing: of a prompt and a template it is whole as it is.
    let empty = matches!(entry.node.value, Value::Null) && form.usual.is_some();
    if let (true, Some(usual)) = (empty, form.usual) {
        argument.schema = Json::Object(vec![("type".to_owned(), Json::String(usual.to_owned()))]);
        return argument;
    }
    let Some(fields) = Fields::of(&entry.node, entry.key.span, form.owner, form.keys, findings) else {
        return argument;
    };
    let kind = fields.text("type", findings);
    match &kind {
        Some(kind) if !form.types.contains(&kind.value.as_str()) => {
            value_kind::one_of("type", kind, form.types, findings);
        }
        None if fields.get("type").is_none() && form.usual.is_none() => {
            missing_key::report(entry.key.span, form.owner, "type", "write one, such as `type: string`", findings);
        }
        _ => {}
    }
    argument.required = fields.flag("required", findings).is_some_and(|flag| flag.value);
    argument.header = fields.text("header", findings);
    argument.flag = fields.text("flag", findings);
    if let Some(said) = fields.text("as", findings) {
        let kind = kind.as_ref().map(|kind| kind.value.as_str()).or(form.usual);
        argument.kind = argument_as::read(&said, kind, findings);
    }
    argument.default = fields.get("default").map(json_at);
    argument.complete = fields.texts("complete", findings);
    let usual = form.usual.filter(|_| kind.is_none()).map(|usual| ("type", Json::String(usual.to_owned())));
    let keywords = entry.node.as_map().unwrap_or_default().iter().filter_map(|Entry { key, node }| {
        let keyword = match key.value.as_str() {
            "required" | "as" | "complete" | "flag" => return None,
            "header" => "x-mcp-header",
            known => form.keys.iter().find(|key| **key == known)?,
        };
        Some((keyword, node.to_json()))
    });
    let keywords = usual.into_iter().chain(keywords);
    argument.schema = Json::Object(keywords.map(|(keyword, value)| (keyword.to_owned(), value)).collect());
    argument
}

impl ArgumentEntry {
    /// One of which nothing is said.
    fn new(name: At<String>) -> Self {
        Self {
            name,
            kind: ArgumentKind::Value,
            required: false,
            default: None,
            schema: Json::Object(Vec::new()),
            header: None,
            complete: Vec::new(),
            flag: None,
        }
    }

    /// What may be suggested for it: what `complete` says, else what `enum` allows.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        if !self.complete.is_empty() {
            return self.complete.iter().map(|at| at.value.clone()).collect();
        }
        match self.schema.get("enum") {
            Some(Json::Array(values)) => {
                values.iter().map(|v| v.as_str().map_or_else(|| v.to_text(), str::to_owned)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A text of its schema, such as its description.
    pub(crate) fn said(&self, keyword: &str) -> Option<String> {
        self.schema.get(keyword).and_then(Json::as_str).map(str::to_owned)
    }
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
                complete: Vec::new(),
                flag: None,
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
    /// No arguments.
    pub(crate) fn none() -> Self {
        Self { origin: Origin::Nowhere, schema: None, arguments: Vec::new() }
    }

    /// Where a pointer into the published `inputSchema` leads in the file.
    pub(crate) fn locate<'p>(&self, tool: Span, mut steps: impl Iterator<Item = &'p str>) -> Span {
        match self.origin {
            Origin::Nowhere | Origin::Unreadable => tool,
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
        Origin::Unreadable => false,
        Origin::Shorthand(entry) | Origin::Schema(entry) => matches!(entry.node.value, Value::Map(_)),
    }
}
