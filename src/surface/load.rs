//! From a surface file to what is published and what is run.
//!
//! Promises: what comes out was checked as a whole: a catalog can be built of its parts, every
//! path is absolute, every placeholder has its argument. What does not comes back as every problem
//! of the file at once.

use std::path::{Path, PathBuf};

use super::arguments::ArgumentEntry;
use super::declaration::{Argument, DeclaredTool, Element, Output, Piece, Run, Template};
use super::file::{self, ElementEntry, SurfaceFile, ToolEntry};
use super::problem::{Finding, Findings, Problems, Severity};
use super::resolve::{self, Resolved, ResolvedTool};
use super::source::{self, Span};
use super::watch::Watched;
use super::{lint, lock, tree};
use crate::protocol::{Annotations, CacheHints, CacheScope, Catalog, CatalogError, CatalogParts, Place, ToolParts};

pub(crate) use super::resolve::Host;

/// Most bytes of output in a result where a tool says nothing: 15,000 to 20,000 tokens.
pub const DEFAULT_CAP: usize = 60_000;

/// A surface that was read and checked. Two are equal if they are the same to whoever is served and to whoever reads
/// the warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSurface {
    /// What the catalog is built of; that it can be was checked.
    pub parts: CatalogParts,
    /// What is behind the tools, in the catalog's order.
    pub tools: Vec<DeclaredTool>,
    /// The surface's name.
    pub name: String,
    /// The surface's version.
    pub version: semver::Version,
    /// The folder that paths stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// The file it was read from.
    pub path: PathBuf,
    /// The files whose changes make it another, or its resources.
    pub watched: Watched,
    /// What is served nevertheless.
    pub warnings: Problems,
}

/// What every surface file is watched with: itself and its lock.
pub(crate) fn watched(path: &Path) -> Watched {
    Watched { listing: vec![path.to_owned(), lock::path_of(path)], contents: Vec::new() }
}

/// Reads and checks a surface file.
pub(crate) fn load(path: &Path) -> Result<LoadedSurface, Problems> {
    match source::open(path) {
        Ok(opened) => examine(opened.findings, &Host::new(opened.folder)),
        Err(findings) => Err(findings.into_problems()),
    }
}

/// Checks a text that was read.
pub(crate) fn examine(mut findings: Findings, host: &Host) -> Result<LoadedSurface, Problems> {
    if !lint::hidden_characters::check_source(&mut findings) {
        return Err(findings.into_problems());
    }
    let Some(root) = tree::parse(&mut findings) else { return Err(findings.into_problems()) };
    lint::hidden_characters::check_tree(&root, &mut findings);
    let Some(file) = file::read(&root, &mut findings) else { return Err(findings.into_problems()) };
    let resolved = resolve::resolve(&file, host);
    lint::check(&file, &resolved, &mut findings);
    let parts = parts(&file);
    if let Err(errors) = Catalog::build(parts.clone()) {
        for error in errors {
            let mut finding = finding(error, &file);
            let written = findings.source().slice(finding.span);
            if finding.rule == "portable-json" && written.parse::<f64>().is_ok() && written.contains(['.', 'e', 'E']) {
                finding.remedy = "use a whole number, or leave the bound out".to_owned();
            }
            findings.add(finding);
        }
    }
    let made = if findings.has_errors() { None } else { declare(&file, resolved) };
    let path = findings.source().file().to_owned();
    match made {
        Some((version, root, tools)) => {
            let name = parts.identity.name.clone();
            let watched = watched(&path);
            let warnings = findings.into_problems();
            Ok(LoadedSurface { parts, tools, name, version, root, path, watched, warnings })
        }
        None => Err(findings.into_problems()),
    }
}

/// What the catalog is built of. Where something is missing, which was reported, a stand-in keeps
/// the catalog's own checks going.
fn parts(file: &SurfaceFile<'_>) -> CatalogParts {
    let text = |at: &Option<source::At<String>>| at.as_ref().map(|at| at.value.clone());
    let ttl_ms = file.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let mut parts = CatalogParts::new(text(&file.name).unwrap_or_default(), text(&file.version).unwrap_or_default());
    parts.identity.title = text(&file.title);
    parts.instructions = text(&file.instructions);
    if let Some(key) = text(&file.digest_key) {
        parts.digest_key = key;
    }
    parts.cache = CacheHints { ttl_ms, scope: CacheScope::Private };
    parts.tools = file.tools.iter().map(tool_parts).collect();
    parts.logging = file.tools.iter().any(|tool| tool.talk);
    parts
}

fn tool_parts(tool: &ToolEntry<'_>) -> ToolParts {
    let mut parts = ToolParts::new(tool.name.value.clone());
    parts.title = tool.title.as_ref().map(|at| at.value.clone());
    parts.description = tool.description.as_ref().map(|at| at.value.clone());
    if let Some(schema) = &tool.input.schema {
        parts.input_schema = schema.clone();
    }
    parts.output_schema = tool.output_schema.map(|entry| entry.node.to_json());
    parts.annotations = annotations(tool);
    parts.meta = tool.meta.map(|entry| entry.node.to_json());
    parts.divergent = tool.divergent;
    parts.deadline = tool.timeout;
    parts
}

/// Only what was said; what only reads destroys nothing, and what is reversible neither.
fn annotations(tool: &ToolEntry<'_>) -> Annotations {
    let value = |flag: &Option<source::At<bool>>| flag.as_ref().map(|flag| flag.value);
    let read_only = value(&tool.read_only);
    let destructive = match read_only {
        Some(true) => Some(false),
        _ => value(&tool.reversible).map(|reversible| !reversible),
    };
    Annotations { read_only, destructive, idempotent: value(&tool.idempotent), open_world: value(&tool.open_world) }
}

/// A problem of the catalog, at its place in the file.
fn finding(error: CatalogError, file: &SurfaceFile<'_>) -> Finding {
    let tool = match error.place {
        Place::Tool(index) => file.tools.get(index),
        Place::Catalog | Place::Resource(_) | Place::Template(_) | Place::Prompt(_) | Place::Skill(_) => None,
    };
    let of_file = || file.digest_key.as_ref().map_or(Span::START, |key| key.span);
    Finding {
        rule: error.rule,
        severity: Severity::Error,
        span: tool.map_or_else(of_file, |tool| tool.locate(&error.pointer)),
        message: error.problem,
        remedy: error.remedy,
        suggestion: None,
    }
}

/// What is run. `None` where something is missing, which was reported.
fn declare(file: &SurfaceFile<'_>, resolved: Resolved) -> Option<(semver::Version, PathBuf, Vec<DeclaredTool>)> {
    let version = semver::Version::parse(&file.version.as_ref()?.value).ok()?;
    let root = resolved.root.ok()?;
    let tools = file.tools.iter().zip(resolved.tools).map(|(tool, paths)| declare_tool(tool, paths, &root));
    let tools = tools.collect::<Option<_>>()?;
    Some((version, root, tools))
}

fn declare_tool(tool: &ToolEntry<'_>, paths: ResolvedTool, root: &Path) -> Option<DeclaredTool> {
    let program = paths.program?.ok()?.into_os_string().into_string().ok()?;
    let cwd = match paths.cwd {
        Some(cwd) => cwd.ok()?,
        None => root.to_owned(),
    };
    let program = Element::One(Template(vec![Piece::Literal(program)]));
    let rest = tool.run.iter().skip(1).map(|element| match element {
        ElementEntry::One(template) => Element::One(template.value.clone()),
        ElementEntry::Group(templates) => Element::Group(templates.iter().map(|t| t.value.clone()).collect()),
    });
    let run = Run {
        argv: std::iter::once(program).chain(rest).collect(),
        arguments: tool.input.arguments.iter().map(declare_argument).collect(),
        root: root.to_owned(),
        cwd,
        env: tool.env.iter().map(|variable| variable.value.clone()).collect(),
        stdin: tool.stdin.as_ref().map(|feed| feed.value.clone()),
        cap: tool.cap.unwrap_or(DEFAULT_CAP),
        exit_codes: tool.exit_codes.clone().unwrap_or_else(|| vec![0]),
        output: tool.output.as_ref().map_or(Output::Text, |output| output.value),
        talk: tool.talk,
    };
    Some(DeclaredTool { name: tool.name.value.clone(), run })
}

fn declare_argument(argument: &ArgumentEntry) -> Argument {
    Argument {
        name: argument.name.value.clone(),
        kind: argument.kind,
        default: argument.default.as_ref().map(|default| default.value.clone()),
    }
}
