//! The tasks of this process: which there are, how far each is, and how that changes.
//!
//! Promises: a change is on the disk before anyone sees it; changes of one task come one after another;
//! what was returned is on the disk alone, so memory holds no results.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::clock::{Clock, millis};
use super::entry::{ChangeError, Entry, Refusal, Spot, lock};
use super::record::{Phase, Record};
use super::{Audience, run};
use crate::core::blocking::blocking;
use crate::core::store::{Store, StoreError, Unreadable, WriteError};
use crate::protocol::invoke::TaskWish;
use crate::protocol::limits::{TASK_POLL, TaskLimits};
use crate::protocol::{Catalog, Fault, Invocation, Invoke, Principal, TaskId, digest};

/// What a task ends with whose process is not there any more.
const RESTARTED: &str = "the server was restarted while this task ran: what it had begun may still go on, so see what it did before you call the tool again";
const STOPPED: &str = "the server was stopped while this task ran, which ended it: call the tool again";
const CHANGED: &str =
    "the server was restarted with another definition of this tool while the task waited: call it anew";

/// Under which name a task is kept: a stranger's id names another file, which is not there.
fn file_name(principal: &Principal, id: &TaskId) -> String {
    let owner = digest::of_bytes(principal.name().as_bytes()).to_string();
    let owner = owner.rsplit(':').next().unwrap_or_default();
    format!("{owner}-{id}.json")
}

/// Whether an id can be one of ours, and so part of a file's name.
fn is_ours(id: &TaskId) -> bool {
    id.as_str().len() == 32 && id.as_str().bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// What becomes of a task whose process is dead.
pub(super) fn adopt(name: &str, bytes: &[u8], catalog: &Catalog, now: u64) -> Result<Option<Vec<u8>>, Unreadable> {
    let mut record = Record::read(bytes)?;
    let id = TaskId::new(&record.id).filter(is_ours);
    if id.is_none_or(|id| file_name(&Principal::named(record.principal.clone()), &id) != name) {
        return Err(Unreadable::Corrupt("it holds another task than its name says".to_owned()));
    }
    // A clock that was set back must not keep it for ever.
    if record.created_ms > now {
        record.created_ms = now;
    }
    if record.expires_ms() <= now {
        return Ok(None);
    }
    let text = match &record.phase {
        Phase::Working => RESTARTED,
        Phase::Waiting { .. } if !record.fits(catalog) => CHANGED,
        _ => return Ok(Some(record.write())),
    };
    record.end(Phase::fault(&Fault::Failed(text.to_owned())));
    record.updated_ms = now;
    Ok(Some(record.write()))
}

#[derive(Default)]
struct Index {
    by_name: HashMap<String, Arc<Entry>>,
    next: usize,
}

/// See the module.
pub(super) struct Keeper {
    store: Store,
    clock: Clock,
    pub(super) invoke: Arc<dyn Invoke>,
    pub(super) audience: Box<dyn Audience>,
    limits: TaskLimits,
    index: Mutex<Index>,
    pub(super) running: Arc<Semaphore>,
    stopping: AtomicBool,
    /// How many runs have not ended.
    pub(super) runs: watch::Sender<usize>,
}

impl Keeper {
    pub(super) fn new(
        store: Store,
        clock: Clock,
        invoke: Arc<dyn Invoke>,
        audience: Box<dyn Audience>,
        limits: TaskLimits,
        running: Arc<Semaphore>,
    ) -> Result<Arc<Self>, StoreError> {
        let keeper = Self {
            store,
            clock,
            invoke,
            audience,
            limits,
            index: Mutex::default(),
            running,
            stopping: AtomicBool::new(false),
            runs: watch::Sender::new(0),
        };
        keeper.load()?;
        Ok(Arc::new(keeper))
    }

    /// Lists what the store holds and is not listed yet.
    fn load(&self) -> Result<(), StoreError> {
        let io_error = |source| StoreError::Io { doing: "read", path: "the state folder".into(), source };
        let mut found = Vec::new();
        for name in self.store.names().map_err(io_error)? {
            if lock(&self.index).by_name.contains_key(&name) {
                continue;
            }
            let bytes = self.store.read(&name).map_err(io_error)?;
            // It was read once to be taken, so only a damage of this moment ends here.
            let Ok(record) = Record::read(&bytes) else { continue };
            found.push((name, record, bytes.len()));
        }
        found.sort_by(|(_, a, _), (_, b, _)| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        let mut index = lock(&self.index);
        for (name, record, bytes) in found {
            let principal = Principal::named(record.principal.clone());
            let entry = Arc::new(Entry::new(name.clone(), principal, index.next, record, bytes));
            index.next += 1;
            index.by_name.entry(name).or_insert(entry);
        }
        Ok(())
    }

    /// A task that this process holds.
    pub(super) fn held(&self, principal: &Principal, id: &TaskId) -> Option<Arc<Entry>> {
        let entry = lock(&self.index).by_name.get(&file_name(principal, id)).cloned();
        entry.filter(|entry| entry.principal == *principal && entry.is_visible(self.clock.now()))
    }

    /// All tasks of a principal that this process holds.
    pub(super) fn of(&self, principal: &Principal) -> Vec<Arc<Entry>> {
        let now = self.clock.now();
        let index = lock(&self.index);
        let entries = index.by_name.values().filter(|e| e.principal == *principal && e.is_visible(now));
        entries.cloned().collect()
    }

    /// Looks for a task that another process holds; if that is dead, its tasks are ours.
    pub(super) fn look_elsewhere(
        &self,
        principal: &Principal,
        id: &TaskId,
        catalog: &Catalog,
    ) -> Result<Option<Spot>, Refusal> {
        if !is_ours(id) {
            return Ok(None);
        }
        let now = self.clock.now();
        let adopted = self.store.adopt(&|name, bytes| adopt(name, bytes, catalog, now));
        if let Err(error) = adopted.and_then(|taken| if taken.is_empty() { Ok(()) } else { self.load() }) {
            tracing::warn!(%error, "what another process left cannot be taken over");
        }
        if let Some(entry) = self.held(principal, id) {
            return Ok(Some(Spot::Here(entry)));
        }
        let name = file_name(principal, id);
        let found = self
            .store
            .find(&name)
            .map_err(|error| Refusal::defect(&format!("a task cannot be looked for: {error}")))?;
        let record = found.and_then(|bytes| Record::read(&bytes).ok());
        let record = record.filter(|r| r.principal == principal.name() && now < r.expires_ms());
        Ok(record.map(|record| Spot::Elsewhere(Box::new(record))))
    }

    /// Makes a task. It may be told of once this returns; an error is the call's outcome.
    pub(super) fn create(
        &self,
        invocation: &Invocation,
        wish: TaskWish,
    ) -> Result<(Arc<Entry>, OwnedSemaphorePermit), Refusal> {
        let refused = Refusal::Cannot;
        self.sweep();
        let running = Arc::clone(&self.running).try_acquire_owned();
        let permit = running.map_err(|_| {
            let most = self.limits.running;
            refused(format!("{most} tasks are running, which is the limit: wait for one to end, or cancel one"))
        })?;
        if self.is_stopping() {
            return Err(refused("the server is about to stop: try again once it runs".to_owned()));
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| Refusal::defect("the system gives no randomness for a task's id"))?;
        let id = TaskId::new(&format!("{:032x}", u128::from_be_bytes(random)));
        let id = id.ok_or_else(|| Refusal::defect("a task's id does not fit"))?;
        let record = Record::begin(&id, invocation, wish, &self.limits, self.clock.now());
        let record = record.ok_or_else(|| Refusal::defect("a task was asked for what is no published tool's call"))?;
        let bytes = record.write();
        let name = file_name(&invocation.principal, &id);
        let entry = {
            let mut index = lock(&self.index);
            let kept = index.by_name.values().filter(|e| e.principal == invocation.principal).count();
            if kept >= self.limits.kept {
                let most = self.limits.kept;
                return Err(refused(format!("{most} tasks are kept, which is the limit: wait for some to expire")));
            }
            let size = |entry: &Arc<Entry>| entry.bytes.load(Ordering::Relaxed);
            if index.by_name.values().map(size).fold(0, u64::saturating_add) >= self.limits.all_bytes {
                return Err(refused("no more can be kept of tasks: wait for some to expire".to_owned()));
            }
            let entry = Entry::new(name.clone(), invocation.principal.clone(), index.next, record.clone(), bytes.len());
            // The call goes on with its arguments as long as it has not ended.
            *lock(&entry.now) = Arc::new(record);
            *lock(&entry.invocation) = Some(invocation.clone());
            entry.visible.store(false, Ordering::Release);
            let entry = Arc::new(entry);
            index.next += 1;
            index.by_name.insert(name.clone(), Arc::clone(&entry));
            entry
        };
        if let Err(error) = self.store.write(&name, &bytes) {
            lock(&self.index).by_name.remove(&name);
            // Its call never began, so it should not come back after a crash.
            let _ = self.store.remove(&name);
            tracing::warn!(%error, "a task cannot be stored");
            let text = match error {
                WriteError::Full(_) => "there is no room to store a task: nothing was done; try again later",
                WriteError::Failed(_) | WriteError::Distrusted => {
                    "the server cannot store tasks: nothing was done; its operator has to look at its log"
                }
            };
            return Err(refused(text.to_owned()));
        }
        entry.visible.store(true, Ordering::Release);
        Ok((entry, permit))
    }

    /// Changes a task: `step` says whether it did. Seen, and told, once it is on the disk.
    pub(super) fn change(
        &self,
        entry: &Arc<Entry>,
        step: impl FnOnce(&mut Record) -> bool,
    ) -> Result<bool, ChangeError> {
        let _changing = lock(&entry.changing);
        if !entry.visible.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut record = (*entry.now()).clone();
        if !step(&mut record) {
            return Ok(false);
        }
        record.updated_ms = self.clock.now();
        let bytes = record.write();
        if bytes.len() > self.limits.bytes {
            return Err(ChangeError::TooLarge(bytes.len()));
        }
        self.store.write(&entry.name, &bytes)?;
        entry.bytes.store(u64::try_from(bytes.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.show(entry, record);
        Ok(true)
    }

    /// Ends a task in memory alone: what stands on the disk will come to the same.
    pub(super) fn give_up(&self, entry: &Arc<Entry>, phase: Phase) {
        let _changing = lock(&entry.changing);
        let mut record = (*entry.now()).clone();
        if record.end(phase) {
            record.updated_ms = self.clock.now();
            self.show(entry, record);
        }
    }

    /// Under the lock for changing.
    fn show(&self, entry: &Entry, record: Record) {
        let view = record.view();
        if record.has_ended() {
            *lock(&entry.invocation) = None;
        }
        *lock(&entry.now) = Arc::new(record.slim());
        entry.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        if let Ok(view) = view {
            self.audience.task(&entry.principal, view);
        }
    }

    /// Keeps what a running task says of itself. Of many such in a second, one is told.
    pub(super) fn note(&self, entry: &Entry, message: String) {
        let now = self.clock.now();
        let view = {
            let mut shown = lock(&entry.now);
            if shown.phase != Phase::Working {
                return;
            }
            let record = Arc::make_mut(&mut shown);
            record.message = Some(message);
            record.updated_ms = now;
            record.view()
        };
        let pause = millis(TASK_POLL);
        if now.saturating_sub(entry.told_ms.load(Ordering::Relaxed)) < pause {
            return;
        }
        // Told under the lock for changing, so that nothing old is told after an end; a change that has it tells itself.
        let Ok(_changing) = entry.changing.try_lock() else { return };
        if let (Ok(view), Phase::Working) = (view, &entry.now().phase) {
            entry.told_ms.store(now, Ordering::Relaxed);
            self.audience.task(&entry.principal, view);
        }
    }

    /// The record on the disk, with what it returned.
    pub(super) fn read(&self, entry: &Entry) -> Result<Record, String> {
        let bytes = self.store.read(&entry.name).map_err(|error| error.to_string())?;
        Record::read(&bytes).map_err(|unreadable| format!("{unreadable:?}"))
    }

    /// Deletes what has expired, and ends what of it runs.
    pub(super) fn sweep(&self) {
        let now = self.clock.now();
        let expired: Vec<_> =
            lock(&self.index).by_name.values().filter(|entry| entry.expires_ms <= now).cloned().collect();
        for entry in expired {
            let _changing = lock(&entry.changing);
            entry.visible.store(false, Ordering::Release);
            entry.stop();
            entry.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
            match self.store.remove(&entry.name) {
                Ok(()) => drop(lock(&self.index).by_name.remove(&entry.name)),
                Err(error) => tracing::warn!(%error, "an expired task cannot be deleted yet"),
            }
        }
    }

    /// Whether nothing can be stored any more.
    pub(super) fn is_distrusted(&self) -> bool {
        self.store.is_distrusted()
    }

    /// Whether nothing begins any more.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// What a task that was told to end becomes, unless it has ended: only the server's own end is left.
    pub(super) fn ended_by_stop(&self) -> Option<Phase> {
        self.is_stopping().then(|| Phase::fault(&Fault::Failed(STOPPED.to_owned())))
    }

    /// See [`super::Tasks::stop`].
    pub(super) async fn stop(self: &Arc<Self>) {
        self.stopping.store(true, Ordering::Release);
        // Those that wait for answers need no process.
        let entries: Vec<_> = lock(&self.index).by_name.values().cloned().collect();
        entries.iter().filter(|entry| entry.now().phase == Phase::Working).for_each(|entry| entry.stop());
        let mut runs = self.runs.subscribe();
        let ended = runs.wait_for(|runs| *runs == 0);
        if tokio::time::timeout(run::STOP_TIME, ended).await.is_err() {
            tracing::warn!("some tasks did not end when they were told to");
        }
    }

    /// Ends a task, trying again until it is on the disk. What cannot be kept is replaced by a text that says so.
    pub(super) async fn end(self: &Arc<Self>, entry: &Arc<Entry>, phase: Phase) {
        let mut phase = phase;
        let mut pause = Duration::from_secs(1);
        loop {
            let (keeper, changing, ending) = (Arc::clone(self), Arc::clone(entry), phase.clone());
            match blocking(move || keeper.change(&changing, |record| record.end(ending))).await {
                Some(Ok(_)) => return,
                Some(Err(ChangeError::TooLarge(bytes))) => {
                    let most = self.limits.bytes;
                    phase = Phase::failed(format!(
                        "the result is too large to be kept ({bytes} bytes, of at most {most}): narrow what is asked for"
                    ));
                    continue;
                }
                Some(Err(ChangeError::Write(error))) => {
                    tracing::warn!(%error, "the end of a task cannot be stored yet");
                }
                None => {}
            }
            if self.is_distrusted() || self.is_stopping() {
                // After a restart it has failed too, so what is shown now is not taken back.
                self.give_up(entry, Phase::fault(&Fault::Failed(RESTARTED.to_owned())));
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(30));
        }
    }
}
