//! Lists of tools, wherever they are: a surface file, a lock, a saved answer, a server, an earlier revision.
//!
//! Promises: a list is read strictly and whole or not at all; what cannot be read is "cannot tell", with what to do.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use twodoor::client::{Door, Options, Problem, Target};
use twodoor::core::process::git;
use twodoor::protocol::digest::{self, Foreign};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::limits::LISTING_TOOLS;
use twodoor::protocol::{CatalogParts, Digest, Era, Json, Revision};
use twodoor::surface::lock::{self, Lock};
use twodoor::surface::{Problems, Surface};

use super::{show, target};

/// Most bytes of a file that is read; clients receive no longer lists.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Why something cannot be told.
pub(crate) enum Stop {
    /// What is wrong, and how to mend it.
    Said(String, String),
    /// A file has problems.
    Problems(Box<Problems>),
}

impl Stop {
    fn said(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Said(problem.into(), remedy.into())
    }

    /// Says it on standard error.
    pub(crate) fn show(&self) {
        match self {
            Self::Said(problem, remedy) => show::error(problem, remedy),
            Self::Problems(problems) => show::problems_on_stderr(problems),
        }
    }
}

impl From<Problems> for Stop {
    fn from(problems: Problems) -> Self {
        Self::Problems(Box::new(problems))
    }
}

/// A list of tools, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// Where it came from.
    pub(crate) from: String,
    /// Whose it is, where that is said.
    pub(crate) name: Option<String>,
    /// Its version, where that is said.
    pub(crate) version: Option<String>,
    /// The definitions; an old lock has none.
    pub(crate) tools: Option<Vec<Json>>,
    /// The digest in both canonical forms.
    pub(crate) digest: Foreign,
}

impl Listed {
    fn of(from: impl Into<String>, tools: Vec<Json>) -> Self {
        let all = Json::Array(tools);
        let digest = digest::of_foreign(&all);
        let tools = if let Json::Array(tools) = all { Some(tools) } else { None };
        Self { from: from.into(), name: None, version: None, tools, digest }
    }

    fn of_parts(from: &str, parts: &CatalogParts) -> Self {
        let tools = parts.tools.iter().map(|tool| tool.definition(Revision::MODERN)).collect();
        let (name, version) = (Some(parts.identity.name.clone()), Some(parts.identity.version.clone()));
        Self { name, version, ..Self::of(from, tools) }
    }

    fn of_lock(from: &str, lock: Lock) -> Self {
        let digest = Some(lock.digest(Revision::MODERN));
        let version = lock.version.map(|version| version.to_string());
        // The two forms agree on whatever was locked.
        let digest = Foreign { sorted_keys: digest, rfc8785: digest };
        Self { from: from.to_owned(), name: lock.surface, version, tools: lock.tools, digest }
    }

    /// One digest as text, where the two forms agree or one alone exists.
    pub(crate) fn shown_digest(&self) -> String {
        shown(self.digest)
    }
}

/// Digests as a person reads them.
pub(crate) fn shown(digest: Foreign) -> String {
    match (digest.sorted_keys, digest.rfc8785) {
        (Some(one), Some(other)) if one == other => one.to_string(),
        (Some(one), Some(other)) => format!("{one} (sorted keys), {other} (RFC 8785)"),
        (Some(one), None) => format!("{one} (sorted keys)"),
        (None, Some(other)) => format!("{other} (RFC 8785)"),
        (None, None) => "no digest: it holds a number that no canonical form can write".to_owned(),
    }
}

/// What a file holds.
#[derive(Debug)]
pub(crate) enum Held {
    /// A surface.
    Surface(Box<CatalogParts>),
    /// A lock.
    Lock(Lock),
    /// A list as it was received.
    List(Vec<Json>),
    /// A registry's entry, with the digests that it publishes.
    Entry(Vec<Digest>),
}

/// Where a list is to be read.
pub(crate) enum Place {
    /// A file.
    File(PathBuf),
    /// A server.
    Server(Target),
    /// A file of an earlier revision: the folder git is asked in, and `REVISION:PATH`.
    Revision(PathBuf, String),
}

impl Place {
    /// What one word of a command line names; `command` is who asks.
    pub(crate) fn read(command: &str, word: &str) -> Result<Self, Stop> {
        let path = Path::new(word);
        if target::is_url(word.as_ref()) {
            let server = target::read(command, &[word.into()]);
            return server.map(Self::Server).map_err(|(problem, remedy)| Stop::Said(problem, remedy));
        }
        if word == "-" || std::fs::symlink_metadata(path).is_ok() {
            return Ok(Self::File(path.to_owned()));
        }
        // A command line has spaces; a revision and a path rarely do.
        if word.contains(char::is_whitespace) {
            let words = shlex::split(word).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| {
                Stop::said(format!("{word:?} has a quote without its end"), "close it, or give the words after --")
            })?;
            let words: Vec<_> = words.into_iter().map(Into::into).collect();
            let server = target::read(command, &words);
            return server.map(Self::Server).map_err(|(problem, remedy)| Stop::Said(problem, remedy));
        }
        if word.split_once(':').is_some_and(|(revision, file)| !revision.is_empty() && !file.is_empty()) {
            return Ok(Self::Revision(PathBuf::from("."), word.to_owned()));
        }
        Err(Stop::said(
            format!("there is no {word}"),
            "give a file, a URL, REVISION:PATH, or a command in one word with its arguments, such as \"twodoor serve\"",
        ))
    }

    /// The server of a command's words.
    pub(crate) fn command(command: &str, words: &[std::ffi::OsString]) -> Result<Self, Stop> {
        target::read(command, words).map(Self::Server).map_err(|(problem, remedy)| Stop::Said(problem, remedy))
    }

    /// The same file at an earlier revision.
    pub(crate) fn since(revision: &str, path: &Path) -> Result<Self, Stop> {
        let (Some(name), false) = (path.file_name().and_then(|name| name.to_str()), revision.contains(':')) else {
            return Err(Stop::said(
                format!("{revision:?} is no revision of a file"),
                "give a revision, such as HEAD~1",
            ));
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self::Revision(folder.to_owned(), format!("{revision}:./{name}")))
    }

    /// Reads the list.
    pub(crate) async fn list(&self, era: Option<Era>) -> Result<Listed, Stop> {
        match self {
            Self::File(path) => {
                let from = path.display().to_string();
                match hold(path)? {
                    Held::Surface(parts) => Ok(Listed::of_parts(&from, &parts)),
                    Held::Lock(lock) => Ok(Listed::of_lock(&from, lock)),
                    Held::List(tools) => Ok(Listed::of(from, tools)),
                    Held::Entry(_) => Err(Stop::said(
                        format!("{from}: a registry's entry has a digest and no tools"),
                        "hold a server against it with `twodoor verify`",
                    )),
                }
            }
            Self::Server(server) => {
                let received = receive(server, era).await?;
                let (name, version) = received.server.unzip();
                Ok(Listed { name, version, ..received.listed })
            }
            Self::Revision(folder, name) => {
                let text = git::file_of(folder, name).await.map_err(|error| {
                    Stop::said(
                        error.to_string(),
                        "give REVISION:PATH, the path from the top of the repository, such as HEAD~1:ops.yaml; a URL begins with http://",
                    )
                })?;
                let path = name.split_once(':').map_or(name.as_str(), |(_, path)| path);
                let place = folder.join(path.trim_start_matches("./"));
                match read_as(&place, name, text)? {
                    Held::Surface(parts) => Ok(Listed::of_parts(name, &parts)),
                    Held::Lock(lock) => Ok(Listed::of_lock(name, lock)),
                    Held::List(tools) => Ok(Listed::of(name.as_str(), tools)),
                    Held::Entry(_) => {
                        Err(Stop::said(format!("{name}: a registry's entry has no tools"), "name a surface or a lock"))
                    }
                }
            }
        }
    }
}

/// What a server delivered.
pub(crate) struct Received {
    pub(crate) listed: Listed,
    /// Name and version, where it says them.
    pub(crate) server: Option<(String, String)>,
    pub(crate) revision: Revision,
    /// What is unusual about it, and digests that it publishes and that are not its own.
    pub(crate) remarks: Vec<String>,
}

/// Opens a door and lists the tools, all pages. Without an era the modern door, and the legacy one where there is none.
pub(crate) async fn receive(server: &Target, era: Option<Era>) -> Result<Received, Stop> {
    let options = Options::default();
    let cannot = |problem: Problem| {
        Stop::said(format!("{}: {}", server.shown(), problem.in_full()), "see what it shows with `twodoor probe`")
    };
    let door = match era {
        Some(era) => Door::open(server, era, &options).await,
        None => Door::open_either(server, &options).await,
    };
    let door = door.map_err(cannot)?;
    let listed = door.list_tools().await;
    let opening = door.opening().clone();
    let mut remarks = opening.remarks;
    remarks.extend(door.strays());
    let end = door.close().await;
    let listing = listed.map_err(|problem| cannot(problem.with_end(end)))?;
    remarks.extend(listing.remarks);
    if !opening.has_tools {
        remarks.push("it declares no tools, so none were asked for".to_owned());
    }
    for published in opening.published.iter().chain(&listing.published) {
        let claimed = published.value.parse::<Digest>().ok();
        if claimed.is_none() || ![listing.digest.sorted_keys, listing.digest.rfc8785].contains(&claimed) {
            remarks.push(format!("the answer to {} publishes another digest: {}", published.from, published.value));
        }
    }
    let listed =
        Listed { from: server.shown(), name: None, version: None, tools: Some(listing.tools), digest: listing.digest };
    let server = opening.server.map(|server| (server.name, server.version));
    Ok(Received { listed, server, revision: opening.revision, remarks })
}

/// Reads a file and says what it is.
pub(crate) fn hold(path: &Path) -> Result<Held, Stop> {
    let from = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    match path.extension().and_then(|extension| extension.to_str()) {
        // Files that are the operator's own are opened as such.
        Some("lock") => return Ok(Held::Lock(Lock::read(path)?)),
        Some("yaml" | "yml") => return Ok(Held::Surface(Box::new(Surface::declared(path)?))),
        _ => {}
    }
    read_as(path, &from, bytes(path, &from)?)
}

fn bytes(path: &Path, from: &str) -> Result<Vec<u8>, Stop> {
    let unread = |error: std::io::Error| Stop::said(format!("{from}: {error}"), "name a file that you can read");
    let source: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(unread)?)
    };
    let mut text = Vec::new();
    source.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(unread)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > FILE_BYTES) {
        return Err(Stop::said(format!("{from}: more than {FILE_BYTES} bytes"), "no client takes a list this long"));
    }
    Ok(text)
}

fn read_as(path: &Path, from: &str, text: Vec<u8>) -> Result<Held, Stop> {
    let named = |ends: &[&str]| ends.contains(&path.extension().and_then(|e| e.to_str()).unwrap_or_default());
    if named(&["lock"]) {
        return Ok(Held::Lock(Lock::parse(path, text)?));
    }
    if named(&["yaml", "yml"]) || !matches!(text.trim_ascii_start().first(), Some(b'[' | b'{')) {
        return Ok(Held::Surface(Box::new(Surface::declared_in(path, text)?)));
    }
    let limits = JsonLimits { items: LISTING_TOOLS, ..JsonLimits::default() };
    let value = Json::parse(&text, &limits).map_err(|error| {
        Stop::said(format!("{from}: {error}"), "give one tools array, or a tools/list result, as a client received it")
    })?;
    if value.get("digest").is_some() && value.get("version").is_some() {
        return Ok(Held::Lock(Lock::parse(path, text)?));
    }
    if value.get("surface").is_some() {
        return Ok(Held::Surface(Box::new(Surface::declared_in(path, text)?)));
    }
    if let Some(published) = value.get("_meta").and_then(|meta| meta.get(PUBLISHED_KEY)) {
        return entry(from, published);
    }
    tools(from, value).map(Held::List)
}

/// Where publishers put what is theirs in a registry's entry (server.json of 2025-12-11).
const PUBLISHED_KEY: &str = "io.modelcontextprotocol.registry/publisher-provided";

fn entry(from: &str, published: &Json) -> Result<Held, Stop> {
    let members = published.as_object().unwrap_or_default().iter();
    let found = members.filter(|(key, _)| key.rsplit('/').next() == Some("toolsDigest"));
    let digests: Result<Vec<Digest>, _> = found.map(|(_, value)| value.as_str().unwrap_or_default().parse()).collect();
    match digests {
        Ok(digests) if !digests.is_empty() => Ok(Held::Entry(digests)),
        Ok(_) => Err(Stop::said(
            format!("{from}: the entry publishes no toolsDigest"),
            "write it with `twodoor export server.json`",
        )),
        Err(error) => {
            Err(Stop::said(format!("{from}: its toolsDigest is {error}"), "write it with `twodoor export server.json`"))
        }
    }
}

/// The tools of a list as it was received: an array, a result, or a whole answer.
fn tools(from: &str, value: Json) -> Result<Vec<Json>, Stop> {
    let value = match value {
        Json::Object(members) if members.iter().any(|(key, _)| key == "result") => {
            members.into_iter().find(|(key, _)| key == "result").map_or(Json::Null, |(_, result)| result)
        }
        other => other,
    };
    if value.get("nextCursor").is_some_and(|cursor| *cursor != Json::Null) {
        let remedy = "join the tools of all pages into one array: a page's digest is not the list's";
        return Err(Stop::said(format!("{from}: it is one page of a list, and another follows"), remedy));
    }
    let tools = match value {
        Json::Object(members) => members.into_iter().find(|(key, _)| key == "tools").map(|(_, tools)| tools),
        other => Some(other),
    };
    match tools {
        Some(Json::Array(tools)) => Ok(tools),
        _ => Err(Stop::said(
            format!("{from}: it is no array of tools, and has none under \"tools\""),
            "give one tools array, or a tools/list result, as a client received it",
        )),
    }
}

/// The list in a file that can hold nothing else.
pub(crate) fn received(path: &Path) -> Result<Listed, Stop> {
    let from = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let text = bytes(path, &from)?;
    let limits = JsonLimits { items: LISTING_TOOLS, ..JsonLimits::default() };
    let value = Json::parse(&text, &limits).map_err(|error| {
        Stop::said(format!("{from}: {error}"), "give one tools array, or a tools/list result, as a client received it")
    })?;
    Ok(Listed::of(from.clone(), tools(&from, value)?))
}

/// The lock beside a surface file.
pub(crate) fn lock_of(surface: &Path) -> Result<Place, Stop> {
    if lock::stands(surface) {
        return Ok(Place::File(lock::path_of(surface)));
    }
    Err(Stop::said(
        format!("{} has no lock to compare it with", surface.display()),
        "give two things to compare, or write the lock with `twodoor lock`",
    ))
}
