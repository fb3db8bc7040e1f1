//! Carrying one operation out from the shell, as a server would.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use twodoor::core::Router;
use twodoor::core::{process, upstream};
use twodoor::protocol::limits::ASKED_AT_MOST;
use twodoor::protocol::{
    Ask, Caller, Catalog, ClientCapabilities, Invocation, Invoke as _, Operation, Outcome, Principal, RawJson, Revision,
};

use super::logging::{self, LogFormat};
use super::signals::Signals;
use super::talk::Shell;
use super::{asking, exit, show};

/// Carries an operation out. `None` if it took too long or was interrupted. What `talks` tells its progress itself.
pub(crate) fn out(
    router: &Router,
    catalog: &Arc<Catalog>,
    operation: Operation,
    deadline: Duration,
    talks: bool,
) -> Result<Option<Outcome>, ExitCode> {
    let _logging = logging::start(LogFormat::Text);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|_| exit::usage())?;
    let mut invocation = Invocation {
        catalog: Arc::clone(catalog),
        operation,
        answers: Vec::new(),
        state: None,
        principal: Principal::LOCAL,
        revision: Revision::MODERN,
        client: person(),
    };
    let shell = Arc::new(Shell::new());
    let outcome = runtime.block_on(async {
        let _ = process::become_subreaper();
        let mut signals = Signals::catch();
        let mut asked = 0;
        loop {
            let running = router.invoke(Arc::new(invocation.clone()), Arc::<Shell>::clone(&shell) as Arc<dyn Caller>);
            let running = async { if talks { running.await } else { show::with_progress("running", running).await } };
            let outcome = tokio::select! {
                outcome = running => outcome,
                () = tokio::time::sleep(deadline) => return Ok(None),
                () = signals.next() => return Ok(None),
            };
            shell.clear();
            let Outcome::InputRequired(ask) = outcome else { return Ok(Some(outcome)) };
            asked += 1;
            if asked > ASKED_AT_MOST {
                return Err(format!("it asked {ASKED_AT_MOST} times and did not come to an end"));
            }
            tokio::select! {
                answered = answer(ask) => (invocation.answers, invocation.state) = answered?,
                () = signals.next() => return Ok(None),
            }
        }
    });
    shell.clear();
    runtime.block_on(async {
        upstream::close_all().await;
        process::settle(process::GRACE).await
    });
    // A read of standard input may block for ever; it holds nothing that matters now.
    runtime.shutdown_background();
    outcome.map_err(|problem| {
        show::error(&problem, "call it in a terminal, or through a client that can answer");
        exit::differs()
    })
}

/// What can be asked of whoever sits at the terminal, if anybody does.
fn person() -> ClientCapabilities {
    match asking::is_possible() {
        true => {
            ClientCapabilities::read(&RawJson::encode(&serde_json::json!({ "elicitation": { "form": {}, "url": {} } })))
        }
        false => ClientCapabilities::default(),
    }
}

type Answered = (Vec<(Box<str>, RawJson)>, Option<Value>);

/// Puts questions to the person at the terminal.
async fn answer(ask: Ask) -> Result<Answered, String> {
    let Ask { requests, state } = ask;
    let asking = move || {
        let mut answers: Vec<(Box<str>, RawJson)> = Vec::new();
        for request in requests {
            let answer = asking::on_terminal(&request)?;
            answers.push((request.key.into(), RawJson::encode(&answer)));
        }
        Ok((answers, state))
    };
    tokio::task::spawn_blocking(asking).await.unwrap_or_else(|_| Err("the question could not be asked".to_owned()))
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
