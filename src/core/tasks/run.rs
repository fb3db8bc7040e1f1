//! Carries out a task's call: detached from the request that made it, until it has ended or has to ask.
//!
//! Promises: a task that waits for answers holds no future, no process and no place among those that
//! run; what goes wrong in a backend ends its task with an error that says nothing of the cause.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};

use super::entry::{ChangeError, Entry};
use super::keeper::Keeper;
use super::record::{Again, Parked, Phase};
use crate::core::backend::{defect, incident};
use crate::core::blocking::blocking;
use crate::core::outgoing::Outgoing;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::limits::TASK_MESSAGE_BYTES;
use crate::protocol::{Ask, Caller, Fault, Invocation, Notice, Outcome};

/// How long a call may take to end once it was told to: longer than stopping a child process takes.
const GRACE: Duration = Duration::from_secs(8);

/// How long all of them may take when the server stops.
pub(super) const STOP_TIME: Duration = Duration::from_secs(10);

/// Begins a run of a task, in a task of the runtime. A run that is let in later waits for its place.
pub(super) fn start(
    keeper: &Arc<Keeper>,
    entry: &Arc<Entry>,
    invocation: Invocation,
    permit: Option<OwnedSemaphorePermit>,
) {
    keeper.runs.send_modify(|runs| *runs += 1);
    let counted = Counted(Arc::clone(keeper));
    let (keeper, entry) = (Arc::clone(keeper), Arc::clone(entry));
    tokio::spawn(async move {
        run(&keeper, &entry, invocation, permit).await;
        drop(counted);
    });
}

/// One run that has not ended.
struct Counted(Arc<Keeper>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.runs.send_modify(|runs| *runs = runs.saturating_sub(1));
    }
}

/// How a call came to its end.
enum Ended {
    Itself(Outcome),
    /// Its task was told to end.
    Stopped,
    /// Its tool's own deadline passed, which was this long.
    Overdue(Duration),
}

async fn run(
    keeper: &Arc<Keeper>,
    entry: &Arc<Entry>,
    mut invocation: Invocation,
    permit: Option<OwnedSemaphorePermit>,
) {
    let permit = match permit {
        Some(permit) => Some(permit),
        None => tokio::select! {
            biased;
            () = entry.stopped() => None,
            permit = Arc::clone(&keeper.running).acquire_owned() => permit.ok(),
        },
    };
    loop {
        let ended = match permit.is_some() && !keeper.is_stopping() {
            true => carry_out(keeper, entry, &invocation).await,
            false => Ended::Stopped,
        };
        let phase = match ended {
            Ended::Stopped => keeper.ended_by_stop(),
            Ended::Overdue(time) => Some(Phase::failed(format!(
                "the {} did not end within {} s and was stopped: narrow what it has to do, then try again",
                invocation.operation.name(),
                time.as_secs_f64()
            ))),
            Ended::Itself(Outcome::InputRequired(ask)) => match park(keeper, entry, &invocation, ask).await {
                Ok(None) => return,
                Ok(Some(again)) => {
                    (invocation.answers, invocation.state) = (again.answers, again.state);
                    continue;
                }
                Err(phase) => Some(phase),
            },
            Ended::Itself(outcome) => Some(conclude(&invocation, outcome)),
        };
        if let Some(phase) = phase {
            keeper.end(entry, phase).await;
        }
        return;
    }
}

async fn carry_out(keeper: &Arc<Keeper>, entry: &Arc<Entry>, invocation: &Invocation) -> Ended {
    let deadline = invocation.tool().and_then(|tool| tool.deadline);
    let gone = watch::Sender::new(false);
    let caller = TaskCaller { keeper: Arc::downgrade(keeper), entry: Arc::downgrade(entry), gone: gone.subscribe() };
    let (invoke, call) = (Arc::clone(&keeper.invoke), Arc::new(invocation.clone()));
    // A runtime's task of its own, so that a panic ends there.
    let mut work = tokio::spawn(async move { invoke.invoke(call, Arc::new(caller)).await });
    let overdue = async {
        match deadline {
            Some(time) => {
                tokio::time::sleep(time).await;
                time
            }
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        () = entry.stopped() => Ended::Stopped,
        outcome = &mut work => return Ended::Itself(outcome.unwrap_or_else(|_| defect("a tool's backend panicked in a task"))),
        time = overdue => Ended::Overdue(time),
    };
    gone.send_replace(true);
    if tokio::time::timeout(GRACE, &mut work).await.is_err() {
        tracing::warn!("the call of a task did not end after it was stopped; it is dropped");
        work.abort();
    }
    ended
}

/// What a task ends with.
fn conclude(invocation: &Invocation, outcome: Outcome) -> Phase {
    let unkept = |problem: &str| {
        let problem = format!("the {}: {problem}", invocation.operation.name());
        Phase::fault(&Fault::Internal { incident: incident(&problem) })
    };
    match outcome {
        Outcome::Complete(content) => match invocation.tool().and_then(|tool| tool.misfit(&content)) {
            None => Phase::returned(&content, false).unwrap_or_else(|problem| unkept(&problem)),
            Some(problem) => unkept(&problem),
        },
        Outcome::Failed(content) => Phase::returned(&content, true).unwrap_or_else(|problem| unkept(&problem)),
        Outcome::NotFound => Phase::fault(&Fault::InvalidParams("there is nothing of that name".to_owned())),
        Outcome::Refused(problem) => Phase::fault(&Fault::InvalidParams(problem)),
        Outcome::Defect { incident } => Phase::fault(&Fault::Internal { incident }),
        Outcome::Prompted(_)
        | Outcome::Read(_)
        | Outcome::Completed(_)
        | Outcome::Task(_)
        | Outcome::InputRequired(_) => unkept("the backend gave an answer of another kind"),
    }
}

/// Lets a task wait for answers; or gives what to go on with at once, or what it ends with.
async fn park(
    keeper: &Arc<Keeper>,
    entry: &Arc<Entry>,
    invocation: &Invocation,
    ask: Ask,
) -> Result<Option<Again>, Phase> {
    if ask.requests.is_empty() && ask.state.is_none() {
        return Err(conclude(invocation, Outcome::InputRequired(ask)));
    }
    let client = invocation.client;
    let mut pause = Duration::from_secs(1);
    loop {
        let (keeper_, entry_, ask) = (Arc::clone(keeper), Arc::clone(entry), ask.clone());
        let parked = blocking(move || {
            let mut parked = Ok(Parked::Waits);
            let changed = keeper_.change(&entry_, |record| {
                parked = record.ask(&ask, client);
                parked.is_ok() && !record.has_ended()
            });
            (parked, changed)
        });
        match parked.await {
            Some((Err(text), _)) => return Err(Phase::failed(text)),
            Some((Ok(Parked::Waits), Ok(_))) => return Ok(None),
            Some((Ok(Parked::Again(again)), Ok(_))) => return Ok(Some(again)),
            Some((Ok(_), Err(ChangeError::TooLarge(bytes)))) => {
                return Err(Phase::failed(format!("what the tool asks is too large to be kept ({bytes} bytes)")));
            }
            Some((Ok(_), Err(ChangeError::Write(error)))) => {
                tracing::warn!(%error, "a task's questions cannot be stored yet");
                if keeper.is_distrusted() {
                    return Err(Phase::failed("the server cannot store the questions of this task"));
                }
            }
            None => return Err(conclude(invocation, defect("a task's questions could not be taken"))),
        }
        tokio::select! {
            () = entry.stopped() => return Err(keeper.ended_by_stop().unwrap_or(Phase::Cancelled)),
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
        }
    }
}

/// The far end of a task's call: nobody, until somebody looks.
struct TaskCaller {
    keeper: Weak<Keeper>,
    entry: Weak<Entry>,
    gone: watch::Receiver<bool>,
}

impl Caller for TaskCaller {
    /// The last words are kept as the task's message; progress and log messages are not for tasks
    /// (tasks extension, Task Status Notifications).
    fn notify(&self, notice: Notice) {
        let (Some(keeper), Some(entry)) = (self.keeper.upgrade(), self.entry.upgrade()) else { return };
        let text = match notice {
            Notice::Progress { message: Some(message), .. } => message,
            Notice::Progress { progress, total: Some(total), .. } => format!("{progress} of {total}"),
            Notice::Progress { progress, .. } => progress.to_string(),
            Notice::Log { data: serde_json::Value::String(text), .. } => text,
            Notice::Log { data, .. } => data.to_string(),
            Notice::Updated { uri } => return keeper.audience.updated(&uri),
            Notice::Detach => return,
        };
        keeper.note(&entry, Outgoing::clean(text.as_bytes(), TASK_MESSAGE_BYTES).text);
    }

    fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        let mut gone = self.gone.clone();
        Box::pin(async move {
            // If the run is dropped, nobody waits for the call either.
            let _ = gone.wait_for(|gone| *gone).await;
        })
    }
}
