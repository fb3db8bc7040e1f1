//! From a surface file to what is published and what is carried out.
//!
//! Promises: what comes out was checked as a whole: a catalog can be built of its parts, every
//! path is absolute, every placeholder has its argument. What does not comes back as every problem
//! of the file at once.

use std::path::{Path, PathBuf};

use super::declaration::{DeclaredPrompt, DeclaredResource, DeclaredTemplate, DeclaredTool};
use super::declare::{self, Declared};
use super::file::{self, SurfaceFile};
use super::level::Latitude;
use super::parts::{self, Published};
use super::problem::{Finding, Findings, Problems, Severity};
use super::resolve;
use super::rules::CallRules;
use super::source::{self, Span};
use super::watch::Watched;
use super::{lint, lock, tree};
use crate::protocol::{Catalog, CatalogError, CatalogParts, Place};

pub(crate) use super::resolve::Host;

/// A surface that was read and checked. Two are equal if they are the same to whoever is served and to whoever reads
/// the warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSurface {
    /// What the catalog is built of; that it can be was checked.
    pub parts: CatalogParts,
    /// What is behind the tools, in the catalog's order.
    pub tools: Vec<DeclaredTool>,
    /// What is behind the resources, in the catalog's order.
    pub resources: Vec<DeclaredResource>,
    /// What is behind the resource templates, in the catalog's order.
    pub templates: Vec<DeclaredTemplate>,
    /// What is behind the prompts, in the catalog's order.
    pub prompts: Vec<DeclaredPrompt>,
    /// The rules over the arguments of calls; none is something else than no rule at all, which denies every call.
    pub rules: Option<CallRules>,
    /// What runs unasked.
    pub latitude: Latitude,
    /// The surface's name.
    pub name: String,
    /// The surface's version.
    pub version: semver::Version,
    /// The folder that paths stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// The project whose capabilities it publishes, if it says one; absolute, links resolved.
    pub registry: Option<PathBuf>,
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

impl LoadedSurface {
    /// The URIs under which something else is read than from an earlier surface, as far as the surfaces themselves tell.
    pub fn updated_since(&self, earlier: &Self) -> Vec<String> {
        let declared = self.resources.iter().filter(|resource| {
            let before = earlier.resources.iter().find(|before| before.uri == resource.uri);
            before.is_some_and(|before| before != *resource)
        });
        let mut updated: Vec<String> = declared.map(|resource| resource.uri.clone()).collect();
        for skill in &self.parts.skills {
            let Some(before) = earlier.parts.skills.iter().find(|before| before.uri == skill.uri) else { continue };
            let files = skill.files.iter().filter(|file| {
                let before = before.files.iter().find(|before| before.path == file.path);
                before.is_some_and(|before| before.bytes != file.bytes)
            });
            updated.extend(files.map(|file| skill.locate(&file.path)));
        }
        updated
    }
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
    let published = parts::of(&file, &resolved);
    let skills_read: Vec<bool> = resolved.skills.iter().map(|skill| matches!(skill, Some(Ok(_)))).collect();
    let skill_folders: Vec<PathBuf> =
        resolved.skills.iter().flatten().flatten().map(|(path, _)| path.clone()).collect();
    match Catalog::build(published.parts.clone()) {
        Ok(catalog) => {
            lint::unknown_resource::check(&file, &catalog, &mut findings);
            lint::token_cost::check(&file, &catalog, &mut findings);
        }
        Err(errors) => {
            for error in errors {
                let mut finding = finding(error, &file, &published, &skills_read);
                let written = findings.source().slice(finding.span);
                if finding.rule == "portable-json"
                    && written.parse::<f64>().is_ok()
                    && written.contains(['.', 'e', 'E'])
                {
                    finding.remedy = "use a whole number, or leave the bound out".to_owned();
                }
                findings.add(finding);
            }
        }
    }
    let made = if findings.has_errors() { None } else { declare::all(&file, resolved) };
    let path = findings.source().file().to_owned();
    match made {
        Some(Declared { version, root, registry, tools, resources, templates, prompts, rules, latitude }) => {
            let parts = published.parts;
            let name = parts.identity.name.clone();
            let mut watched = watched(&path);
            declare::watch(&resources, &templates, &mut watched);
            watched.listing.extend(skill_folders);
            declare::watch_targets(&tools, &mut watched);
            let warnings = findings.into_problems();
            Ok(LoadedSurface {
                parts,
                tools,
                resources,
                templates,
                prompts,
                rules,
                latitude,
                name,
                version,
                root,
                registry,
                path,
                watched,
                warnings,
            })
        }
        None => Err(findings.into_problems()),
    }
}

/// What a text says is published. Nothing that depends on this machine is checked.
pub(crate) fn declared(mut findings: Findings, host: &Host) -> Result<CatalogParts, Problems> {
    let parts = tree::parse(&mut findings).and_then(|root| {
        let file = file::read(&root, &mut findings)?;
        lint::surface_name::check(&file, &mut findings);
        lint::version::check(&file, &mut findings);
        Some(parts::of(&file, &resolve::resolve(&file, host)).parts)
    });
    match parts {
        Some(parts) if !findings.has_errors() => Ok(parts),
        _ => Err(findings.into_problems()),
    }
}

/// A problem of the catalog, at its place in the file.
fn finding(error: CatalogError, file: &SurfaceFile<'_>, published: &Published, skills_read: &[bool]) -> Finding {
    let pointer = &error.pointer;
    let span = match error.place {
        Place::Tool(index) => file.tools.get(index).map(|tool| tool.locate(pointer)),
        Place::Resource(index) => {
            let entry = published.resources.get(index).and_then(|index| file.resources.get(*index));
            entry.map(|resource| resource.locate(pointer))
        }
        // The templates of folders stand behind those that were written as such.
        Place::Template(index) => match file.templates.get(index) {
            Some(template) => Some(template.locate(pointer)),
            None => {
                let folder = index.checked_sub(file.templates.len()).and_then(|index| published.folders.get(index));
                let entry = folder.and_then(|index| file.resources.get(*index));
                entry.map(|resource| resource.locate(pointer))
            }
        },
        Place::Prompt(index) => file.prompts.get(index).map(|prompt| prompt.locate(pointer)),
        Place::Skill(index) => {
            // Those that cannot be read are none of the catalog.
            let read = file.skills.iter().zip(skills_read).filter(|(_, read)| **read);
            read.map(|(skill, _)| skill.name.span).nth(index)
        }
        Place::Catalog => None,
    };
    let of_file = || file.digest_key.as_ref().map_or(Span::START, |key| key.span);
    Finding {
        rule: error.rule,
        severity: Severity::Error,
        span: span.unwrap_or_else(of_file),
        message: error.problem,
        remedy: error.remedy,
        suggestion: None,
    }
}
