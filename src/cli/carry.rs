//! Carrying one operation out from the shell, as a server would.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use twodoor::core::Router;
use twodoor::core::process;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    Caller, Catalog, ClientCapabilities, Invocation, Invoke as _, Notice, Operation, Outcome, Principal, Revision,
};

use super::logging::{self, LogFormat};
use super::signals::Signals;
use super::{exit, show};

/// Carries an operation out. `None` if it took too long or was interrupted.
pub(crate) fn out(
    router: &Router,
    catalog: &Arc<Catalog>,
    operation: Operation,
    deadline: Duration,
) -> Result<Option<Outcome>, ExitCode> {
    let _logging = logging::start(LogFormat::Text);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|_| exit::usage())?;
    let invocation = Invocation {
        catalog: Arc::clone(catalog),
        operation,
        answers: Vec::new(),
        state: None,
        principal: Principal::LOCAL,
        revision: Revision::MODERN,
        client: ClientCapabilities::default(),
    };
    let outcome = runtime.block_on(async {
        let _ = process::become_subreaper();
        let mut signals = Signals::catch();
        let running = router.invoke(invocation, Arc::new(Nobody));
        tokio::select! {
            outcome = show::with_progress("running", running) => Some(outcome),
            () = tokio::time::sleep(deadline) => None,
            () = signals.next() => None,
        }
    });
    runtime.block_on(process::settle(process::GRACE));
    Ok(outcome)
}

/// Says why there is no answer of the kind that was asked for.
pub(crate) fn failed(outcome: Option<Outcome>) -> ExitCode {
    match outcome {
        Some(Outcome::Failed(content)) => show::error(&content.plain_text(), "mend what stands behind it"),
        Some(Outcome::NotFound) => show::error("there is nothing to read", "correct the address"),
        Some(Outcome::Refused(why)) => show::error(&why, "correct the arguments"),
        Some(Outcome::InputRequired(_)) => {
            show::error("it asks its client something", "call it through a client that can answer");
        }
        Some(Outcome::Defect { incident }) => {
            show::error(&format!("a defect of twodoor, incident {incident:016x}"), "the log above has the cause");
        }
        Some(
            Outcome::Complete(_) | Outcome::Prompted(_) | Outcome::Read(_) | Outcome::Completed(_) | Outcome::Task(_),
        ) => show::error("the backend gave an answer of another kind", "this is a defect of twodoor"),
        None => {
            show::error("it was stopped: it took too long or was interrupted", "narrow it, or raise the timeout");
        }
    }
    exit::differs()
}

/// The shell hears no notices.
struct Nobody;

impl Caller for Nobody {
    fn notify(&self, _: Notice) {}
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
