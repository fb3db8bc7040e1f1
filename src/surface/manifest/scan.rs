//! Everything that a project registers, in one pass over its folders.
//!
//! Promises: sorted by path; what cannot be read is an entry with the reason and hides no other; bounded in
//! folders, bytes and depth; blocks on nothing. What was looked at has stamps, by which a change is noticed.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::rules::{HIDDEN, TOO_MANY, TWICE};
use super::{CapabilityKind, Manifest, SkillManifest, file, read};
use crate::protocol::Json;
use crate::protocol::json::{JsonLimits, visible};
use crate::surface::problem::{Findings, Problems, Rule};
use crate::surface::source::{LINK, Source, Span, UNREADABLE};

/// The file of a project that names folders of tools which are not listed.
pub const HIDDEN_FILE: &str = "hidden-tools.json";

/// Most folders of one kind that are read.
const FOLDERS_AT_MOST: usize = 1000;
/// Most names in a folder that are looked at.
const NAMES_AT_MOST: usize = 20_000;
/// What all manifests may come to, aliases written out.
const BYTES_AT_MOST: usize = 64 * 1024 * 1024;

const PLACES: [(CapabilityKind, &str, &str); 3] = [
    (CapabilityKind::Tool, "tools", "tool.yaml"),
    (CapabilityKind::Agent, "agents", "agent.yaml"),
    (CapabilityKind::Skill, "skills", "SKILL.md"),
];

/// What a project registers: tools, agents, then skills, each sorted by path.
#[derive(Debug, Clone)]
pub struct Scan {
    /// What was found, and what could not be read.
    pub entries: Vec<ScanEntry>,
    /// What was looked at.
    pub stamps: Vec<Stamp>,
    /// The folders of tools that `hidden-tools.json` names; an error if it cannot be read.
    pub hidden: Result<Vec<String>, Problems>,
}

/// One folder of a project.
#[derive(Debug, Clone)]
pub struct ScanEntry {
    /// What it should be.
    pub kind: CapabilityKind,
    /// The folder's name.
    pub folder: String,
    /// What it is, or why it cannot be used; the problems name files relative to the project.
    pub found: Result<Found, Problems>,
}

/// What a folder of a project registers.
#[derive(Debug, Clone)]
pub enum Found {
    /// A tool or an agent.
    Capability(Arc<Manifest>),
    /// A skill.
    Skill(Arc<SkillManifest>),
}

impl Found {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Capability(manifest) => &manifest.name,
            Self::Skill(skill) => &skill.name,
        }
    }
}

impl Scan {
    /// The tool or the agent of that name; tools come before agents.
    pub fn find(&self, kind: Option<CapabilityKind>, name: &str) -> Option<&Arc<Manifest>> {
        self.capabilities().find(|manifest| manifest.name == name && kind.is_none_or(|kind| kind == manifest.kind))
    }

    /// Every tool and agent that can be read.
    pub fn capabilities(&self) -> impl Iterator<Item = &Arc<Manifest>> {
        self.entries.iter().filter_map(|entry| match &entry.found {
            Ok(Found::Capability(manifest)) => Some(manifest),
            Ok(Found::Skill(_)) | Err(_) => None,
        })
    }

    /// Whether nothing that was looked at has changed since.
    pub fn is_current(&self) -> bool {
        self.stamps.iter().all(Stamp::holds)
    }
}

/// A file or a folder as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    path: PathBuf,
    seen: Option<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: (u64, u64),
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    /// How it is now.
    fn of(path: PathBuf) -> Self {
        let seen = seen(&path);
        Self { path, seen }
    }

    fn holds(&self) -> bool {
        seen(&self.path) == self.seen
    }
}

fn seen(path: &Path) -> Option<Seen> {
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    Some(Seen {
        size: metadata.len(),
        modified: metadata.modified().ok(),
        #[cfg(unix)]
        inode: (metadata.dev(), metadata.ino()),
        #[cfg(unix)]
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// Reads a project; `root` is its folder, links resolved.
pub fn scan(root: &Path) -> Scan {
    let scan = Scan { entries: Vec::new(), stamps: Vec::new(), hidden: Ok(Vec::new()) };
    let mut scanning = Scanning { root, scan, bytes: 0 };
    for (kind, place, manifest) in PLACES {
        scanning.place(kind, place, manifest);
    }
    scanning.scan.hidden = scanning.hidden();
    scanning.scan
}

struct Scanning<'r> {
    root: &'r Path,
    scan: Scan,
    /// What the manifests read so far come to.
    bytes: usize,
}

impl Scanning<'_> {
    fn place(&mut self, kind: CapabilityKind, place: &str, manifest: &str) {
        let folder = self.root.join(place);
        // Before it is read: what changes meanwhile is then noticed later.
        self.scan.stamps.push(Stamp::of(folder.clone()));
        let Some((names, more)) = self.names(kind, place, &folder) else { return };
        let mut first: HashMap<String, String> = HashMap::new();
        for name in names {
            let path = Path::new(place).join(&name).join(manifest);
            self.stamp(&path);
            let Some(opened) = file::open(self.root, &path) else { continue };
            let mut found = opened.map_err(Findings::into_problems).and_then(|opened| self.read(kind, opened));
            if let Ok(named) = &found {
                let own = named.name().to_owned();
                if let Some(earlier) = first.get(&own) {
                    let message = format!("{place}/{earlier} has the name {own:?} too, and comes first");
                    found = Err(problem(&path, &TWICE, message, "rename one of the two"));
                } else {
                    first.insert(own, name.clone());
                }
            }
            if let Ok(Found::Capability(manifest)) = &found {
                self.scan.stamps.push(Stamp::of(manifest.entrypoint.clone()));
            }
            self.scan.entries.push(ScanEntry { kind, folder: name, found });
        }
        if more {
            let message = format!("{place} holds more than the {FOLDERS_AT_MOST} folders that are read");
            let found = Err(problem(Path::new(place), &TOO_MANY, message, "take away what is not used"));
            self.scan.entries.push(ScanEntry { kind, folder: place.to_owned(), found });
        }
    }

    /// The folder of a manifest, for what comes and goes in it, and the manifest.
    fn stamp(&mut self, manifest: &Path) {
        let whole = self.root.join(manifest);
        let folder = whole.parent().map(|folder| Stamp::of(folder.to_owned()));
        self.scan.stamps.extend(folder);
        self.scan.stamps.push(Stamp::of(whole));
    }

    /// The names of the folders that are read, sorted, and whether there are more. `None` if there is no such place.
    fn names(&mut self, kind: CapabilityKind, place: &str, folder: &Path) -> Option<(Vec<String>, bool)> {
        let mut refuse = |rule: &Rule, message: &str, remedy: &str| {
            let found = Err(problem(Path::new(place), rule, message.to_owned(), remedy));
            self.scan.entries.push(ScanEntry { kind, folder: place.to_owned(), found });
            None
        };
        fs::symlink_metadata(folder).ok()?;
        let Ok(resolved) = fs::canonicalize(folder) else {
            return refuse(&UNREADABLE, "it leads nowhere, or to what this server cannot reach", "mend the link");
        };
        if !resolved.starts_with(self.root) {
            return refuse(&LINK, "it is a link out of the project's folder", "put the folder into the project");
        }
        let Ok(entries) = fs::read_dir(&resolved) else {
            return refuse(
                &UNREADABLE,
                "it is no folder that can be read",
                "make it a folder that this server can read",
            );
        };
        let mut names = Vec::new();
        let mut more = false;
        for (seen, entry) in entries.flatten().enumerate() {
            if seen >= NAMES_AT_MOST {
                more = true;
                break;
            }
            // What is not UTF-8 cannot be named in `hide`, nor in a text about it.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let skipped = name.starts_with(['_', '.']) || (kind == CapabilityKind::Skill && name == "tests");
            let is_folder = || fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            let is_link = || entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if !skipped && (is_folder() || is_link()) {
                names.push(name);
            }
        }
        names.sort();
        more |= names.len() > FOLDERS_AT_MOST;
        names.truncate(FOLDERS_AT_MOST);
        Some((names, more))
    }

    fn read(&mut self, kind: CapabilityKind, opened: file::Opened) -> Result<Found, Problems> {
        let file::Opened { mut findings, folder } = opened;
        if self.bytes > BYTES_AT_MOST {
            let message = "the manifests before this one come to more than 64 MiB";
            findings.report(&TOO_MANY, Span::START, message, "take away what is not used");
            return Err(findings.into_problems());
        }
        let (found, bytes) = if kind == CapabilityKind::Skill {
            let read::Read { facts, bytes } = read::skill(&folder, &mut findings);
            (facts.map(|skill| Found::Skill(Arc::new(skill))), bytes)
        } else {
            let read::Read { facts, bytes } = read::capability(kind, &folder, &mut findings);
            (facts.map(|manifest| Found::Capability(Arc::new(manifest))), bytes)
        };
        self.bytes = self.bytes.saturating_add(bytes);
        match found {
            Some(found) if !findings.has_errors() => Ok(found),
            _ => Err(findings.into_problems()),
        }
    }

    fn hidden(&mut self) -> Result<Vec<String>, Problems> {
        let path = Path::new(HIDDEN_FILE);
        self.scan.stamps.push(Stamp::of(self.root.join(path)));
        let Some(opened) = file::open(self.root, path) else { return Ok(Vec::new()) };
        let findings = opened.map_err(Findings::into_problems)?.findings;
        let refuse = |message: String| {
            let remedy = "write it like {\"hide\": [\"folder\"]}; until then no tool is listed";
            Err(problem(path, &HIDDEN, message, remedy))
        };
        let value = match Json::parse(findings.source().text().as_bytes(), &JsonLimits::default()) {
            Ok(value) => value,
            Err(error) => return refuse(format!("it is no JSON: {error}")),
        };
        let Some(Json::Array(names)) = value.get("hide") else {
            return refuse("it has no list `hide`".to_owned());
        };
        let names: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        names.map_or_else(|| refuse("`hide` holds what is no text".to_owned()), Ok)
    }
}

/// A problem of a whole file.
fn problem(path: &Path, rule: &Rule, message: String, remedy: &str) -> Problems {
    let mut findings = Findings::new(Source::new(path.to_owned(), String::new()));
    findings.report(rule, Span::START, visible(message.chars()), remedy);
    findings.into_problems()
}
