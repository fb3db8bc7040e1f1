//! Approvals out of band: requests that a person decides at a terminal, kept in the state folder.
//!
//! Promises: a decision survives whatever happens once it was acknowledged; an approval is used once, by
//! whichever process is first; what is damaged, foreign, of a newer form, or could have been written by
//! another user is refused by name and never overwritten. Several processes share the folder: each change is made under a lock that is held for
//! that change.
//!
//! ```text
//! STATE/approvals/lock      held for a change
//! STATE/approvals/ID.json   a request
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bound::Bound;
use super::desk::now;
use super::record::{FORM, Request, Standing, Unreadable};
use crate::core::store::disk::{Lock, Wait};
use crate::core::store::{Disk, LocalDisk, StoreError, WriteError, open_shared, prepare};
use crate::protocol::limits::SEALED_STATE_LIFE;

const FOLDER: &str = "approvals";
const LOCK: &str = "lock";
const RECORD: &str = ".json";
const TEMPORARY: &str = ".tmp";

/// Most requests that are kept at one time.
const AT_MOST: usize = 1024;
/// Most of them that one caller has made.
const OF_ONE_CALLER: usize = 64;

/// Why a request cannot be read, made or decided.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The folder cannot be trusted or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Too many are waited for.
    #[error("too many calls wait for an approval")]
    Full,
    /// There is none of that name.
    #[error("there is no request {0:?} that can still be decided")]
    Unknown(String),
    /// Several begin like that.
    #[error("several requests begin with {0:?}")]
    Ambiguous(String),
    /// It was decided already.
    #[error("the request {id} is {} already", standing.name())]
    Decided {
        /// Its name.
        id: String,
        /// Where it stands.
        standing: Standing,
    },
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may run once.
    Approve,
    /// It may not run.
    Deny,
}

/// See the module.
pub struct Approvals {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    distrusted: AtomicBool,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Approvals").field(&self.folder).finish()
    }
}

fn failed<'p>(doing: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> StoreError + use<'p> {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}

fn is_id(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl Approvals {
    /// Opens the requests in a state folder, which is made if need be; all of them are looked at.
    pub fn open(state: &Path) -> Result<Self, StoreError> {
        let folder = open_shared(state)?.join(FOLDER);
        prepare(&folder)?;
        Self::open_on(Arc::new(LocalDisk), folder)
    }

    /// Opens a folder that is there.
    pub(super) fn open_on(disk: Arc<dyn Disk>, folder: PathBuf) -> Result<Self, StoreError> {
        let approvals = Self { disk, folder, distrusted: AtomicBool::new(false) };
        let _lock = approvals.lock()?;
        approvals.all()?;
        Ok(approvals)
    }

    /// Asks for a call: where its request stands, which is made if there is none. One that is approved counts as used
    /// from here on; the answer says that it was approved to whoever is first.
    pub(super) fn ask(&self, bound: &Bound, text: String) -> Result<Standing, ApprovalError> {
        let _lock = self.lock()?;
        let (id, key, now) = (bound.request_id(), bound.key().to_string(), now());
        if let Some(mut request) = self.find(&id)?.filter(|request| request.is_alive(now)) {
            if request.key != key {
                // Somebody looked for arguments with the same name, which takes a machine a long time.
                return Err(ApprovalError::Full);
            }
            let standing = request.standing;
            if standing == Standing::Approved {
                request.standing = Standing::Used;
                // Until a replay of it would be too late anyway.
                request.expires = now.saturating_add(SEALED_STATE_LIFE.as_secs());
                self.write(&request)?;
            }
            return Ok(standing);
        }
        let kept = self.sweep(now)?;
        let of_caller = kept.iter().filter(|request| request.principal == bound.principal).count();
        if kept.len() >= AT_MOST || of_caller >= OF_ONE_CALLER {
            return Err(ApprovalError::Full);
        }
        self.write(&Request {
            v: FORM,
            id,
            key,
            principal: bound.principal.clone(),
            surface: bound.surface.clone(),
            version: bound.version.clone(),
            tool: bound.tool.clone(),
            tool_digest: bound.tool_digest.to_string(),
            arguments_digest: bound.arguments.to_string(),
            text,
            standing: Standing::Pending,
            created: now,
            expires: now.saturating_add(SEALED_STATE_LIFE.as_secs()),
        })?;
        Ok(Standing::Pending)
    }

    /// All requests that still count, the oldest first.
    pub fn list(&self) -> Result<Vec<Request>, ApprovalError> {
        let _lock = self.lock()?;
        let now = now();
        let mut all = self.all()?;
        all.retain(|request| request.is_alive(now));
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    /// The one whose name begins like that.
    pub fn named(&self, start: &str) -> Result<Request, ApprovalError> {
        let mut found = self.list()?.into_iter().filter(|request| !start.is_empty() && request.id.starts_with(start));
        match (found.next(), found.next()) {
            (Some(request), None) => Ok(request),
            (Some(_), Some(_)) => Err(ApprovalError::Ambiguous(start.to_owned())),
            (None, _) => Err(ApprovalError::Unknown(start.to_owned())),
        }
    }

    /// Decides a request, as it was when it was shown.
    pub fn decide(&self, shown: &Request, decision: Decision) -> Result<Request, ApprovalError> {
        let _lock = self.lock()?;
        let now = now();
        let found = self.find(&shown.id)?.filter(|found| found.is_alive(now) && found.key == shown.key);
        let mut request = found.ok_or_else(|| ApprovalError::Unknown(shown.id.clone()))?;
        let standing = match (request.standing, decision) {
            (Standing::Pending, Decision::Approve) => Standing::Approved,
            // What was approved and has not run yet can be taken back.
            (Standing::Pending | Standing::Approved, Decision::Deny) => Standing::Denied,
            (standing, _) => return Err(ApprovalError::Decided { id: request.id, standing }),
        };
        request.standing = standing;
        request.expires = now.saturating_add(SEALED_STATE_LIFE.as_secs());
        self.write(&request)?;
        Ok(request)
    }

    /// For a change, in a folder that still is as it was when it was opened.
    fn lock(&self) -> Result<Box<dyn Lock>, StoreError> {
        for folder in [self.folder.parent(), Some(&*self.folder)].into_iter().flatten() {
            if let Some(problem) = self.disk.distrusts(folder).map_err(failed("look at", folder))? {
                return Err(StoreError::Unusable { path: folder.to_owned(), problem });
            }
        }
        let path = self.folder.join(LOCK);
        let lock = self.disk.lock(&path, Wait::Yes).map_err(failed("lock", &path))?;
        lock.ok_or(StoreError::Foreign { path })
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}{RECORD}"))
    }

    fn find(&self, id: &str) -> Result<Option<Request>, StoreError> {
        let path = self.path_of(id);
        let bytes = match self.disk.read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed("read", &path))?,
        };
        let read = Request::read(id, &bytes);
        read.map(Some).map_err(|unreadable| match unreadable {
            Unreadable::Newer(found) => StoreError::Newer { path, found, known: FORM },
            Unreadable::Corrupt(problem) => StoreError::Corrupt { path, problem },
        })
    }

    /// Every request, under the lock. What a crash left of a write is removed.
    fn all(&self) -> Result<Vec<Request>, StoreError> {
        let mut all = Vec::new();
        for name in self.disk.list(&self.folder).map_err(failed("list", &self.folder))? {
            let path = self.folder.join(&name);
            match name.strip_suffix(RECORD).filter(|id| is_id(id)) {
                Some(id) => all.extend(self.find(id)?),
                None if name == LOCK => {}
                None if name.strip_suffix(TEMPORARY).is_some_and(is_id) => {
                    self.disk.remove(&path).map_err(failed("remove", &path))?;
                }
                None => return Err(StoreError::Foreign { path }),
            }
        }
        Ok(all)
    }

    /// Removes what is over, under the lock; gives the rest.
    fn sweep(&self, now: u64) -> Result<Vec<Request>, StoreError> {
        let (alive, over): (Vec<_>, Vec<_>) = self.all()?.into_iter().partition(|request| request.is_alive(now));
        for request in over {
            let path = self.path_of(&request.id);
            self.disk.remove(&path).map_err(failed("remove", &path))?;
        }
        Ok(alive)
    }

    /// Writes a request, under the lock. Once this returns, it survives whatever happens.
    fn write(&self, request: &Request) -> Result<(), WriteError> {
        if self.distrusted.load(Ordering::Acquire) {
            return Err(WriteError::Distrusted);
        }
        let bytes = serde_json::to_vec(request).map_err(|error| WriteError::Failed(error.into()))?;
        let temporary = self.folder.join(format!("{}{TEMPORARY}", request.id));
        let written = self.disk.write_new(&temporary, &bytes).map_err(WriteError::from);
        let written = written.and_then(|()| self.disk.sync_file(&temporary).map_err(|error| self.distrust(error)));
        let written = written.and_then(|()| Ok(self.disk.rename(&temporary, &self.path_of(&request.id))?));
        if written.is_err() {
            let _ = self.disk.remove(&temporary);
            return written;
        }
        self.disk.sync_folder(&self.folder).map_err(|error| self.distrust(error))
    }

    /// After a failed sync nobody can say what is on the disk; a full one has merely refused.
    fn distrust(&self, error: io::Error) -> WriteError {
        let error = WriteError::from(error);
        if !matches!(error, WriteError::Full(_)) {
            self.distrusted.store(true, Ordering::Release);
            tracing::error!(%error, "approvals are not written any more");
        }
        error
    }
}

#[cfg(test)]
mod tests;
