//! The safety gate: between the look-up of a tool and its run.
//!
//! Promises: nothing runs without [`Cleared`], which the gate alone makes, which holds the call it was
//! made for, and which is used up by running it. What cannot be undone runs only if a person agreed to
//! that very call; an approval is good for one run. Where nobody can be asked, or what was decided cannot
//! be kept, nothing runs. Used by the router.
//!
//! ```compile_fail,E0451
//! # use twodoor::{core::gate::Cleared, protocol::Invocation};
//! fn make(invocation: Invocation) -> Cleared {
//!     Cleared { invocation, ticket: None } // its fields are the gate's own
//! }
//! ```
//! ```compile_fail,E0599
//! # use twodoor::core::gate::Cleared;
//! fn twice(cleared: Cleared) -> (Cleared, Cleared) {
//!     (cleared.clone(), cleared) // one approval, one run
//! }
//! ```
//! ```compile_fail,E0308
//! # use twodoor::{core::backend::Backend, protocol::{Caller, Invocation, Outcome}};
//! async fn run(backend: &Backend, invocation: Invocation, caller: &dyn Caller) -> Outcome {
//!     backend.run(invocation, caller).await // a backend takes no call that was not cleared
//! }
//! ```

mod bound;
mod desk;
mod question;
mod refusal;
mod subject;

use std::sync::Arc;

use serde_json::{Value, json};

pub use desk::{Desk, Stance};
pub use refusal::{Reason, Refusal};
pub use subject::{Manner, Subject};

use crate::protocol::digest::{self, Digest};
use crate::protocol::limits::SEALED_STATE_LIFE;
use crate::protocol::revision::Elicitation;
use crate::protocol::{Ask, InputKind, Invocation, Operation, Outcome};
use bound::Bound;
use desk::{Claim, nonce, now};
use question::Said;

/// A call that may run. Only the gate makes one, and whoever runs it uses it up.
#[derive(Debug)]
pub struct Cleared {
    invocation: Invocation,
    ticket: Option<Ticket>,
}

impl Cleared {
    /// The call.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }
}

/// What is decided of a call.
#[derive(Debug)]
pub enum Verdict {
    /// It may run.
    Allow(Cleared),
    /// A person is asked first, through the client.
    Ask(Ask),
    /// It does not run.
    Deny(Refusal),
}

/// That a person agreed to a call: what goes on of it is told by this.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ticket {
    seal: String,
}

/// The steps of a call that a person has to agree to.
const ASKED: &str = "asked";
const AGREED: &str = "agreed";

/// The gate of one surface.
#[derive(Debug)]
pub struct Gate {
    surface: String,
    version: String,
    desk: Arc<Desk>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new("", "", Arc::default())
    }
}

impl Gate {
    /// The gate of a surface of that name and version.
    pub fn new(surface: impl Into<String>, version: impl Into<String>, desk: Arc<Desk>) -> Self {
        Self { surface: surface.into(), version: version.into(), desk }
    }

    /// The same at another desk.
    #[must_use]
    pub fn at(mut self, desk: Arc<Desk>) -> Self {
        self.desk = desk;
        self
    }

    /// Has a call run if it may, and says what came of it.
    pub async fn pass<F>(&self, invocation: Invocation, subject: &Subject, run: impl FnOnce(Cleared) -> F) -> Outcome
    where
        F: Future<Output = Outcome>,
    {
        let has_output_schema = invocation.tool().is_some_and(|tool| tool.output.is_some());
        match self.review(invocation, subject).await {
            Verdict::Allow(cleared) => {
                let ticket = cleared.ticket.clone();
                self.settle(ticket, run(cleared).await)
            }
            Verdict::Ask(ask) => Outcome::InputRequired(ask),
            Verdict::Deny(refusal) => refusal.outcome(has_output_schema),
        }
    }

    /// Decides whether a call may run. What a person agreed to counts as used from here on.
    pub async fn review(&self, invocation: Invocation, subject: &Subject) -> Verdict {
        let judged = subject.judged();
        if judged.effect.is_reversible() {
            return Verdict::Allow(Cleared { invocation, ticket: None });
        }
        let deny = |reason| Verdict::Deny(Refusal::new(reason, subject, judged));
        let Some(bound) = self.bound(&invocation, subject) else { return deny(Reason::NobodyToAsk) };
        match (subject.manner(), self.desk.stance()) {
            (Manner::Never, _) => return deny(Reason::NotReversible),
            (_, Stance::Deny) => return deny(Reason::Headless),
            (Manner::Refers(confirmed), Stance::Ask) => {
                let next = format!(
                    "If the person wants it, call {confirmed} with the same arguments: it asks the person before it runs."
                );
                return deny(Reason::ApprovalRequired { request_id: bound.request_id(), next });
            }
            (Manner::Asks, Stance::Ask) => {}
        }
        let Some(seal) = self.desk.seal(bound.key()) else { return deny(Reason::NobodyToAsk) };
        match self.resumed(&invocation, &seal) {
            Resumed::Used => return deny(Reason::Replayed { request_id: None }),
            Resumed::NoRoom => return deny(Reason::Full),
            Resumed::Said(Said::No) => return deny(Reason::Declined),
            Resumed::Said(Said::Yes) => {
                // The answer was the gate's; the backend begins from its start.
                let invocation = Invocation { answers: Vec::new(), state: None, ..invocation };
                return Verdict::Allow(Cleared { invocation, ticket: Some(Ticket { seal }) });
            }
            Resumed::GoesOn(state) => {
                let invocation = Invocation { state, ..invocation };
                return Verdict::Allow(Cleared { invocation, ticket: Some(Ticket { seal }) });
            }
            Resumed::Said(Said::Nothing) | Resumed::No => {}
        }
        if !can_be_asked(&invocation) {
            return deny(Reason::NobodyToAsk);
        }
        let (Some(arguments), Some(state)) = (invocation.operation.arguments(), state(ASKED, &seal, None)) else {
            return deny(Reason::NobodyToAsk);
        };
        let request = question::form(&bound, subject, &judged, arguments);
        Verdict::Ask(Ask { requests: vec![request], state: Some(state) })
    }

    /// What its approval is bound to: the tool that asks, where that is another.
    fn bound(&self, invocation: &Invocation, subject: &Subject) -> Option<Bound> {
        let Operation::Call { tool, arguments, .. } = &invocation.operation else { return None };
        let tool = match subject.manner() {
            Manner::Refers(confirmed) => confirmed,
            Manner::Asks | Manner::Never => tool.as_str(),
        };
        Some(Bound {
            principal: invocation.principal.name().to_owned(),
            surface: self.surface.clone(),
            version: self.version.clone(),
            tool: tool.to_owned(),
            tool_digest: invocation.catalog.tool(tool).map_or_else(nothing, |tool| tool.digest),
            arguments: bound::digest_of(arguments),
            rules: nothing(),
        })
    }

    /// What an earlier part of this call came to, by the state that came back with it.
    fn resumed(&self, invocation: &Invocation, seal: &str) -> Resumed {
        let Some(given) = invocation.state.as_ref().and_then(|state| state.get("gate")) else { return Resumed::No };
        let text = |key: &str| given.get(key).and_then(Value::as_str);
        let (Some(nonce), Some(until)) = (text("nonce"), given.get("until").and_then(Value::as_u64)) else {
            return Resumed::No;
        };
        // Of another process, of a surface that is not in force any more, or too old: nothing ran, so it begins anew.
        if text("call") != Some(seal) || until <= now() {
            return Resumed::No;
        }
        match (self.desk.claim(nonce, until), text("step")) {
            (Claim::Again, _) => Resumed::Used,
            (Claim::NoRoom, _) => Resumed::NoRoom,
            (Claim::First, Some(ASKED)) => Resumed::Said(question::answer(invocation)),
            (Claim::First, Some(AGREED)) => {
                Resumed::GoesOn(invocation.state.as_ref().and_then(|state| state.get("state")).cloned())
            }
            (Claim::First, _) => Resumed::No,
        }
    }

    /// What is told of a run. One that a person agreed to and that asks something of its own is told by its state that
    /// it was agreed to, once more for each question.
    fn settle(&self, ticket: Option<Ticket>, outcome: Outcome) -> Outcome {
        match (ticket, outcome) {
            (Some(ticket), Outcome::InputRequired(Ask { requests, state: inner })) => {
                match state(AGREED, &ticket.seal, inner) {
                    Some(state) => Outcome::InputRequired(Ask { requests, state: Some(state) }),
                    None => super::backend::defect("the system gives no randomness, so a call cannot go on"),
                }
            }
            (_, outcome) => outcome,
        }
    }
}

/// What the state that came with a call means.
enum Resumed {
    /// There is none of ours.
    No,
    /// It came before.
    Used,
    /// It cannot be remembered that it came.
    NoRoom,
    /// It answers the question.
    Said(Said),
    /// It goes on with a call that was agreed to; the backend's own state.
    GoesOn(Option<Value>),
}

/// A state that can be used once.
fn state(step: &str, seal: &str, inner: Option<Value>) -> Option<Value> {
    let until = now().saturating_add(SEALED_STATE_LIFE.as_secs());
    let gate = json!({ "step": step, "nonce": nonce()?, "call": seal, "until": until });
    Some(match inner {
        Some(inner) => json!({ "gate": gate, "state": inner }),
        None => json!({ "gate": gate }),
    })
}

/// Whether the client, in the revision of its request, can ask a person.
fn can_be_asked(invocation: &Invocation) -> bool {
    invocation.client.can(InputKind::ElicitForm) && invocation.revision.rules().elicitation != Elicitation::None
}

/// The digest of nothing.
fn nothing() -> Digest {
    digest::of_bytes(b"")
}
