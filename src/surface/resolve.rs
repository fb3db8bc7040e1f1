//! Names in a surface file made into absolute paths of this machine.
//!
//! Promises: a path that comes out exists, has its links resolved where it confines something, and
//! was compared by its parts, never as text. Nothing here is chosen by a caller of a tool.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::declaration::PROMPT_BYTES;
use super::file::{BackendEntry, PathEntry, SkillEntry, SurfaceFile, Want};
use super::listing::{self, Listing};
use super::problem::did_you_mean;
use super::source::check_modes;
use super::target::Project;
use super::{manifest, media, skills, template};
use crate::protocol::SkillParts;

/// What the paths of a surface are resolved against.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// The file's folder.
    folder: PathBuf,
    /// Where programs are searched for, in order.
    search: Vec<PathBuf>,
}

impl Host {
    /// The file's folder on this machine; programs are searched for as this process would.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        // An empty or relative entry means the current folder, which whoever starts the server chooses.
        let search = std::env::split_paths(&search).filter(|entry| entry.is_absolute()).collect();
        Self { folder, search }
    }
}

/// Why a name does not resolve.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) remedy: String,
    pub(crate) suggestion: Option<String>,
}

fn fault<T>(message: String, remedy: &str) -> Result<T, Fault> {
    Err(Fault { message, remedy: remedy.to_owned(), suggestion: None })
}

/// A surface's paths.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) root: Result<PathBuf, Fault>,
    /// One for each backend, in their order.
    pub(crate) backends: Vec<ResolvedBackend>,
    /// One for each skill, in their order: its folder, and what is in it.
    pub(crate) skills: Vec<ResolvedSkill>,
    /// The registry, if one was said.
    pub(crate) project: Option<Result<Project, Fault>>,
}

/// A skill's folder; `None` where nothing was said, or nothing can be said without a root.
pub(crate) type ResolvedSkill = Option<Result<(PathBuf, SkillParts), Fault>>;

/// A backend's paths; `None` where nothing was said, or nothing can be said without a root.
#[derive(Debug)]
pub(crate) struct ResolvedBackend {
    pub(crate) cwd: Option<Result<PathBuf, Fault>>,
    pub(crate) program: Option<Result<PathBuf, Fault>>,
    /// One for each path that is read, in their order; empty without a root.
    pub(crate) paths: Vec<ResolvedPath>,
}

/// What a path that is read leads to.
#[derive(Debug)]
pub(crate) enum ResolvedPath {
    /// A file, or what only a placeholder's value completes.
    Sound,
    /// A folder with these files.
    Folder(Listing),
    /// A file, and its text if that can be a prompt's.
    Text(Option<String>),
    /// Nothing yet.
    Absent(Fault),
    /// Nothing that may be read.
    Refused(Fault),
}

/// Resolves all paths of a file.
pub(crate) fn resolve(file: &SurfaceFile<'_>, host: &Host) -> Resolved {
    let said = file.root.as_ref().map_or(".", |root| root.value.as_str());
    let root = folder(&host.folder, said);
    let backends = file.backends().map(|backend| resolve_backend(backend, root.as_deref().ok(), host)).collect();
    let skills = file.skills.iter().map(|skill| resolve_skill(skill, root.as_deref().ok())).collect();
    let project = file.registry.as_ref().map(|said| project(&host.folder, &said.value));
    Resolved { root, backends, skills, project }
}

fn project(base: &Path, said: &str) -> Result<Project, Fault> {
    let root = folder(base, said)?;
    let scan = manifest::scan(&root);
    Ok(Project { root, scan })
}

fn resolve_skill(skill: &SkillEntry<'_>, root: Option<&Path>) -> ResolvedSkill {
    let (root, said) = (root?, skill.folder.as_ref()?);
    let read = |folder: PathBuf| {
        let mime_type = |path: &str| media::type_of(path).unwrap_or_else(|| "application/octet-stream".to_owned());
        match skills::read(&folder, skill.uri(), mime_type) {
            Ok(parts) => Ok((folder, parts)),
            Err(error) => fault(error.to_string(), "mend the folder: each skill is one, with a SKILL.md at its root"),
        }
    };
    Some(beneath(root, &said.value).and_then(read))
}

fn resolve_backend(tool: &BackendEntry<'_>, root: Option<&Path>, host: &Host) -> ResolvedBackend {
    let cwd = tool.cwd.as_ref().and_then(|cwd| Some(beneath(root?, &cwd.value)));
    let paths = root.map(|root| tool.paths.iter().map(|path| resolve_path(root, path)).collect());
    let program = tool.run.first().and_then(|first| match first {
        super::file::ElementEntry::One(program) => template::literal(&program.value),
        super::file::ElementEntry::Group(_) => None,
    });
    let found =
        program.and_then(|name| Some(find_program(name, root, host)?.map_err(|f| unsplit(f, name, root, host))));
    ResolvedBackend { cwd, program: found, paths: paths.unwrap_or_default() }
}

/// What a path that is read leads to.
fn resolve_path(root: &Path, PathEntry { path, want }: &PathEntry) -> ResolvedPath {
    let refused = |message: String, remedy: &str| {
        ResolvedPath::Refused(Fault { message, remedy: remedy.to_owned(), suggestion: None })
    };
    let said = path.value.as_str();
    let outside = Path::new(said).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
    if said.is_empty() || outside {
        let remedy = "name it relative to `root` and without `..`, or widen `root`";
        return refused(format!("{said:?} leads to nothing beneath the root"), remedy);
    }
    if matches!(want, Want::Pattern) {
        return ResolvedPath::Sound;
    }
    let Ok(found) = fs::canonicalize(root.join(said)) else {
        let suggestion = meant(root, said);
        let remedy = "correct its name, unless it comes later: until then there is nothing to read".to_owned();
        return ResolvedPath::Absent(Fault { message: format!("there is no {said:?}"), remedy, suggestion });
    };
    if !found.starts_with(root) {
        return refused(format!("{said:?} is a link out of the root"), "name what it leads to, or widen `root`");
    }
    match want {
        Want::Folder(matching) if found.is_dir() => ResolvedPath::Folder(listing::list(root, &found, matching)),
        Want::Folder(_) => refused(format!("{said:?} is not a folder"), "name a folder, or write `file`"),
        _ if !found.is_file() => refused(format!("{said:?} is not a regular file"), "name a file that can be read"),
        Want::Text(_) => ResolvedPath::Text(text(&found)),
        Want::File | Want::Pattern => ResolvedPath::Sound,
    }
}

/// The text of a regular file, if it can be a prompt's.
fn text(path: &Path) -> Option<String> {
    let most = u64::try_from(PROMPT_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes)).ok()?;
    String::from_utf8(bytes).ok().filter(|text| text.len() <= PROMPT_BYTES)
}

/// The path that was probably meant: another name in the same folder.
fn meant(root: &Path, said: &str) -> Option<String> {
    let (folder, name) = said.rsplit_once('/').map_or(("", said), |(folder, name)| (folder, name));
    let inside = fs::canonicalize(root.join(folder)).ok().filter(|folder| folder.starts_with(root))?;
    let meant = did_you_mean(name, names(&[inside]).iter().map(String::as_str))?;
    Some(if folder.is_empty() { meant } else { format!("{folder}/{meant}") })
}

/// A program's name that is a command line, of which no shell makes words, is shown as the words.
fn unsplit(fault: Fault, name: &str, root: Option<&Path>, host: &Host) -> Fault {
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.split_first() {
        Some((first, rest)) if !rest.is_empty() && matches!(find_program(first, root, host), Some(Ok(_))) => {
            let remedy = format!("write [{}]: no shell reads this, so nothing splits it", words.join(", "));
            Fault { remedy, suggestion: None, ..fault }
        }
        _ => fault,
    }
}

fn folder(base: &Path, said: &str) -> Result<PathBuf, Fault> {
    let remedy = "name a folder that exists; a relative one starts at the surface file's folder";
    let Ok(path) = fs::canonicalize(base.join(said)) else {
        return fault(format!("there is no folder {said:?}"), remedy);
    };
    if path.is_dir() { Ok(path) } else { fault(format!("{said:?} is not a folder"), remedy) }
}

/// A folder beneath the root, links resolved.
fn beneath(root: &Path, said: &str) -> Result<PathBuf, Fault> {
    let path = folder(root, said)?;
    let written_outside =
        Path::new(said).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
    if written_outside || !path.starts_with(root) {
        let remedy = "name a folder beneath `root`, relative to it and without `..`, or widen `root`";
        return fault(format!("{said:?} leads out of the root"), remedy);
    }
    Ok(path)
}

/// The absolute path of a program. `None` for a relative one without a root, which is reported instead.
fn find_program(name: &str, root: Option<&Path>, host: &Host) -> Option<Result<PathBuf, Fault>> {
    let path = Path::new(name);
    if name.is_empty() || path.components().any(|part| part == Component::ParentDir) {
        let remedy = "name it absolutely, beneath `root`, or by its bare name, which is searched for";
        return Some(fault(format!("{name:?} is not a program's name"), remedy));
    }
    if path.is_absolute() {
        return Some(check_program(path, name));
    }
    if name.contains('/') {
        let root = root?;
        let whole = root.join(path.components().collect::<PathBuf>());
        let inside = fs::canonicalize(&whole).map_or(true, |resolved| resolved.starts_with(root));
        if !inside {
            return Some(fault(format!("{name:?} is a link out of the root"), "name the program itself, absolutely"));
        }
        return Some(check_program(&whole, name));
    }
    let candidates = host.search.iter().map(|folder| folder.join(name)).filter(|path| path.is_file());
    let mut refused = None;
    for candidate in candidates {
        match check_program(&candidate, name) {
            Ok(path) => return Some(Ok(path)),
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    let suggestion = || did_you_mean(name, names(&host.search).iter().map(String::as_str));
    Some(Err(refused.unwrap_or_else(|| Fault {
        message: format!("no program {name:?} is found in PATH"),
        remedy: "install it, or name it absolutely".to_owned(),
        suggestion: suggestion(),
    })))
}

/// Names of files, for a suggestion.
fn names(search: &[PathBuf]) -> Vec<String> {
    /// Enough for what is usually installed; a suggestion is not worth more.
    const NAMES: usize = 5000;
    let entries = search.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries.take(NAMES).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Whether a file can be run, and only by those who may replace it.
pub(super) fn check_program(path: &Path, name: &str) -> Result<PathBuf, Fault> {
    let Ok(resolved) = fs::canonicalize(path) else {
        return fault(format!("there is no program {name:?}"), "install it, or correct its path");
    };
    let metadata = match fs::metadata(&resolved) {
        Ok(metadata) if metadata.is_file() => metadata,
        _ => return fault(format!("{name:?} is not a file"), "name the program, not its folder"),
    };
    if !is_executable(&metadata) {
        return fault(format!("{name:?} is not executable"), "run `chmod +x` on it");
    }
    let folder = resolved.parent().unwrap_or(Path::new("/"));
    if let Err((message, remedy)) = check_modes(&metadata, folder) {
        return fault(format!("{name:?}: {message}"), &remedy);
    }
    if is_script_without_interpreter(&resolved) {
        let remedy = "begin it with a line such as #!/bin/sh: without one only a shell would run it";
        return fault(format!("{name:?} is a script without a first line that names its interpreter"), remedy);
    }
    // The name that was found, not what a link of it leads to: one binary may serve many names.
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    Ok(folder.map_or(resolved, |folder| folder.join(path.file_name().unwrap_or(OsStr::new(name)))))
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

fn is_script_without_interpreter(path: &Path) -> bool {
    let mut start = Vec::new();
    // What may be run but not read is left to the kernel.
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    let is_text = start.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e));
    cfg!(unix) && read.is_ok() && is_text && !start.starts_with(b"#!")
}
