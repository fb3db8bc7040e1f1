//! A manifest's text read into facts, strictly: every key is known, every value of its kind.

use std::fs;
use std::path::{Path, PathBuf};

use super::parts;
use super::rules::{CONCURRENT, ENTRYPOINT, FRONT_MATTER, SHAPE};
use super::{ArgvStyle, CapabilityKind, Manifest, Routing, Runtime, SkillManifest};
use crate::protocol::json::shortened;
use crate::surface::fields::Fields;
use crate::surface::lint::{hidden_characters, value_kind};
use crate::surface::problem::Findings;
use crate::surface::resolve;
use crate::surface::source::{At, Source, Span, check_modes};
use crate::surface::tree::{self, Entry, Node, Value};

/// Keys that tools and agents share.
const KEYS: &[&str] = &[
    "name",
    "description",
    "version",
    "runtime",
    "entrypoint",
    "argv_style",
    "max_concurrent",
    "tier",
    "args",
    "actions",
    "secrets",
    "routing",
    "healthcheck",
    "output_schema",
    "examples",
];
const TOOL_KEYS: &[&str] = &["web_session", "requires"];
const AGENT_KEYS: &[&str] = &["tools"];

/// What runs where nothing is said.
const ENTRYPOINT_NAME: &str = "main.py";
const VERSION: &str = "0.1.0";
/// Runs at once of a capability that says nothing: enough for an agent that does several things at a time.
const CONCURRENT_RUNS: usize = 8;
/// As many as there are calls in flight on one connection.
const CONCURRENT_AT_MOST: usize = 64;

/// Largest tree of one manifest, aliases written out: ten times that of the largest known.
const TREE_BYTES: usize = 8 * 1024 * 1024;

/// A manifest that was read, and how large its tree is.
#[derive(Debug)]
pub(super) struct Read<T> {
    pub(super) facts: Option<T>,
    pub(super) bytes: usize,
}

impl<T> Read<T> {
    const NOTHING: Self = Self { facts: None, bytes: 0 };
}

/// Reads the manifest of a tool or an agent that lies in `folder`, whose links are resolved.
pub(super) fn capability(kind: CapabilityKind, folder: &Path, findings: &mut Findings) -> Read<Manifest> {
    let Some((root, bytes)) = tree_of(findings) else { return Read::NOTHING };
    let (name, own) = match kind {
        CapabilityKind::Agent => ("an agent's manifest", AGENT_KEYS),
        CapabilityKind::Tool | CapabilityKind::Skill => ("a tool's manifest", TOOL_KEYS),
    };
    let fields = Fields::of(&root, Span::START, name, &[KEYS, own].concat(), findings);
    let facts = fields.and_then(|fields| manifest(kind, &fields, folder, findings));
    Read { facts, bytes }
}

fn tree_of(findings: &mut Findings) -> Option<(Node, usize)> {
    if !hidden_characters::check_source(findings) {
        return None;
    }
    let (root, bytes) = tree::parse_within(TREE_BYTES, findings)?;
    hidden_characters::check_tree(&root, findings);
    Some((root, bytes))
}

fn manifest(kind: CapabilityKind, fields: &Fields<'_>, folder: &Path, findings: &mut Findings) -> Option<Manifest> {
    let (name, description) = identity(fields, findings);
    let runtime = runtime(fields, findings);
    let entrypoint = entrypoint(fields, runtime, folder, findings);
    let args = parts::args(fields, findings);
    let actions = parts::actions(fields, findings);
    if let (false, false, Some(entry)) = (args.is_empty(), actions.is_empty(), fields.get("args")) {
        let message = "`args` stands beside `actions`: a capability has one or the other";
        findings.report(&SHAPE, entry.key.span, message, "give the arguments to the actions that take them");
    }
    let routing = parts::routing(fields, findings);
    parts::check_unused(fields, &actions, findings);
    let drives = parts::texts(fields, "tools", findings);
    let (runtime, entrypoint) = entrypoint?;
    Some(Manifest {
        kind,
        name: name?,
        description: description?,
        version: version(fields, findings).unwrap_or_else(|| VERSION.to_owned()),
        runtime,
        entrypoint,
        folder: folder.to_owned(),
        argv_style: argv_style(fields, findings),
        max_concurrent: max_concurrent(fields, findings),
        args,
        actions,
        secrets: parts::secrets(fields, findings),
        routing,
        drives,
        output_schema: parts::words(fields, "output_schema", findings),
        examples: parts::examples(fields, findings),
    })
}

fn identity(fields: &Fields<'_>, findings: &mut Findings) -> (Option<String>, Option<String>) {
    fields.require("name", "write the name by which it is called, such as `name: xlsx`", findings);
    fields.require("description", "say what it does and when to use it", findings);
    let name = fields.text("name", findings).filter(|name| parts::is_name(name, "a capability", b"_.-", findings));
    let description = fields.text("description", findings).map(|said| said.value.trim().to_owned());
    (name.map(|name| name.value), description)
}

/// A version that looks like a number is taken as it is written.
fn version(fields: &Fields<'_>, findings: &mut Findings) -> Option<String> {
    match &fields.get("version")?.node.value {
        Value::Number(text) => Some(text.to_string()),
        _ => parts::words(fields, "version", findings),
    }
}

fn argv_style(fields: &Fields<'_>, findings: &mut Findings) -> ArgvStyle {
    let Some(said) = fields.text("argv_style", findings) else { return ArgvStyle::default() };
    match said.value.as_str() {
        "eq" => ArgvStyle::Eq,
        "space" => ArgvStyle::Space,
        _ => {
            value_kind::one_of("argv_style", &said, &["eq", "space"], findings);
            ArgvStyle::default()
        }
    }
}

fn max_concurrent(fields: &Fields<'_>, findings: &mut Findings) -> usize {
    let Some(entry) = fields.get("max_concurrent") else { return CONCURRENT_RUNS };
    let Value::Number(text) = &entry.node.value else {
        value_kind::report("max_concurrent", &entry.node, "a whole number, such as 1", findings);
        return CONCURRENT_RUNS;
    };
    match text.parse() {
        Ok(runs) if (1..=CONCURRENT_AT_MOST).contains(&runs) => runs,
        _ => {
            let message = format!("max_concurrent is {}", shortened(text, 40));
            let remedy =
                format!("write a whole number from 1 to {CONCURRENT_AT_MOST}, or leave it out for {CONCURRENT_RUNS}");
            findings.report(&CONCURRENT, entry.node.span, message, remedy);
            CONCURRENT_RUNS
        }
    }
}

fn runtime(fields: &Fields<'_>, findings: &mut Findings) -> Option<Runtime> {
    let said = fields.text("runtime", findings)?;
    match said.value.as_str() {
        "exec" => Some(Runtime::Exec),
        "python" => Some(Runtime::Python),
        "node" => Some(Runtime::Node),
        _ => {
            value_kind::one_of("runtime", &said, &["exec", "python", "node"], findings);
            None
        }
    }
}

/// The entry point, and what runs it. Where no runtime is said, a program runs itself, and Python what cannot and ends
/// in `.py`: manifests that were written where there was no other runtime leave it out.
fn entrypoint(
    fields: &Fields<'_>,
    runtime: Option<Runtime>,
    folder: &Path,
    findings: &mut Findings,
) -> Option<(Runtime, PathBuf)> {
    let entry = fields.get("entrypoint");
    let said = match entry {
        Some(_) => fields.text("entrypoint", findings)?,
        None => At { span: Span::START, value: ENTRYPOINT_NAME.to_owned() },
    };
    let span = entry.map_or(Span::START, |entry: &Entry| entry.node.span);
    let mut refuse = |message: String, remedy: &str| {
        findings.report(&ENTRYPOINT, span, message, remedy);
        None
    };
    let name = said.value.as_str();
    let written_outside = Path::new(name).is_absolute() || name.split(['/', '\\']).any(|part| part == "..");
    if name.is_empty() || name.contains('\0') || written_outside {
        let message = format!("{name:?} is no entry point");
        return refuse(message, "name a file relative to the manifest's folder, without `..`");
    }
    let Ok(resolved) = fs::canonicalize(folder.join(name)) else {
        return refuse(format!("there is no {name:?} beside the manifest"), "correct `entrypoint`, or add the file");
    };
    if !resolved.starts_with(folder) {
        let message = format!("{name:?} is a link out of the manifest's folder");
        return refuse(message, "put the program into the folder, or a script that runs it");
    }
    let metadata = match fs::metadata(&resolved) {
        Ok(metadata) if metadata.is_file() => metadata,
        _ => return refuse(format!("{name:?} is no regular file"), "name the program itself"),
    };
    let beside = resolved.parent().unwrap_or(folder);
    if let Err((message, remedy)) = check_modes(&metadata, beside) {
        return refuse(format!("{name:?}: {message}"), &remedy);
    }
    let as_program = || resolve::check_program(&resolved, name);
    match runtime {
        Some(Runtime::Exec) => match as_program() {
            Ok(_) => Some((Runtime::Exec, resolved)),
            Err(fault) => {
                let remedy = format!("{}; or say `runtime: python` or `runtime: node`", fault.remedy);
                refuse(fault.message, &remedy)
            }
        },
        Some(runtime) => Some((runtime, resolved)),
        None => match as_program() {
            Ok(_) => Some((Runtime::Exec, resolved)),
            Err(_) if name.ends_with(".py") => Some((Runtime::Python, resolved)),
            Err(fault) => {
                let remedy = format!("{}; or say `runtime: node`", fault.remedy);
                refuse(fault.message, &remedy)
            }
        },
    }
}

/// Reads the front matter of a `SKILL.md` that lies in `folder`, whose links are resolved. Keys that are not known are
/// somebody else's: skills are passed on between programs.
pub(super) fn skill(folder: &Path, findings: &mut Findings) -> Read<SkillManifest> {
    let Some(length) = front_matter(findings.source().text()) else {
        let remedy = "begin with a line of `---`, then `name:` and `description:`, then a line of `---`";
        findings.report(&FRONT_MATTER, Span::START, "it does not begin with front matter", remedy);
        return Read::NOTHING;
    };
    // What follows is no YAML. The first fence stays, so that places in the file are right.
    let source = findings.source();
    let text = source.text().get(..length).unwrap_or_default().to_owned();
    let mut own = Findings::new(Source::new(source.file().to_owned(), text));
    let read = skill_of(folder, &mut own);
    findings.take(own);
    read
}

fn skill_of(folder: &Path, findings: &mut Findings) -> Read<SkillManifest> {
    let Some((root, bytes)) = tree_of(findings) else { return Read::NOTHING };
    let known: Vec<&str> = root.as_map().unwrap_or_default().iter().map(|entry| entry.key.value.as_str()).collect();
    let facts = Fields::of(&root, Span::START, "front matter", &known, findings).and_then(|fields| {
        let (name, description) = identity(&fields, findings);
        Some(SkillManifest {
            name: name?,
            description: description?,
            version: version(&fields, findings),
            routing: skill_routing(&fields, findings),
            folder: folder.to_owned(),
        })
    });
    Read { facts, bytes }
}

fn skill_routing(fields: &Fields<'_>, findings: &mut Findings) -> Routing {
    let Some(entry) = fields.get("routing").filter(|entry| !matches!(entry.node.value, Value::Null)) else {
        return Routing::default();
    };
    let known: Vec<&str> = entry.node.as_map().unwrap_or_default().iter().map(|e| e.key.value.as_str()).collect();
    let fields = Fields::of(&entry.node, entry.key.span, "`routing`", &known, findings);
    fields.map(|fields| parts::routing_of(&fields, findings)).unwrap_or_default()
}

/// How long the front matter is, with the first fence and without the second.
fn front_matter(text: &str) -> Option<usize> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut length = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        match (index, is_fence(line)) {
            (0, false) => return None,
            (0, true) | (_, false) => length += line.len(),
            (_, true) => return Some(length),
        }
    }
    None
}
