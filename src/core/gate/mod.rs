//! The safety gate: between the look-up of a tool and its run.
//!
//! Promises: nothing runs without [`Cleared`], which the gate alone makes, which holds the call it was
//! made for, and which is used up by running it. What cannot be undone runs only if a person agreed to
//! that very call, or the surface file lets it through unasked; an approval is good for one run. Where nobody can be asked, or what was decided cannot
//! be kept, nothing runs. Used by the router.
//!
//! ```compile_fail,E0451
//! # use twodoor::{core::gate::Cleared, protocol::Invocation};
//! fn make(invocation: Invocation) -> Cleared {
//!     Cleared { invocation, definition: None, ticket: None, watch: None } // its fields are the gate's own
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

mod approvals;
mod audit;
mod bound;
mod desk;
mod due;
mod question;
mod record;
mod refusal;
mod subject;
mod trail;
mod writer;

use std::sync::Arc;

use serde_json::{Value, json};

pub use approvals::{ApprovalError, Approvals, Decision};
pub use desk::{Desk, Stance};
pub use due::Foreseen;
pub use record::{Request, Standing};
pub use refusal::{Reason, Refusal};
pub use subject::{Manner, Subject};

use super::blocking::blocking;
use crate::protocol::digest::{self, Digest};
use crate::protocol::limits::SEALED_STATE_LIFE;
use crate::protocol::revision::Elicitation;
use crate::protocol::{Arguments, Ask, InputKind, Invocation, Operation, Outcome};
use crate::surface::effect::Judged;
use crate::surface::level::{Latitude, Level};
use crate::surface::rules::{CallRules, Ruled};
use bound::Bound;
use desk::{Claim, nonce, now};
use due::Due;
use question::Said;
use trail::{Trail, Watch};

/// A call that may run. Only the gate makes one, and whoever runs it uses it up.
#[derive(Debug)]
pub struct Cleared {
    invocation: Box<Invocation>,
    definition: Option<Digest>,
    ticket: Option<Ticket>,
    watch: Option<Watch>,
}

impl Cleared {
    fn of(invocation: Invocation, subject: &Subject, ticket: Option<Ticket>) -> Self {
        Self { invocation: Box::new(invocation), definition: subject.definition(), ticket, watch: None }
    }

    /// The call.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    /// The definition that was judged, where a tool that can do several things was called: nothing else may run.
    pub fn definition(&self) -> Option<Digest> {
        self.definition
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

/// Longest arguments that are looked through on a thread that serves others, bytes.
const QUICK: usize = 4 * 1024;

fn is_quick(arguments: &Arguments) -> bool {
    arguments.text().as_bytes().len() <= QUICK
}

/// Looks through arguments, where that keeps nobody waiting; `None` if it broke down, which was logged.
async fn over<T: Send + 'static>(
    arguments: &Arguments,
    work: impl FnOnce(&Arguments) -> T + Send + 'static,
) -> Option<T> {
    if is_quick(arguments) {
        return Some(work(arguments));
    }
    let arguments = arguments.clone();
    blocking(move || work(&arguments)).await
}

/// The steps of a call that a person has to agree to.
const ASKED: &str = "asked";
const AGREED: &str = "agreed";

/// The gate of one surface.
#[derive(Debug)]
pub struct Gate {
    surface: String,
    version: String,
    rules: Option<CallRules>,
    latitude: Latitude,
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
        Self { surface: surface.into(), version: version.into(), rules: None, latitude: Latitude::default(), desk }
    }

    /// The same with rules over arguments.
    #[must_use]
    pub fn with_rules(mut self, rules: Option<CallRules>) -> Self {
        self.rules = rules;
        self
    }

    /// The same that lets so much through unasked.
    #[must_use]
    pub fn with_latitude(mut self, latitude: Latitude) -> Self {
        self.latitude = latitude;
        self
    }

    /// Whether some call of this surface may be denied that can be undone.
    pub fn may_deny(&self) -> bool {
        self.rules.is_some() || self.latitude.level == Level::L0
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
            Verdict::Allow(mut cleared) => {
                let (ticket, watch) = (cleared.ticket.clone(), cleared.watch.take());
                let outcome = run(cleared).await;
                if let Some(watch) = watch {
                    watch.ended(&outcome).await;
                }
                self.settle(ticket, outcome)
            }
            Verdict::Ask(ask) => Outcome::InputRequired(ask),
            Verdict::Deny(refusal) => refusal.outcome(has_output_schema),
        }
    }

    /// Decides whether a call may run, and writes the decision down where that is done. What a person agreed to counts
    /// as used from here on.
    pub async fn review(&self, invocation: Invocation, subject: &Subject) -> Verdict {
        let judged = subject.judged();
        if judged.effect.is_reversible() && !self.may_deny() && self.desk.audit().is_none() {
            return Verdict::Allow(Cleared::of(invocation, subject, None));
        }
        let Some(bound) = self.bound(&invocation, subject).await else {
            return Verdict::Deny(Refusal::new(Reason::NobodyToAsk, subject, judged));
        };
        let mut trail = Trail::of(&invocation, subject);
        let verdict = self.decide(invocation, subject, &judged, &bound, &mut trail).await;
        let Some(audit) = self.desk.audit() else { return verdict };
        match (verdict, trail.write(audit, &bound, &judged).await) {
            (Verdict::Allow(cleared), Some(watch)) => Verdict::Allow(Cleared { watch: Some(watch), ..cleared }),
            (Verdict::Allow(_) | Verdict::Ask(_), None) => {
                Verdict::Deny(Refusal::new(Reason::NotKept, subject, judged))
            }
            (verdict, _) => verdict,
        }
    }

    async fn decide(
        &self,
        invocation: Invocation,
        subject: &Subject,
        judged: &Judged,
        bound: &Bound,
        trail: &mut Trail,
    ) -> Verdict {
        let ruled = self.ruled(&invocation, subject).await;
        trail.rule = ruled.as_ref().and_then(|ruled| ruled.rule);
        let verdict = match self.due(ruled.as_ref(), subject) {
            Ok(Due::Run) => Ok(Verdict::Allow(Cleared::of(invocation, subject, None))),
            Ok(Due::Refer(confirmed)) => Err(Reason::ApprovalRequired {
                request_id: bound.request_id(),
                next: format!(
                    "If the person wants it, call {confirmed} with the same arguments: it asks the person before it runs."
                ),
            }),
            Ok(Due::Ask) => self.approved(invocation, subject, judged, bound, trail).await,
            Err(reason) => Err(reason),
        };
        match &verdict {
            Ok(Verdict::Allow(_)) => trail.verdict = "allow",
            Ok(Verdict::Ask(_)) => trail.verdict = "ask",
            Ok(Verdict::Deny(refusal)) => trail.refuse(refusal.reason()),
            Err(reason) => trail.refuse(reason),
        }
        verdict.unwrap_or_else(|reason| Verdict::Deny(Refusal::new(reason, subject, *judged)))
    }

    /// What the rules say, if there are any.
    async fn ruled(&self, invocation: &Invocation, subject: &Subject) -> Option<Ruled> {
        let rules = self.rules.as_ref()?;
        let Operation::Call { tool, arguments, .. } = &invocation.operation else { return None };
        let caller = invocation.principal.name();
        let ruled = if is_quick(arguments) {
            rules.decide(tool.as_str(), caller, arguments, subject.declared())
        } else {
            let (rules, tool, arguments) = (rules.clone(), tool.clone(), arguments.clone());
            let (caller, declared) = (caller.to_owned(), subject.declared().clone());
            let judged = blocking(move || rules.decide(tool.as_str(), &caller, &arguments, &declared)).await;
            judged.unwrap_or_else(Ruled::broken)
        };
        if let Some(problem) = &ruled.failed {
            tracing::warn!(%tool, rule = ruled.rule, %problem, "a rule could not judge a call, which is denied");
        }
        Some(ruled)
    }

    /// Whether a person agreed to a call that needs it, or how one is asked.
    async fn approved(
        &self,
        invocation: Invocation,
        subject: &Subject,
        judged: &Judged,
        bound: &Bound,
        trail: &mut Trail,
    ) -> Result<Verdict, Reason> {
        let seal = self.desk.seal(bound.key()).ok_or(Reason::NobodyToAsk)?;
        trail.approval = Some(bound.request_id());
        let resumed = match self.resumed(&invocation, &seal) {
            Resumed::Used => return Err(Reason::Replayed { request_id: None }),
            Resumed::NoRoom => return Err(Reason::Full),
            Resumed::Said(Said::No) => return Err(Reason::Declined),
            // The answer was the gate's; the backend begins from its start.
            Resumed::Said(Said::Yes) => Some(Invocation { answers: Vec::new(), state: None, ..invocation.clone() }),
            Resumed::GoesOn(state) => Some(Invocation { state, ..invocation.clone() }),
            Resumed::Said(Said::Nothing) | Resumed::No => None,
        };
        let allow =
            |invocation| Ok(Verdict::Allow(Cleared::of(invocation, subject, Some(Ticket { seal: seal.clone() }))));
        if let Some(invocation) = resumed {
            return allow(invocation);
        }
        let arguments = invocation.operation.arguments().ok_or(Reason::NobodyToAsk)?;
        if can_be_asked(&invocation) {
            let state = state(ASKED, &seal, None).ok_or(Reason::NobodyToAsk)?;
            let (bound, subject, judged) = (bound.clone(), subject.clone(), *judged);
            let form = move |arguments: &Arguments| question::form(&bound, &subject, &judged, arguments);
            let request = over(arguments, form).await.ok_or(Reason::NobodyToAsk)?;
            return Ok(Verdict::Ask(Ask { requests: vec![request], state: Some(state) }));
        }
        let approvals = Arc::clone(self.desk.approvals().ok_or(Reason::NobodyToAsk)?);
        let (request_id, bound, arguments) = (bound.request_id(), bound.clone(), arguments.clone());
        let heading = question::heading(&bound, subject, judged);
        let ask = move || {
            let text = format!("{heading}\n{}", question::shown(&arguments, &bound, question::IN_RECORD));
            approvals.ask(&bound, text)
        };
        match blocking(ask).await {
            Some(Ok(Standing::Approved)) => allow(Invocation { answers: Vec::new(), state: None, ..invocation }),
            Some(Ok(Standing::Pending)) => {
                let next = format!(
                    "Ask the person to look at it on the server's machine with `twodoor approvals show {request_id}` and to \
                     approve it within 10 minutes with `twodoor approvals approve {request_id}`, each with the --surface or the \
                     --state of the server. Then make the very same call again."
                );
                Err(Reason::ApprovalRequired { request_id, next })
            }
            Some(Ok(Standing::Denied)) => Err(Reason::Declined),
            Some(Ok(Standing::Used)) => Err(Reason::Replayed { request_id: Some(request_id) }),
            Some(Err(ApprovalError::Full)) => Err(Reason::Full),
            Some(Err(error)) => {
                tracing::error!(%error, "an approval cannot be kept, so its call is refused");
                Err(Reason::NotKept)
            }
            None => Err(Reason::NotKept),
        }
    }

    /// What its approval is bound to: the tool that asks, where that is another.
    async fn bound(&self, invocation: &Invocation, subject: &Subject) -> Option<Bound> {
        let Operation::Call { tool, arguments, .. } = &invocation.operation else { return None };
        let tool = match subject.manner() {
            Manner::Refers(confirmed) if !subject.judged().effect.is_reversible() => &**confirmed,
            Manner::Refers(_) | Manner::Asks | Manner::Never | Manner::Itself => tool.as_str(),
        };
        Some(Bound {
            principal: invocation.principal.name().to_owned(),
            surface: self.surface.clone(),
            version: self.version.clone(),
            tool: tool.to_owned(),
            tool_digest: invocation.catalog.tool(tool).map_or_else(nothing, |tool| tool.digest),
            arguments: over(arguments, bound::digest_of).await?,
            rules: self.rules.as_ref().map_or_else(nothing, CallRules::digest),
            definition: subject.definition().unwrap_or_else(nothing),
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

#[cfg(test)]
mod tests;
