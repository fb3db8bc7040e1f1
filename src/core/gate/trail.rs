//! What is remembered of a decision while it is made, until it is written down; and of a run until it has ended.

use std::sync::Arc;
use std::time::Instant;

use super::audit::{Audit, Called, Durable, Line};
use super::bound::Bound;
use super::desk::nonce;
use super::refusal::Reason;
use super::subject::Subject;
use crate::protocol::{Invocation, Outcome};
use crate::surface::effect::Judged;

/// See the module.
#[derive(Debug)]
pub(super) struct Trail {
    /// What was called, which need not be the tool that an approval is for.
    called: Called,
    pub(super) rule: Option<usize>,
    pub(super) approval: Option<String>,
    pub(super) verdict: &'static str,
    reason: Option<&'static str>,
}

impl Trail {
    /// Of a call, before anything is decided.
    pub(super) fn of(invocation: &Invocation, subject: &Subject) -> Self {
        let tool = invocation.operation.tool().map(|tool| tool.as_str()).unwrap_or_default();
        let digest = invocation.catalog.tool(tool).map(|tool| tool.digest.to_string()).unwrap_or_default();
        let does = subject.labels().iter().filter(|(_, name)| name != tool).cloned().collect();
        let called = Called { tool: tool.to_owned(), digest, does };
        Self { called, rule: None, approval: None, verdict: "", reason: None }
    }

    pub(super) fn refuse(&mut self, reason: &Reason) {
        self.reason = Some(reason.name());
        self.verdict = match reason {
            Reason::ApprovalRequired { .. } => "ask",
            _ => "deny",
        };
        if let Reason::ApprovalRequired { request_id, .. } = reason {
            self.approval = Some(request_id.clone());
        }
    }

    /// Writes the decision down; `None` if it cannot be. If this is given up, the line is written all the same, and
    /// the end of a call that was let through after it.
    pub(super) async fn write(self, audit: &Arc<Audit>, bound: &Bound, judged: &Judged) -> Option<Watch> {
        let line = Line::decided(nonce().unwrap_or_default(), &self.called, bound, judged, self.verdict);
        let line = line.because(self.rule, self.reason, self.approval);
        let durable = if judged.effect.is_reversible() { Durable::No } else { Durable::Yes };
        let watch = Watch { audit: Arc::clone(audit), line: Some(Box::new(line.clone())), began: Instant::now() };
        // What does not run has no end, whoever gives this up.
        let watch = if self.verdict == "allow" { watch } else { watch.forgotten() };
        match audit.add(line, durable).await {
            Ok(()) => Some(watch),
            Err(error) => {
                tracing::error!(%error, "the audit log cannot be written, so calls are refused");
                watch.forgotten();
                None
            }
        }
    }
}

/// A run whose end is to be written down, however it comes.
#[derive(Debug)]
pub(super) struct Watch {
    audit: Arc<Audit>,
    line: Option<Box<Line>>,
    began: Instant,
}

impl Watch {
    /// Writes down how it ended. It has run, so nothing is refused if that fails.
    pub(super) async fn ended(mut self, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Failed(_) | Outcome::NotFound | Outcome::Refused(_) => "failed",
            Outcome::InputRequired(_) => "asks",
            Outcome::Defect { .. } => "defect",
            Outcome::Complete(_)
            | Outcome::Prompted(_)
            | Outcome::Read(_)
            | Outcome::Completed(_)
            | Outcome::Task(_) => "complete",
        };
        let Some(line) = self.line.take() else { return };
        if let Err(error) = self.audit.add(line.ended(outcome, self.milliseconds()), Durable::No).await {
            tracing::error!(%error, "what came of a call cannot be written to the audit log");
        }
    }

    /// It did not begin, and has no end.
    fn forgotten(mut self) -> Self {
        self.line = None;
        self
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A run that is given up in its midst, because its caller went or its time was over. This may be a thread that serves
/// others, so the line is handed over.
impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            self.audit.hand_over(line.ended("stopped", self.milliseconds()));
        }
    }
}
