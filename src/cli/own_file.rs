//! Files that belong to somebody else: read, and put back in one step.
//!
//! Promises: whoever reads the file meanwhile finds the old text or the new one, whole; its mode and its owner stay;
//! no link is followed, neither at the file nor on the way to it out of the folder that it must be beneath; a file that
//! changed since it was read is not overwritten.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use twodoor::surface::json_text::MOST_BYTES;

use super::place::Beside;

/// What is wrong with a file, and how to mend it.
pub(crate) type Problem = (String, String);

/// Who may read a file that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Its owner alone.
    Owner,
    /// Whoever the process allows.
    Open,
}

/// A file as it was found.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    found: Option<(Vec<u8>, fs::Metadata)>,
    beneath: Option<PathBuf>,
}

impl OwnFile {
    /// Reads the file, if it is there. With `beneath` it must not lead out of that folder.
    pub(crate) fn read(path: &Path, beneath: Option<&Path>) -> Result<Self, Problem> {
        let path = std::path::absolute(path).map_err(|error| unreadable(path, &error))?;
        let own = Self { found: read(&path)?, path, beneath: beneath.map(Path::to_owned) };
        own.check_folder()?;
        Ok(own)
    }

    /// Its absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; nothing if it is not there.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.found.as_ref().map(|(bytes, _)| bytes.as_slice())
    }

    /// Puts these bytes in its place, and makes the folders that it stands in.
    pub(crate) fn replace(&self, bytes: &[u8], privacy: Privacy) -> Result<(), Problem> {
        let unwritable = |error: &std::io::Error| {
            (format!("{} cannot be written: {error}", self.path.display()), "write it where you may".to_owned())
        };
        let folder = self.folder();
        fs::create_dir_all(folder).map_err(|error| unwritable(&error))?;
        self.check_folder()?;
        let written = self.write(bytes, privacy).map_err(|error| unwritable(&error))?;
        self.check_unchanged()?;
        written.replace().map_err(|error| unwritable(&error))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn write(&self, bytes: &[u8], privacy: Privacy) -> std::io::Result<Beside> {
        let mode = match (&self.found, privacy) {
            (Some(_), _) | (None, Privacy::Owner) => 0o600,
            (None, Privacy::Open) => 0o666,
        };
        Beside::write(&self.path, bytes, mode, |file| {
            let Some((_, found)) = &self.found else { return Ok(()) };
            let made = file.metadata()?;
            let owner = (found.uid() != made.uid()).then(|| rustix::fs::Uid::from_raw(found.uid()));
            let group = (found.gid() != made.gid()).then(|| rustix::fs::Gid::from_raw(found.gid()));
            if owner.is_some() {
                rustix::fs::fchown(file, owner, group)?;
            } else if group.is_some() {
                // Whoever is not of the group cannot give the file to it, and may write it all the same.
                let _ = rustix::fs::fchown(file, None, group);
            }
            file.set_permissions(fs::Permissions::from_mode(found.mode() & 0o7777))
        })
    }

    /// The folder is the one that it is called, as far as it exists.
    fn check_folder(&self) -> Result<(), Problem> {
        let Some(beneath) = &self.beneath else { return Ok(()) };
        let (folder, real) = nearest(self.folder())?;
        let (_, within) = nearest(beneath)?;
        if real.starts_with(&within) {
            return Ok(());
        }
        let problem = format!("{} leads to {}, out of {}", folder.display(), real.display(), beneath.display());
        Err((problem, "name the file itself with --path, if that is the one you mean".to_owned()))
    }

    fn check_unchanged(&self) -> Result<(), Problem> {
        let now = read(&self.path)?;
        if now.as_ref().map(|(bytes, _)| bytes.as_slice()) == self.bytes() {
            return Ok(());
        }
        let problem = format!("{} was changed by another program meanwhile", self.path.display());
        Err((problem, "run the command again; close the client first if it writes the file itself".to_owned()))
    }
}

/// The part of a path that exists, as it is called and as it is.
fn nearest(path: &Path) -> Result<(&Path, PathBuf), Problem> {
    let mut folder = path;
    loop {
        match (folder.canonicalize(), folder.parent()) {
            (Ok(real), _) => return Ok((folder, real)),
            // A link that leads nowhere is there all the same.
            (Err(error), Some(parent)) if error.kind() == ErrorKind::NotFound && folder.symlink_metadata().is_err() => {
                folder = parent;
            }
            (Err(error), _) => return Err(unreadable(folder, &error)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    (format!("{} cannot be read: {error}", path.display()), "name a file that you may read".to_owned())
}

fn read(path: &Path) -> Result<Option<(Vec<u8>, fs::Metadata)>, Problem> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => {
            let target = fs::read_link(path).map(|target| format!(" to {}", target.display())).unwrap_or_default();
            let remedy = "name the file that it leads to with --path, if that is the one you mean".to_owned();
            return Err((format!("{} is a link{target}: expected a file", path.display()), remedy));
        }
        Err(error) => return Err(unreadable(path, &error.into())),
    };
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        let problem = format!("{} is no regular file", path.display());
        return Err((problem, "name a file with --path".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MOST_BYTES) {
        let problem = format!("{} has more than {MOST_BYTES} bytes", path.display());
        return Err((problem, "change it by hand: --print shows what belongs there".to_owned()));
    }
    Ok(Some((bytes, metadata)))
}
