//! The store's folder: one folder for each process that holds records, each under that process's lock.
//!
//! ```text
//! STATE/lock            held while a process comes, or takes what a dead one held
//! STATE/format          what this folder is
//! STATE/<holder>/lock   held for as long as that process lives
//! STATE/<holder>/NAME   a record
//! ```
//!
//! So two processes can share a state folder (clients do start a stdio server twice) and never write one record.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::disk::{Disk, LocalDisk, Lock, Wait};
use super::error::{StoreError, WriteError};

const LOCK: &str = "lock";
const FORMAT: &str = "format";
const TEMPORARY: &str = ".tmp";
const RECORD: &str = ".json";

/// What the file `format` says.
const FORMAT_TEXT: &str = "{\"twodoor\":\"state\",\"v\":1}\n";
const FORMAT_VERSION: u64 = 1;

/// Why a record cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// It is of this format, which is newer than the given one.
    Newer(u64, u64),
    /// It does not fit; what does not.
    Corrupt(String),
}

/// What becomes of a record whose process is dead: other bytes, or `None` if it is not worth keeping. Pure.
pub type Adopt<'a> = &'a dyn Fn(&str, &[u8]) -> Result<Option<Vec<u8>>, Unreadable>;

/// See the module.
pub struct Store {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    own: PathBuf,
    writes: AtomicU64,
    distrusted: AtomicBool,
    _lock: Box<dyn Lock>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.own).finish()
    }
}

fn io_error<'p>(doing: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> StoreError + use<'p> {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}

fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(u128::from_be_bytes(bytes)).map(|number| format!("{number:032x}"))
}

fn is_holder(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_record(name: &str) -> bool {
    let stem = name.strip_suffix(RECORD).unwrap_or_default();
    (1..=200).contains(&stem.len()) && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// What stands in the folder beside the records, written by several processes: see `core::gate`.
const SHARED: [&str; 2] = ["approvals", "audit.jsonl"];

/// Opens the folder for what several processes write in it under locks of their own; it is made if need be.
pub fn open_shared(root: &Path) -> Result<PathBuf, StoreError> {
    prepare(root)?;
    let root = std::fs::canonicalize(root).map_err(io_error("find", root))?;
    let coming = root.join(LOCK);
    let _coming = LocalDisk.lock(&coming, Wait::Yes).map_err(io_error("lock", &coming))?;
    check_format(&LocalDisk, &root)?;
    Ok(root)
}

/// Makes the folder, or sees to it that one that is there can be trusted.
pub(crate) fn prepare(root: &Path) -> Result<(), StoreError> {
    if let Err(error) = std::fs::symlink_metadata(root)
        && error.kind() == io::ErrorKind::NotFound
    {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root);
        made.map_err(io_error("make the folder", root))?;
    }
    match LocalDisk.distrusts(root).map_err(io_error("look at", root))? {
        Some(problem) => Err(StoreError::Unusable { path: root.to_owned(), problem }),
        None => Ok(()),
    }
}

impl Store {
    /// Opens a folder of this machine, which is made if need be, and takes what dead processes held in it.
    pub fn open(root: &Path, adopt: Adopt<'_>) -> Result<Self, StoreError> {
        prepare(root)?;
        let root = std::fs::canonicalize(root).map_err(io_error("find", root))?;
        Self::open_on(Arc::new(LocalDisk), &root, adopt)
    }

    /// Opens a folder that is there.
    pub fn open_on(disk: Arc<dyn Disk>, root: &Path, adopt: Adopt<'_>) -> Result<Self, StoreError> {
        let coming = root.join(LOCK);
        let coming = disk.lock(&coming, Wait::Yes).map_err(io_error("lock", &coming))?;
        check_format(&*disk, root)?;
        let own = root.join(random_name().map_err(io_error("name a folder in", root))?);
        disk.make_folder(&own).map_err(io_error("make the folder", &own))?;
        let lock = match disk.lock(&own.join(LOCK), Wait::No).map_err(io_error("lock", &own)) {
            Ok(Some(lock)) => lock,
            // Its name was random a moment ago, and nobody else may look for the dead meanwhile.
            Ok(None) => return Err(StoreError::Foreign { path: own.join(LOCK) }),
            Err(error) => return Err(error),
        };
        let store = Self {
            disk,
            root: root.to_owned(),
            own,
            writes: AtomicU64::new(0),
            distrusted: AtomicBool::new(false),
            _lock: lock,
        };
        store.disk.sync_folder(root).map_err(io_error("sync", root))?;
        let taken = store.take_over(adopt);
        // A store that is not opened after all has to take this lock to leave no folder behind.
        drop(coming);
        taken.map(|_| store)
    }

    /// The names of all records that this process holds.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let names = self.disk.list(&self.own)?;
        Ok(names.into_iter().filter(|name| is_record(name)).collect())
    }

    /// Writes a record of this process. Once this returns, it survives whatever happens.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        if self.is_distrusted() {
            return Err(WriteError::Distrusted);
        }
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let temporary = self.own.join(format!("{number}{TEMPORARY}"));
        let written = self.disk.write_new(&temporary, bytes).map_err(WriteError::from);
        let written = written.and_then(|()| self.disk.sync_file(&temporary).map_err(|error| self.distrust(error)));
        let written = written.and_then(|()| Ok(self.disk.rename(&temporary, &self.own.join(name))?));
        if written.is_err() {
            let _ = self.disk.remove(&temporary);
            return written;
        }
        self.disk.sync_folder(&self.own).map_err(|error| self.distrust(error))
    }

    /// Reads a record of this process.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.disk.read(&self.own.join(name))
    }

    /// Removes a record of this process.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.disk.remove(&self.own.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => self.disk.sync_folder(&self.own),
        }
    }

    /// Looks for a record that another living process holds, to read it.
    pub fn find(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // Twice, as it may go from a folder not looked at yet to one that was.
        for _ in 0..2 {
            for folder in self.holders()? {
                match self.disk.read(&folder.join(name)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    read => return read.map(Some),
                }
            }
        }
        Ok(None)
    }

    /// Takes what processes held that have died since; gives the names of it.
    pub fn adopt(&self, adopt: Adopt<'_>) -> Result<Vec<String>, StoreError> {
        let coming = self.root.join(LOCK);
        let _coming = self.disk.lock(&coming, Wait::Yes).map_err(io_error("lock", &coming))?;
        self.take_over(adopt)
    }

    /// Whether nothing is written any more.
    pub fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Acquire)
    }

    /// After a failed sync nobody can say what is on the disk; a full one has merely refused.
    fn distrust(&self, error: io::Error) -> WriteError {
        let error = WriteError::from(error);
        if !matches!(error, WriteError::Full(_)) {
            self.distrusted.store(true, Ordering::Release);
            tracing::error!(%error, "the state folder is not written any more");
        }
        error
    }

    fn holders(&self) -> io::Result<Vec<PathBuf>> {
        let names = self.disk.list(&self.root)?.into_iter().filter(|name| is_holder(name));
        Ok(names.map(|name| self.root.join(name)).filter(|folder| *folder != self.own).collect())
    }

    /// Under the lock for coming. All is looked at before anything is changed.
    fn take_over(&self, adopt: Adopt<'_>) -> Result<Vec<String>, StoreError> {
        let mut dead = Vec::new();
        for folder in self.holders().map_err(io_error("list", &self.root))? {
            let lock = match self.disk.lock(&folder.join(LOCK), Wait::No) {
                // It went just now, and took its folder with it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock.map_err(io_error("lock", &folder))?,
            };
            let Some(lock) = lock else { continue };
            let mut records = Vec::new();
            let mut rest = Vec::new();
            for name in self.disk.list(&folder).map_err(io_error("list", &folder))? {
                let path = folder.join(&name);
                if is_record(&name) {
                    let bytes = self.disk.read(&path).map_err(io_error("read", &path))?;
                    check(&path, adopt(&name, &bytes))?;
                    records.push(name);
                } else if name.ends_with(TEMPORARY) || name == LOCK {
                    rest.push(path);
                } else {
                    return Err(StoreError::Foreign { path });
                }
            }
            dead.push((folder, lock, records, rest));
        }
        if dead.is_empty() {
            return Ok(Vec::new());
        }
        let mut taken = Vec::new();
        for (folder, lock, records, rest) in dead {
            taken.extend(self.take_records(&folder, &records, adopt)?);
            for path in records.iter().map(|name| folder.join(name)).chain(rest) {
                self.disk.remove(&path).map_err(io_error("remove", &path))?;
            }
            // Before the records are used here: an older copy must not come back after a crash.
            self.disk.sync_folder(&folder).map_err(io_error("sync", &folder))?;
            self.disk.remove_folder(&folder).map_err(io_error("remove", &folder))?;
            drop(lock);
        }
        self.disk.sync_folder(&self.root).map_err(io_error("sync", &self.root))?;
        Ok(taken)
    }

    fn take_records(&self, folder: &Path, names: &[String], adopt: Adopt<'_>) -> Result<Vec<String>, StoreError> {
        let mut taken = Vec::new();
        for name in names {
            let path = folder.join(name);
            let bytes = self.disk.read(&path).map_err(io_error("read", &path))?;
            let Some(bytes) = check(&path, adopt(name, &bytes))? else { continue };
            self.write(name, &bytes).map_err(|error| StoreError::Io {
                doing: "take over",
                path: path.clone(),
                source: io::Error::other(error),
            })?;
            taken.push(name.clone());
        }
        Ok(taken)
    }
}

/// Leaves no empty folder behind; one with records is taken by whoever comes next.
impl Drop for Store {
    fn drop(&mut self) {
        let Ok(Some(_coming)) = self.disk.lock(&self.root.join(LOCK), Wait::No) else { return };
        if self.disk.list(&self.own).is_ok_and(|names| names == [LOCK]) {
            let _ = self.disk.remove(&self.own.join(LOCK));
            let _ = self.disk.remove_folder(&self.own);
        }
    }
}

fn check<T>(path: &Path, read: Result<T, Unreadable>) -> Result<T, StoreError> {
    read.map_err(|unreadable| match unreadable {
        Unreadable::Newer(found, known) => StoreError::Newer { path: path.to_owned(), found, known },
        Unreadable::Corrupt(problem) => StoreError::Corrupt { path: path.to_owned(), problem },
    })
}

/// Sees to it that the folder is a store of this format; an empty one becomes one.
fn check_format(disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
    let names = disk.list(root).map_err(io_error("list", root))?;
    let path = root.join(FORMAT);
    let temporary = format!("{FORMAT}{TEMPORARY}");
    let shared = |name: &str| SHARED.contains(&name) || name.starts_with("audit.jsonl.");
    let ours =
        |name: &String| *name == LOCK || *name == FORMAT || *name == temporary || is_holder(name) || shared(name);
    if let Some(foreign) = names.iter().find(|name| !ours(name)) {
        return Err(StoreError::Foreign { path: root.join(foreign) });
    }
    if names.iter().any(|name| name == FORMAT) {
        let text = disk.read(&path).map_err(io_error("read", &path))?;
        let version = serde_json::from_slice::<serde_json::Value>(&text).ok().and_then(|v| v.get("v")?.as_u64());
        return match version {
            Some(FORMAT_VERSION) => Ok(()),
            Some(found) if found > FORMAT_VERSION => Err(StoreError::Newer { path, found, known: FORMAT_VERSION }),
            _ => Err(StoreError::Corrupt { path, problem: "it does not say what this folder is".to_owned() }),
        };
    }
    if names.iter().any(|name| is_holder(name)) {
        return Err(StoreError::Corrupt { path, problem: "it is missing, though there are records".to_owned() });
    }
    let temporary = root.join(temporary);
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("remove", &temporary)(error)),
        Ok(()) | Err(_) => {}
    }
    disk.write_new(&temporary, FORMAT_TEXT.as_bytes()).map_err(io_error("write", &temporary))?;
    disk.sync_file(&temporary).map_err(io_error("sync", &temporary))?;
    disk.rename(&temporary, &path).map_err(io_error("write", &path))?;
    disk.sync_folder(root).map_err(io_error("sync", root))
}

#[cfg(test)]
mod tests;
