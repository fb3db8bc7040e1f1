//! The file system as the store sees it: a port, so that a test can fail any step of any write.
//!
//! Promises of the real one: files are made for their owner alone (0600, folders 0700), never through
//! a link, and a file that is no plain file is never waited for; what others could have written is not
//! read. Used by [`super::Store`] and by what stands beside its records.

use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Longest file that is read, bytes: four times the longest that is written.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What the store needs of a file system.
pub trait Disk: Send + Sync + 'static {
    /// The names in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// What keeps a folder from being trusted: others could have written in it.
    fn distrusts(&self, folder: &Path) -> io::Result<Option<&'static str>>;
    /// A whole file, which others could not have written.
    fn read(&self, file: &Path) -> io::Result<Vec<u8>>;
    /// Writes a file that is not there yet.
    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes a file's bytes survive a loss of power.
    fn sync_file(&self, file: &Path) -> io::Result<()>;
    /// Gives a file another name, over whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, file: &Path) -> io::Result<()>;
    /// Makes a folder that is not there yet.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;
    /// Makes a folder's names survive a loss of power.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Locks a file, which is made if need be. `None` if another process has it and it is not waited for.
    fn lock(&self, file: &Path, wait: Wait) -> io::Result<Option<Box<dyn Lock>>>;
}

/// Whether a lock is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until whoever has it lets go.
    Yes,
    /// Not at all.
    No,
}

/// A lock, let go when this is dropped or its process dies, however it dies.
pub trait Lock: Send + Sync {}

impl Lock for File {}

/// What lets others have written a file or a folder.
fn of_others(about: &Metadata) -> Option<&'static str> {
    if about.uid() != rustix::process::geteuid().as_raw() {
        Some("belongs to another user")
    } else if about.mode() & 0o022 != 0 {
        Some("can be written by other users")
    } else {
        None
    }
}

fn invalid(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

fn open(file: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR)?))
}

impl Disk for LocalDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn distrusts(&self, folder: &Path) -> io::Result<Option<&'static str>> {
        let about = std::fs::symlink_metadata(folder)?;
        let problem = if about.is_symlink() {
            Some("is a link")
        } else if !about.is_dir() {
            Some("is not a folder")
        } else {
            of_others(&about)
        };
        Ok(problem)
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let opened = match open(file, OFlags::RDONLY) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(invalid("it is a link, which twodoor never makes: remove it"));
            }
            opened => opened?,
        };
        let about = opened.metadata()?;
        if !about.is_file() || about.len() > FILE_BYTES {
            return Err(invalid("it is no plain file, or too long to be one of ours"));
        }
        if let Some(problem) = of_others(&about) {
            return Err(invalid(format!("it {problem}, so it need not be what twodoor wrote: remove it")));
        }
        let mut bytes = Vec::new();
        opened.take(FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        open(file, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?.write_all(bytes)
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        open(file, OFlags::WRONLY)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        std::fs::remove_file(file)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(folder)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        std::fs::remove_dir(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?.sync_all()
    }

    fn lock(&self, file: &Path, wait: Wait) -> io::Result<Option<Box<dyn Lock>>> {
        let file = open(file, OFlags::RDWR | OFlags::CREATE)?;
        match wait {
            Wait::Yes => file.lock()?,
            Wait::No => match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            },
        }
        Ok(Some(Box::new(file)))
    }
}
