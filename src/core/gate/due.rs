//! What is due for a call, from the rules, the level and what it does: before anybody is asked, so that it can be
//! foretold too.

use std::sync::Arc;

use super::refusal::Reason;
use super::subject::{Manner, Subject};
use super::{Gate, Stance};
use crate::protocol::Arguments;
use crate::surface::level::Level;
use crate::surface::rules::{Ruled, Ruling};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// It runs.
    Run,
    /// A person has to agree.
    Ask,
    /// Another tool of the surface is to be called, which asks.
    Refer(Arc<str>),
}

/// What would become of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreseen {
    /// It would run.
    Runs,
    /// A person would be asked, for that reason.
    Asks(String),
    /// It would be refused, for that reason.
    Denied(String),
}

impl Gate {
    pub(super) fn due(&self, ruled: Option<&Ruled>, subject: &Subject) -> Result<Due, Reason> {
        let ruling = ruled.map(|ruled| ruled.ruling);
        if let Some(Ruled { ruling: Ruling::Deny, message, .. }) = ruled {
            return Err(Reason::Rule { message: message.clone() });
        }
        let by_rule = ruling == Some(Ruling::Ask);
        let unasked = subject.unasked_from(&self.latitude);
        if self.latitude.level == Level::L0 && unasked != Some(Level::L0) {
            return Err(Reason::Level);
        }
        if !by_rule && unasked.is_some_and(|level| level <= self.latitude.level) {
            return Ok(Due::Run);
        }
        let is_reversible = subject.judged().effect.is_reversible();
        match (subject.manner(), self.desk.stance()) {
            (Manner::Never, _) if !is_reversible => Err(Reason::NotReversible),
            (_, Stance::Deny) => Err(Reason::Headless),
            (Manner::Refers(confirmed), Stance::Ask) if !is_reversible => Ok(Due::Refer(Arc::clone(confirmed))),
            (Manner::Itself, Stance::Ask) if !by_rule => Ok(Due::Run),
            // What can be undone and is asked about by a rule: the tool that was called asks, since the rule is about it.
            (Manner::Refers(_) | Manner::Asks | Manner::Never | Manner::Itself, Stance::Ask) => Ok(Due::Ask),
        }
    }

    /// What would become of a call of a tool, without asking, deciding or writing anything.
    pub fn foresee(&self, tool: &str, caller: &str, arguments: &Arguments, subject: &Subject) -> Foreseen {
        let ruled = self.rules.as_ref().map(|rules| rules.decide(tool, caller, arguments, subject.declared()));
        match self.due(ruled.as_ref(), subject) {
            Ok(Due::Run) => Foreseen::Runs,
            Ok(Due::Ask | Due::Refer(_)) => Foreseen::Asks(match ruled {
                Some(Ruled { ruling: Ruling::Ask, rule: Some(rule), .. }) => format!("rule {rule} of the surface"),
                _ => subject.judged().reason(),
            }),
            Err(Reason::Rule { message }) => Foreseen::Denied(message),
            Err(reason) => Foreseen::Denied(reason.name().to_owned()),
        }
    }
}
