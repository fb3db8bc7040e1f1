//! Why a call does not run, as its caller is told.

use serde_json::{Map, Value, json};

use super::subject::Subject;
use crate::protocol::{Block, Content, Outcome};
use crate::surface::effect::Judged;

/// Why a call does not run. The word for each is what a program may rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It needs the approval of a person, who can be asked so.
    ApprovalRequired {
        /// The name of the request for it.
        request_id: String,
        /// What to do to get it.
        next: String,
    },
    /// It cannot be undone, and nobody may be asked here.
    Headless,
    /// It cannot be undone, and nobody can be asked.
    NobodyToAsk,
    /// It cannot be undone, and was published as if it could.
    NotReversible,
    /// A person said no.
    Declined,
    /// Its approval was used already.
    Replayed {
        /// The name of the request for it, where it has one.
        request_id: Option<String>,
    },
    /// A rule of the surface says so.
    Rule {
        /// What the rule says.
        message: String,
    },
    /// The level of the surface lets through what only reads.
    Level,
    /// Too many approvals are waited for.
    Full,
    /// What has to be written down cannot be.
    NotKept,
}

impl Reason {
    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ApprovalRequired { .. } => "approval_required",
            Self::Headless => "headless",
            Self::NobodyToAsk => "nobody_to_ask",
            Self::NotReversible => "not_reversible",
            Self::Declined => "declined",
            Self::Replayed { .. } => "replayed",
            Self::Rule { .. } => "rule",
            Self::Level => "level",
            Self::Full => "too_many_requests",
            Self::NotKept => "not_kept",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::ApprovalRequired { .. } => "Nothing ran: a person has to approve this call first.".to_owned(),
            Self::Headless => {
                "Nothing ran: a person would have to approve it, and this server asks nobody (--deny-irreversible). Tell the operator what is wanted."
                    .to_owned()
            }
            Self::NobodyToAsk => {
                "Nothing ran: a person has to approve it, and there is none to ask. Call it through a client that can be asked \
                 (elicitation by form), through a server whose operator can approve with `twodoor approvals`, or at a terminal."
                    .to_owned()
            }
            Self::NotReversible => {
                "Nothing ran: it cannot be undone, and this surface publishes only what can. Tell the operator.".to_owned()
            }
            Self::Declined => "Nothing ran: the person who was asked did not agree. Do not ask again unasked.".to_owned(),
            Self::Replayed { .. } => {
                "Nothing ran again: the approval of this call was used already, and holds for one run. If it has to be done \
                 twice, call it anew and have it approved anew; an approval out of band has to expire first."
                    .to_owned()
            }
            Self::Rule { message } => format!("Nothing ran: {message}"),
            Self::Level => {
                "Nothing ran: this surface lets through only what is known to read (level L0). Tell the operator what is wanted."
                    .to_owned()
            }
            Self::Full => "Nothing ran: too many calls wait for an approval. Wait until some are decided or expire.".to_owned(),
            Self::NotKept => {
                "Nothing ran: this server has to write down what it decides, and cannot. The operator's log has the cause."
                    .to_owned()
            }
        }
    }
}

/// A call that does not run, with what its caller is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    reason: Reason,
    labels: Vec<(&'static str, String)>,
    judged: Judged,
}

impl Refusal {
    pub(super) fn new(reason: Reason, subject: &Subject, judged: Judged) -> Self {
        Self { reason, labels: subject.labels().to_vec(), judged }
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// What is told, as JSON.
    pub fn to_value(&self) -> Value {
        let mut about: Map<String, Value> =
            self.labels.iter().map(|(label, name)| ((*label).to_owned(), name.as_str().into())).collect();
        let (verb, class) = (self.judged.verb, self.judged.blast_class.map(|class| class.name()));
        let message = self.reason.message();
        if let Reason::ApprovalRequired { request_id, next } = &self.reason {
            about.insert("request_id".to_owned(), request_id.as_str().into());
            about.insert("verb".to_owned(), verb.into());
            about.insert("blast_class".to_owned(), class.into());
            about.insert("reason".to_owned(), self.judged.reason().into());
            about.insert("next".to_owned(), next.as_str().into());
            return json!({ "status": "approval_required", "approval_required": about, "message": message });
        }
        about.insert("reason".to_owned(), self.reason.name().into());
        if let Reason::Replayed { request_id: Some(id) } = &self.reason {
            about.insert("request_id".to_owned(), id.as_str().into());
        }
        json!({ "status": "refused", "refused": about, "verb": verb, "blast_class": class, "message": message })
    }

    /// How the call ends. What may still run after an approval is no failure, but where the tool's results have a form
    /// that this does not have.
    pub fn outcome(&self, has_output_schema: bool) -> Outcome {
        let value = self.to_value();
        match &self.reason {
            Reason::ApprovalRequired { .. } if !has_output_schema => {
                Outcome::Complete(Content { blocks: vec![Block::text(value.to_string())], structured: Some(value) })
            }
            _ => Outcome::Failed(Content::text(value.to_string())),
        }
    }
}
