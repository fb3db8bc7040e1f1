//! One task of this process, and the answers to those who ask for what cannot be.
//!
//! Promises: what is shown of a task is what is on the disk, but for the message of one that runs.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::record::Record;
use crate::core::backend::incident;
use crate::core::store::WriteError;
use crate::protocol::{Content, Invocation, Outcome, Principal, TaskView};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whatever is replaced under a lock here is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a task was not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error("the task takes {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why what was asked for is not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It cannot be; why, for whoever asked.
    Cannot(String),
    /// A defect of ours, by its number.
    Defect(u64),
}

impl Refusal {
    pub(super) fn defect(problem: &str) -> Self {
        Self::Defect(incident(problem))
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Cannot(text) => Self::Failed(Content::text(text)),
            Refusal::Defect(incident) => Self::Defect { incident },
        }
    }
}

/// Where a task is.
pub(super) enum Spot {
    Here(Arc<Entry>),
    /// Another living process has it.
    Elsewhere(Box<Record>),
}

/// One task of this process.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) principal: Principal,
    /// Its place in a list.
    pub(super) sequence: usize,
    pub(super) expires_ms: u64,
    /// As it is on the disk, without what it returned; its message may be newer.
    pub(super) now: Mutex<Arc<Record>>,
    /// Held while it changes.
    pub(super) changing: Mutex<()>,
    /// The call as it was made, for as long as it has not ended.
    pub(super) invocation: Mutex<Option<Invocation>>,
    pub(super) bytes: AtomicU64,
    /// Whether it may be seen: not before it is on the disk, and not after it was deleted.
    pub(super) visible: AtomicBool,
    pub(super) stop: watch::Sender<bool>,
    pub(super) changes: watch::Sender<u64>,
    pub(super) told_ms: AtomicU64,
}

impl Entry {
    pub(super) fn new(name: String, principal: Principal, sequence: usize, record: Record, bytes: usize) -> Self {
        Self {
            name,
            principal,
            sequence,
            expires_ms: record.expires_ms(),
            now: Mutex::new(Arc::new(record.slim())),
            changing: Mutex::new(()),
            invocation: Mutex::new(None),
            bytes: AtomicU64::new(u64::try_from(bytes).unwrap_or(u64::MAX)),
            visible: AtomicBool::new(true),
            stop: watch::Sender::new(false),
            changes: watch::Sender::new(0),
            told_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn now(&self) -> Arc<Record> {
        Arc::clone(&lock(&self.now))
    }

    pub(super) fn view(&self) -> Result<TaskView, Refusal> {
        self.now().view().map_err(|problem| Refusal::defect(&format!("a task cannot be shown: {problem}")))
    }

    /// Tells whoever carries it out to end.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends once it was told to end.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut stop = self.stop.subscribe();
        async move {
            // The sender lives as long as the entry; without either there is nothing to go on for.
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }

    /// Ends at its next change from now on.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + use<> {
        let mut changes = self.changes.subscribe();
        async move {
            let _ = changes.changed().await;
        }
    }

    /// The call to go on with; for a task of an earlier process, by the catalog that `now` came with.
    pub(super) fn invocation(&self, now: &Invocation) -> Option<Invocation> {
        let made = lock(&self.invocation).clone();
        made.or_else(|| self.now().invocation(&now.catalog, &self.principal, now.revision))
    }

    pub(super) fn is_visible(&self, now: u64) -> bool {
        self.visible.load(Ordering::Acquire) && now < self.expires_ms
    }
}
