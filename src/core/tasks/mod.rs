//! Tasks: calls that outlive their request, over one durable store for both forms on the wire.
//!
//! Promises: a task is on the disk before its client hears of it, and whatever a client was shown of it,
//! but for a running task's message, is shown again after a crash; one principal's tasks do not exist for another; the client that asked
//! may go, only a cancellation of the task ends it. Stands between the engine and whoever carries out
//! calls: wraps an [`Invoke`] and is one. Used by the command line, and by whoever embeds the engine.

mod clock;
mod entry;
mod keeper;
mod kept;
mod record;
mod run;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use self::clock::Clock;
use self::entry::{ChangeError, Entry, Refusal, Spot};
use self::keeper::Keeper;
use self::record::{Phase, Record, Taken};
use super::backend::defect;
use super::blocking::blocking;
use super::store::{Store, StoreError};
use crate::protocol::invoke::{BoxFuture, TaskWish};
use crate::protocol::limits::{TASK_PAGE, TASK_POLL, TaskLimits};
use crate::protocol::revision::Tasks as Form;
use crate::protocol::{
    Ask, Caller, Catalog, Content, Fault, Invocation, Invoke, Operation, Outcome, Principal, RawJson, TaskAnswer,
    TaskDetail, TaskId, TaskRequest, TaskView,
};

/// Who is told what happens in tasks.
pub trait Audience: Send + Sync + 'static {
    /// A task of a principal is not as far as it was. Must not block.
    fn task(&self, principal: &Principal, task: TaskView);
    /// A resource is not what it was, says a task.
    fn updated(&self, uri: &str);
}

/// See the module. Cloning shares it.
#[derive(Clone)]
pub struct Tasks(Arc<Keeper>);

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tasks")
    }
}

/// Room for the tasks that run at once. Cloning shares it, so that several surfaces have the room of one process.
#[derive(Debug, Clone)]
pub struct Running(Arc<Semaphore>);

impl Running {
    /// Room for as many as these limits allow.
    pub fn new(limits: &TaskLimits) -> Self {
        Self(Arc::new(Semaphore::new(limits.running)))
    }
}

impl Tasks {
    /// Opens the tasks kept in a folder, which is made if need be. What ran when its process died has failed;
    /// what waits for answers goes on once they come, if `catalog` still has its tool as it was.
    pub fn open(
        folder: &Path,
        catalog: &Catalog,
        invoke: Arc<dyn Invoke>,
        audience: impl Audience,
        limits: TaskLimits,
    ) -> Result<Self, StoreError> {
        let running = Running::new(&limits);
        Self::open_within(folder, catalog, invoke, audience, limits, running)
    }

    /// The same, of tasks that run within a room which others share.
    pub fn open_within(
        folder: &Path,
        catalog: &Catalog,
        invoke: Arc<dyn Invoke>,
        audience: impl Audience,
        limits: TaskLimits,
        running: Running,
    ) -> Result<Self, StoreError> {
        let clock = Clock::system();
        let now = clock.now();
        let store = Store::open(folder, &|name, bytes| keeper::adopt(name, bytes, catalog, now))?;
        Ok(Self(Keeper::new(store, clock, invoke, Box::new(audience), limits, running.0)?))
    }

    /// Deletes what has expired, for as long as this is polled. Without it, that is done when a task is made.
    pub async fn sweep(self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let keeper = Arc::clone(&self.0);
            let _ = blocking(move || keeper.sweep()).await;
        }
    }

    /// Ends what runs, as the server is about to stop; begins nothing any more.
    pub async fn stop(&self) {
        self.0.stop().await;
    }

    async fn create(&self, invocation: Invocation, wish: TaskWish) -> Outcome {
        let mut invocation = invocation.detached();
        // Whoever carries it out carries out a call.
        if let Operation::Call { task, .. } = &mut invocation.operation {
            *task = None;
        }
        let keeper = Arc::clone(&self.0);
        // In one piece, so that a caller who goes away leaves no task that nobody runs.
        let created = blocking(move || {
            let (entry, permit) = keeper.create(&invocation, wish)?;
            let view = entry.view();
            run::start(&keeper, &entry, invocation, Some(permit));
            view
        });
        match created.await {
            Some(Ok(view)) => Outcome::Task(TaskAnswer::Created(view)),
            Some(Err(refusal)) => refusal.into(),
            None => defect("a task could not be made"),
        }
    }

    async fn find(&self, invocation: &Invocation, id: &TaskId) -> Result<Option<Spot>, Refusal> {
        if let Some(entry) = self.0.held(&invocation.principal, id) {
            return Ok(Some(Spot::Here(entry)));
        }
        let (keeper, id) = (Arc::clone(&self.0), id.clone());
        let (principal, catalog) = (invocation.principal.clone(), Arc::clone(&invocation.catalog));
        blocking(move || keeper.look_elsewhere(&principal, &id, &catalog))
            .await
            .unwrap_or_else(|| Err(Refusal::defect("a task could not be looked for")))
    }

    async fn answer(&self, mut invocation: Invocation, request: TaskRequest, caller: Arc<dyn Caller>) -> Outcome {
        match request {
            TaskRequest::List { from } => self.list(&invocation.principal, from),
            TaskRequest::Result(id) => {
                let answers = std::mem::take(&mut invocation.answers);
                self.result(&invocation, &id, answers, &*caller).await
            }
            TaskRequest::Get(id) => match self.find(&invocation, &id).await {
                Ok(Some(spot)) => match self.whole(spot).await {
                    Ok(view) => Outcome::Task(TaskAnswer::Is(view)),
                    Err(refusal) => refusal.into(),
                },
                Ok(None) => Outcome::NotFound,
                Err(refusal) => refusal.into(),
            },
            TaskRequest::Cancel(id) => match self.find(&invocation, &id).await {
                Ok(Some(spot)) => self.cancel(&invocation, spot).await,
                Ok(None) => Outcome::NotFound,
                Err(refusal) => refusal.into(),
            },
            TaskRequest::Update(id, answers) => match self.find(&invocation, &id).await {
                Ok(Some(Spot::Here(entry))) => match self.update(&invocation, &entry, answers).await {
                    Ok(()) => Outcome::Task(TaskAnswer::Done),
                    Err(refusal) => refusal.into(),
                },
                Ok(Some(Spot::Elsewhere(record))) if record.has_ended() => Outcome::Task(TaskAnswer::Done),
                Ok(Some(Spot::Elsewhere(_))) => elsewhere(),
                Ok(None) => Outcome::NotFound,
                Err(refusal) => refusal.into(),
            },
        }
    }

    /// All that is known of a task: what it returned is read from the disk.
    async fn whole(&self, spot: Spot) -> Result<TaskView, Refusal> {
        let viewed = match spot {
            Spot::Elsewhere(record) => record.view(),
            Spot::Here(entry) => {
                let record = entry.now();
                if !matches!(record.phase, Phase::Returned { .. }) {
                    record.view()
                } else {
                    let keeper = Arc::clone(&self.0);
                    let read = blocking(move || keeper.read(&entry)).await;
                    read.unwrap_or_else(|| Err("the disk".to_owned())).and_then(|record| record.view())
                }
            }
        };
        viewed.map_err(|problem| Refusal::defect(&format!("a task cannot be read: {problem}")))
    }

    fn list(&self, principal: &Principal, from: usize) -> Outcome {
        let mut entries = self.0.of(principal);
        entries.retain(|entry| entry.sequence >= from);
        entries.sort_unstable_by_key(|entry| entry.sequence);
        let next = entries.get(TASK_PAGE).map(|entry| entry.sequence);
        // A list says how far a task is, not what it returned.
        let views = entries.iter().take(TASK_PAGE).map(|entry| entry.now().view()).collect::<Result<_, _>>();
        match views {
            Ok(views) => Outcome::Task(TaskAnswer::List(views, next)),
            Err(problem) => defect(&format!("a task cannot be listed: {problem}")),
        }
    }

    async fn cancel(&self, invocation: &Invocation, spot: Spot) -> Outcome {
        let experimental = invocation.revision.rules().tasks == Form::Experimental;
        let ended = |record: &Record| match (experimental, record.view()) {
            (false, _) => Outcome::Task(TaskAnswer::Done),
            // 2025-11-25 basic/utilities/tasks, Task Cancellation.
            (true, Ok(view)) => {
                let status = view.status(Form::Experimental).name();
                Outcome::Refused(format!("this task has already ended ({status})"))
            }
            (true, Err(problem)) => defect(&format!("a task cannot be shown: {problem}")),
        };
        let entry = match spot {
            Spot::Elsewhere(record) if record.has_ended() => return ended(&record),
            Spot::Elsewhere(_) => return elsewhere(),
            Spot::Here(entry) => entry,
        };
        let keeper = Arc::clone(&self.0);
        let changed = {
            let entry = Arc::clone(&entry);
            blocking(move || keeper.change(&entry, |record| record.end(Phase::Cancelled))).await
        };
        match changed {
            Some(Ok(false)) => return ended(&entry.now()),
            Some(Ok(true)) => entry.stop(),
            Some(Err(error)) => return unchanged(&error).into(),
            None => return defect("a task could not be cancelled"),
        }
        match (experimental, entry.view()) {
            (false, _) => Outcome::Task(TaskAnswer::Done),
            (true, Ok(view)) => Outcome::Task(TaskAnswer::Is(view)),
            (true, Err(refusal)) => refusal.into(),
        }
    }

    async fn update(
        &self,
        invocation: &Invocation,
        entry: &Arc<Entry>,
        answers: Vec<(Box<str>, RawJson)>,
    ) -> Result<(), Refusal> {
        let (keeper, entry, invocation) = (Arc::clone(&self.0), Arc::clone(entry), invocation.clone());
        let updated = blocking(move || take_answers(&keeper, &entry, &invocation, &answers));
        updated.await.unwrap_or_else(|| Err(Refusal::defect("a task could not be updated")))
    }

    /// Waits for the end of a task, by way of its questions (2025-11-25 basic/utilities/tasks, Input Required Status).
    async fn result(
        &self,
        invocation: &Invocation,
        id: &TaskId,
        mut answers: Vec<(Box<str>, RawJson)>,
        caller: &dyn Caller,
    ) -> Outcome {
        loop {
            let spot = match self.find(invocation, id).await {
                Ok(Some(spot)) => spot,
                Ok(None) => return Outcome::NotFound,
                Err(refusal) => return refusal.into(),
            };
            let changed: BoxFuture<'_, ()> = match &spot {
                Spot::Here(entry) => {
                    let changed = entry.changed();
                    if !answers.is_empty()
                        && let Err(refusal) = self.update(invocation, entry, std::mem::take(&mut answers)).await
                    {
                        return refusal.into();
                    }
                    Box::pin(changed)
                }
                Spot::Elsewhere(_) => Box::pin(tokio::time::sleep(TASK_POLL)),
            };
            let (ended, detail) = match &spot {
                Spot::Here(entry) => (entry.now().has_ended(), entry.view().map(|view| view.detail)),
                Spot::Elsewhere(record) => (
                    record.has_ended(),
                    record.view().map(|view| view.detail).map_err(|problem| Refusal::defect(&problem)),
                ),
            };
            match (ended, detail) {
                (_, Err(refusal)) => return refusal.into(),
                (true, Ok(_)) => {
                    return match self.whole(spot).await {
                        Ok(view) => Outcome::Task(TaskAnswer::Ended(view)),
                        Err(refusal) => refusal.into(),
                    };
                }
                (false, Ok(TaskDetail::Asks(requests))) if matches!(spot, Spot::Here(_)) => {
                    return Outcome::InputRequired(Ask { requests, state: None });
                }
                (false, Ok(_)) => {}
            }
            tokio::select! {
                () = changed => {}
                () = caller.gone() => return Outcome::Failed(Content::text("nobody waits for this task any more")),
            }
        }
    }
}

/// How often what has expired is deleted. It is invisible from the moment it expires.
const SWEEP: Duration = Duration::from_secs(10);

fn take_answers(
    keeper: &Arc<Keeper>,
    entry: &Arc<Entry>,
    invocation: &Invocation,
    answers: &[(Box<str>, RawJson)],
) -> Result<(), Refusal> {
    if keeper.is_stopping() {
        return Err(Refusal::Cannot("the server is about to stop: answer once it runs again".to_owned()));
    }
    let again = entry.invocation(invocation);
    let mut taken = Ok(Taken::Nothing);
    let changed = keeper.change(entry, |record| {
        taken = record.answer(answers);
        match &taken {
            Ok(Taken::Some) => true,
            Ok(Taken::All(_)) => {
                if again.is_none() {
                    let gone = "the tool is not what it was when this task began: call it anew".to_owned();
                    record.end(Phase::fault(&Fault::InvalidParams(gone)));
                }
                true
            }
            Ok(Taken::Nothing) | Err(_) => false,
        }
    });
    changed.map_err(|error| unchanged(&error))?;
    match (taken, again) {
        (Ok(Taken::All(known)), Some(mut invocation)) => {
            (invocation.answers, invocation.state) = (known.answers, known.state);
            run::start(keeper, entry, invocation, None);
            Ok(())
        }
        (Ok(_), _) => Ok(()),
        (Err(problem), _) => Err(Refusal::defect(&format!("answers to a task cannot be kept: {problem}"))),
    }
}

/// A change that was not made: the disk's own words are for the log.
fn unchanged(error: &ChangeError) -> Refusal {
    tracing::warn!(%error, "a task was not changed");
    let text = match error {
        ChangeError::TooLarge(bytes) => format!("these answers are too large to be kept ({bytes} bytes): send less"),
        ChangeError::Write(_) => "the task cannot be stored now, so nothing was changed: try again later".to_owned(),
    };
    Refusal::Cannot(text)
}

fn elsewhere() -> Outcome {
    let text = "this task runs in another process of this server: ask the one that made it";
    Outcome::Refused(text.to_owned())
}

impl Invoke for Tasks {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        match &invocation.operation {
            Operation::Call { task: Some(wish), .. } => {
                let wish = *wish;
                Box::pin(self.create(Arc::unwrap_or_clone(invocation), wish))
            }
            Operation::Task(request) => {
                let request = request.clone();
                Box::pin(self.answer(Arc::unwrap_or_clone(invocation), request, caller))
            }
            Operation::Call { task: None, .. }
            | Operation::Prompt { .. }
            | Operation::Read { .. }
            | Operation::Complete(_) => self.0.invoke.invoke(invocation, caller),
        }
    }
}
