//! A file of a project read without blocking, beneath the project's folder.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{self, FILE_BYTES, Source, Span, check_modes};

/// A file that was read: its text, and its folder with links resolved.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) findings: Findings,
    pub(super) folder: PathBuf,
}

/// Reads `path`, which is relative to `root`, whose links are resolved. `None` if there is nothing of that name. What
/// is wrong stands in findings whose file is the relative path: no text about it tells where the project lies.
pub(super) fn open(root: &Path, path: &Path) -> Option<Result<Opened, Findings>> {
    let whole = root.join(path);
    // Also true of a link that leads nowhere, which is reported.
    fs::symlink_metadata(&whole).ok()?;
    Some(
        read(root, path, &whole)
            .map_err(|(rule, message, remedy)| {
                let mut findings = Findings::new(Source::new(path.to_owned(), String::new()));
                findings.report(rule, Span::START, message, remedy);
                findings
            })
            .and_then(|(bytes, folder)| Ok(Opened { findings: Findings::new(source::decode(path, bytes)?), folder })),
    )
}

type Refusal = (&'static Rule, String, String);

fn read(root: &Path, path: &Path, whole: &Path) -> Result<(Vec<u8>, PathBuf), Refusal> {
    let unreadable = |error: std::io::Error| {
        let remedy = "name a file that this server can read";
        (&source::UNREADABLE, format!("it cannot be read: {}", error.kind()), remedy.to_owned())
    };
    let resolved = fs::canonicalize(whole).map_err(unreadable)?;
    if !resolved.starts_with(root) {
        let message = "it is a link out of the project's folder".to_owned();
        return Err((&source::LINK, message, "put the file itself into the project".to_owned()));
    }
    // Asked by name first: opening a device may have an effect.
    let named = fs::metadata(&resolved).map_err(unreadable)?;
    if !named.is_file() {
        let kind = if named.is_dir() { "a folder" } else { "a FIFO, a socket or a device" };
        return Err((&source::KIND, format!("it is {kind}"), "put a regular file in its place".to_owned()));
    }
    // Not a link any more, and should a FIFO have taken its place meanwhile, opening it does not wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&resolved, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
    let file = File::from(opened);
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err((&source::KIND, "it was replaced while it was opened".to_owned(), "try again".to_owned()));
    }
    let folder = whole.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let Some(folder) = folder.filter(|folder| folder.starts_with(root)) else {
        let message = "its folder is a link out of the project's folder".to_owned();
        return Err((&source::LINK, message, "put the folder itself into the project".to_owned()));
    };
    let modes = check_modes(&metadata, resolved.parent().unwrap_or(root));
    modes.map_err(|(message, _)| {
        (&source::MODE, message, "run `chmod o-w` on it and its folder, after reading what it says now".to_owned())
    })?;
    let too_large = || {
        let message = format!("{} is larger than {FILE_BYTES} bytes", path.display());
        (&source::SIZE, message, "split it, or shorten its descriptions".to_owned())
    };
    if metadata.len() > FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES {
        return Err(too_large());
    }
    Ok((bytes, folder))
}
