//! The parts of a manifest: arguments, actions, secrets, and what is checked although nothing here uses it.

use std::collections::HashSet;

use super::rules::{NAME, SCHEMA, SECRET, SHAPE, TWICE};
use super::{ArgType, Effects, ManifestAction, ManifestArg, ManifestSecret, Routing, variable};
use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::protocol::schema::Schema;
use crate::surface::fields::Fields;
use crate::surface::lint::value_kind;
use crate::surface::problem::{Findings, did_you_mean};
use crate::surface::source::At;
use crate::surface::tree::{Node, Value};

const ARG_KEYS: &[&str] = &["name", "type", "required", "description", "default", "schema", "stdin"];
const ACTION_KEYS: &[&str] = &["name", "description", "args", "effects", "blast_class", "output_schema", "examples"];
const SECRET_KEYS: &[&str] = &["name", "description", "optional"];
const ROUTING_KEYS: &[&str] = &["triggers", "primary_action", "example"];
const HEALTHCHECK_KEYS: &[&str] = &["action", "args", "label"];
const SESSION_KEYS: &[&str] = &["name", "login_url", "persistent", "channel", "label"];
const REQUIREMENT_KEYS: &[&str] = &["name", "kind", "why", "check", "install", "auto"];

/// Longest name of a capability, an action, an argument or a secret.
const NAME_BYTES: usize = 128;

/// The nodes of a list under a key; an empty value counts as none.
pub(super) fn list<'t>(fields: &Fields<'t>, key: &str, of: &str, findings: &mut Findings) -> &'t [Node] {
    let Some(entry) = fields.get(key) else { return &[] };
    match &entry.node.value {
        Value::List(items) => items,
        Value::Null => &[],
        _ => {
            value_kind::report(&format!("`{key}`"), &entry.node, &format!("a list of {of}"), findings);
            &[]
        }
    }
}

/// A text under a key; `None` if there is none in it.
pub(super) fn words(fields: &Fields<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    let text = fields.text(key, findings)?.value.trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// A mapping under a key; an empty value counts as none.
fn mapping<'t>(
    fields: &Fields<'t>,
    key: &str,
    name: &'static str,
    keys: &[&str],
    findings: &mut Findings,
) -> Option<Fields<'t>> {
    let entry = fields.get(key).filter(|entry| !matches!(entry.node.value, Value::Null))?;
    Fields::of(&entry.node, entry.key.span, name, keys, findings)
}

/// The name of a part, if it can be one; `others` are the bytes that it may have beside letters and digits.
fn name(fields: &Fields<'_>, what: &str, others: &[u8], findings: &mut Findings) -> Option<At<String>> {
    fields.require("name", "write `name:`", findings);
    let name = fields.text("name", findings)?;
    is_name(&name, what, others, findings).then_some(name)
}

/// Reports what is no name.
pub(super) fn is_name(name: &At<String>, what: &str, others: &[u8], findings: &mut Findings) -> bool {
    let text = name.value.as_bytes();
    let plain = text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text.len() <= NAME_BYTES
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || others.contains(byte));
    if !plain {
        let message = format!("{:?} is no name of {what}", shortened(&name.value, 64));
        let others: Vec<String> = others.iter().map(|byte| char::from(*byte).to_string()).collect();
        let remedy = format!(
            "begin with a letter or a digit, then use letters, digits and {}, at most {NAME_BYTES}",
            others.join(" ")
        );
        findings.report(&NAME, name.span, message, remedy);
    }
    plain
}

/// Reports a name that stood before.
fn is_new(name: &At<String>, what: &str, seen: &mut HashSet<String>, findings: &mut Findings) {
    if !seen.insert(name.value.clone()) {
        let message = format!("{what} {:?} stands here a second time", name.value);
        findings.report(&TWICE, name.span, message, "rename one of the two, or leave it out");
    }
}

/// Reads a list of arguments.
pub(super) fn args(fields: &Fields<'_>, findings: &mut Findings) -> Vec<ManifestArg> {
    let mut seen = HashSet::new();
    let nodes = list(fields, "args", "arguments, such as [{ name: path, type: string }]", findings);
    nodes.iter().filter_map(|node| arg(node, &mut seen, findings)).collect()
}

fn arg(node: &Node, seen: &mut HashSet<String>, findings: &mut Findings) -> Option<ManifestArg> {
    let fields = Fields::of(node, node.span, "an argument of a manifest", ARG_KEYS, findings)?;
    let name = name(&fields, "an argument", b"_.-", findings);
    if let Some(name) = &name {
        // It becomes a flag, and a flag that begins with a digit is a number to some programs.
        if name.value.starts_with(|first: char| first.is_ascii_digit()) {
            let message = format!("the argument {:?} begins with a digit", name.value);
            findings.report(&NAME, name.span, message, "begin it with a letter");
        }
        is_new(name, "the argument", seen, findings);
    }
    let kind = fields.text("type", findings);
    let schema = fields.get("schema").filter(|entry| !matches!(entry.node.value, Value::Null));
    let schema = schema.map(|entry| (entry, entry.node.to_json()));
    if let Some((entry, schema)) = &schema
        && let Err(error) = Schema::compile(schema)
    {
        let span = entry.node.locate(entry.key.span, error.pointer.split('/').skip(1));
        findings.report(&SCHEMA, span, error.problem, error.remedy);
    }
    Some(ManifestArg {
        kind: kind.map_or_else(ArgType::default, |kind| arg_type(&kind, findings)),
        required: fields.flag("required", findings).is_some_and(|flag| flag.value),
        description: words(&fields, "description", findings).unwrap_or_default(),
        default: fields.get("default").map(|entry| entry.node.to_json()).filter(|value| *value != Json::Null),
        schema: schema.map(|(_, schema)| schema),
        stdin: fields.flag("stdin", findings).is_some_and(|flag| flag.value),
        name: name?.value,
    })
}

/// Reads the type of an argument.
pub(crate) fn arg_type(kind: &At<String>, findings: &mut Findings) -> ArgType {
    let known = ArgType::ALL.map(ArgType::name);
    ArgType::of(&kind.value).unwrap_or_else(|| {
        value_kind::one_of("type", kind, &known, findings);
        ArgType::default()
    })
}

/// Reads the list of actions.
pub(super) fn actions(fields: &Fields<'_>, findings: &mut Findings) -> Vec<ManifestAction> {
    let mut seen = HashSet::new();
    let nodes = list(fields, "actions", "actions, such as [{ name: list }]", findings);
    nodes.iter().filter_map(|node| action(node, &mut seen, findings)).collect()
}

fn action(node: &Node, seen: &mut HashSet<String>, findings: &mut Findings) -> Option<ManifestAction> {
    let fields = Fields::of(node, node.span, "an action", ACTION_KEYS, findings)?;
    let name = name(&fields, "an action", b"_.:-", findings);
    if let Some(name) = &name {
        is_new(name, "the action", seen, findings);
    }
    let effects = fields.text("effects", findings).and_then(|said| match said.value.as_str() {
        "read" => Some(Effects::Read),
        "write" => Some(Effects::Write),
        "irreversible" => Some(Effects::Irreversible),
        _ => {
            value_kind::one_of("effects", &said, &["read", "write", "irreversible"], findings);
            None
        }
    });
    Some(ManifestAction {
        description: words(&fields, "description", findings).unwrap_or_default(),
        args: args(&fields, findings),
        effects,
        blast_class: words(&fields, "blast_class", findings),
        output_schema: words(&fields, "output_schema", findings),
        examples: examples(&fields, findings),
        name: name?.value,
    })
}

/// Reads calls as examples.
pub(super) fn examples(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Json> {
    let nodes = list(fields, "examples", "mappings", findings);
    for node in nodes.iter().filter(|node| node.as_map().is_none()) {
        value_kind::report("an example", node, "a mapping", findings);
    }
    nodes.iter().map(Node::to_json).collect()
}

/// Reads the list of secrets.
pub(super) fn secrets(fields: &Fields<'_>, findings: &mut Findings) -> Vec<ManifestSecret> {
    let mut seen = HashSet::new();
    let nodes = list(fields, "secrets", "secrets, such as [{ name: token }]", findings);
    nodes.iter().filter_map(|node| secret(node, &mut seen, findings)).collect()
}

fn secret(node: &Node, seen: &mut HashSet<String>, findings: &mut Findings) -> Option<ManifestSecret> {
    let fields = Fields::of(node, node.span, "a secret", SECRET_KEYS, findings)?;
    let name = name(&fields, "a secret", b"_.:-", findings);
    if let Some(name) = &name {
        is_new(name, "the secret", seen, findings);
        check_secret(name, findings);
    }
    Some(ManifestSecret {
        description: words(&fields, "description", findings).unwrap_or_default(),
        optional: fields.flag("optional", findings).is_some_and(|flag| flag.value),
        name: name?.value,
    })
}

/// A manifest names which variable of the server reaches its program: not those that decide how a program starts, nor ours.
fn check_secret(name: &At<String>, findings: &mut Findings) {
    const KEPT: &[&str] = &["PATH", "LANG", "TZ", "HOME", "IFS", "SHELL", "ENV", "BASH_ENV"];
    const KEPT_SPACES: &[&str] = &["TWODOOR_", "AAT_", "LD_", "DYLD_", "LC_", "GLIBC_", "MALLOC_"];
    let variable = variable(&name.value);
    let parts = name.value.split(':').collect::<Vec<_>>();
    if parts.len() > 2 || parts.iter().any(|part| !part.starts_with(|first: char| first.is_ascii_alphabetic())) {
        let message = format!("{:?} is no reference to a secret", shortened(&name.value, 64));
        findings.report(&SECRET, name.span, message, "write NAME, or SPACE:NAME for one that capabilities share");
    } else if KEPT.contains(&variable.as_str()) || KEPT_SPACES.iter().any(|space| variable.starts_with(space)) {
        let message = format!("{:?} would be the variable {variable}, which is no secret", name.value);
        findings.report(&SECRET, name.span, message, "name the secret otherwise");
    }
}

/// Reads how a capability is to be found.
pub(super) fn routing(fields: &Fields<'_>, findings: &mut Findings) -> Routing {
    let fields = mapping(fields, "routing", "`routing`", ROUTING_KEYS, findings);
    fields.map(|fields| routing_of(&fields, findings)).unwrap_or_default()
}

/// Reads the fields of `routing`, whose unknown keys are somebody else's matter.
pub(super) fn routing_of(fields: &Fields<'_>, findings: &mut Findings) -> Routing {
    Routing {
        triggers: texts(fields, "triggers", findings),
        primary_action: words(fields, "primary_action", findings),
        example: words(fields, "example", findings),
    }
}

/// A list of texts.
pub(super) fn texts(fields: &Fields<'_>, key: &str, findings: &mut Findings) -> Vec<String> {
    let nodes = list(fields, key, "texts", findings);
    let text = |node: &Node| {
        let text = node.as_text().map(|text| text.trim().to_owned());
        if text.is_none() {
            value_kind::report(&format!("an element of `{key}`"), node, "text", findings);
        }
        text
    };
    nodes.iter().filter_map(text).collect()
}

/// Reports an action that a key names and the manifest has not.
pub(super) fn check_named_action(key: &str, fields: &Fields<'_>, actions: &[ManifestAction], findings: &mut Findings) {
    let Some(entry) = fields.get(key) else { return };
    let Some(name) = entry.node.as_text().filter(|name| !name.is_empty()) else { return };
    if actions.iter().all(|action| action.name != name) {
        let message = format!("`{key}` names {:?}, which is no action here", shortened(name, 64));
        let meant = did_you_mean(name, actions.iter().map(|action| action.name.as_str()));
        findings.suggest(&SHAPE, entry.node.span, message, "name an action of this manifest, or leave it out", meant);
    }
}

/// Checks what another program of the same project uses, and nothing here does.
pub(super) fn check_unused(fields: &Fields<'_>, actions: &[ManifestAction], findings: &mut Findings) {
    if let Some(tier) = fields.text("tier", findings)
        && !["official", "template", "custom"].contains(&tier.value.as_str())
    {
        value_kind::one_of("tier", &tier, &["official", "template", "custom"], findings);
    }
    if let Some(check) = mapping(fields, "healthcheck", "`healthcheck`", HEALTHCHECK_KEYS, findings) {
        let _ = (check.text("action", findings), check.text("label", findings));
        check_named_action("action", &check, actions, findings);
        if let Some(args) = check.get("args")
            && !matches!(args.node.value, Value::Map(_) | Value::Null)
        {
            value_kind::report("`args` of `healthcheck`", &args.node, "a mapping of names to values", findings);
        }
    }
    if let Some(session) = mapping(fields, "web_session", "`web_session`", SESSION_KEYS, findings) {
        session.require("name", "write `name:`", findings);
        for key in ["name", "login_url", "channel", "label"] {
            let _ = session.text(key, findings);
        }
        let _ = session.flag("persistent", findings);
    }
    for node in list(fields, "requires", "requirements, such as [{ name: git, kind: binary }]", findings) {
        let Some(requirement) = Fields::of(node, node.span, "a requirement", REQUIREMENT_KEYS, findings) else {
            continue;
        };
        requirement.require("name", "write `name:`", findings);
        for key in ["name", "why", "check", "install"] {
            let _ = requirement.text(key, findings);
        }
        let kinds = ["binary", "browser", "driver", "service", "runtime"];
        if let Some(kind) = requirement.text("kind", findings)
            && !kinds.contains(&kind.value.as_str())
        {
            value_kind::one_of("kind", &kind, &kinds, findings);
        }
        let _ = requirement.flag("auto", findings);
    }
}
