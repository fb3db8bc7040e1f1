//! What a program says and what it is told, without a descriptor: lines in, reactions out.
//!
//! Promises: each question gets exactly one line back, or ends the run; an answer counts for the very question
//! that the client was shown and for no other; memory is bounded by the number and the length of the lines.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::line::{self, Question, Said};
use crate::protocol::framing::Line;
use crate::protocol::json::shortened;
use crate::protocol::{Ask, Catalog, Content, InputRequest, Notice, Outcome, RawJson};

/// Most bytes of one line, its end not counted.
pub(super) const LINE_BYTES: usize = 64 * 1024;
/// Most lines that are read of one run.
const LINES_AT_MOST: u32 = 10_000;
/// Most lines of one run that are none.
const BAD_LINES_AT_MOST: u32 = 100;
/// Most changes that one run tells of: each reaches every subscriber, and nothing thins them on their way.
const CHANGES_AT_MOST: u32 = 256;
/// Most bytes of earlier answers that come back with the next one: what is sealed of them stays within 8 KiB of text.
const STATE_BYTES: usize = 5 * 1024;

/// What comes of a line.
#[derive(Debug)]
pub(super) enum Reaction {
    /// Nothing that anybody hears of.
    Nothing,
    /// The caller hears of it.
    Tell(Notice),
    /// The program reads this line.
    Reply(String),
    /// The program reads this line, then the end: it is not listened to any more.
    Close(String),
    /// The program is stopped; the call ends like this for now.
    Stop(Box<Outcome>),
}

/// An answer, and the digest of the question that it was given to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Heard {
    of: String,
    answer: Value,
}

/// What comes back with an answer.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The digest of what is asked, by its key.
    #[serde(default)]
    asked: BTreeMap<String, String>,
    /// The answers to what was asked before.
    #[serde(default)]
    heard: BTreeMap<String, Heard>,
}

/// See the module.
#[derive(Debug)]
pub(in crate::core::command) struct Conversation {
    tool: String,
    catalog: Arc<Catalog>,
    heard: BTreeMap<String, Heard>,
    /// The digests of what this run has asked, by key.
    asked: HashMap<String, String>,
    lines: u32,
    bad: u32,
    changes: u32,
    closed: bool,
}

impl Conversation {
    /// Begins a run with the client's answers to the last question and what was kept of earlier ones.
    pub(in crate::core::command) fn new(
        tool: &str,
        catalog: Arc<Catalog>,
        answers: &[(Box<str>, RawJson)],
        state: Option<&Value>,
    ) -> Self {
        let State { asked, mut heard } =
            state.and_then(|state| serde_json::from_value(state.clone()).ok()).unwrap_or_default();
        // An answer without its question in the state was given to something that nobody saw.
        for (key, of) in asked {
            let answer = answers.iter().find(|(answered, _)| **answered == *key);
            if let Some(answer) = answer.and_then(|(_, raw)| raw.parse().ok()) {
                heard.insert(key, Heard { of, answer });
            }
        }
        let (tool, asked) = (tool.to_owned(), HashMap::new());
        Self { tool, catalog, heard, asked, lines: 0, bad: 0, changes: 0, closed: false }
    }

    /// Whether no line is heard any more.
    pub(super) fn is_over(&self) -> bool {
        self.closed
    }

    /// Takes the next line.
    pub(super) fn hear(&mut self, line: &Line) -> Reaction {
        if self.closed {
            return Reaction::Nothing;
        }
        self.lines += 1;
        if self.lines > LINES_AT_MOST {
            return self.close(format!("more than {LINES_AT_MOST} lines: no more are read"));
        }
        let said = match line {
            Line::Whole(text) => line::read(text, &self.catalog),
            Line::TooLong => Err(format!("the line is longer than {LINE_BYTES} bytes")),
        };
        match said {
            Ok(Said::Tell(Notice::Updated { .. })) if self.changes >= CHANGES_AT_MOST => {
                self.refuse(&format!("more than {CHANGES_AT_MOST} changes in one run: tell of each resource once"))
            }
            Ok(Said::Tell(notice)) => {
                self.changes += u32::from(matches!(notice, Notice::Updated { .. }));
                Reaction::Tell(notice)
            }
            Ok(Said::Ask(question)) => self.ask(question),
            Err(problem) => self.refuse(&problem),
        }
    }

    fn ask(&mut self, question: Question) -> Reaction {
        let of = question.digest();
        let before = self.asked.entry(question.key.clone()).or_insert_with(|| of.clone());
        if *before != of {
            let key = &question.key;
            return self.refuse(&format!("the key {key:?} stood for another question before: use one key for each"));
        }
        if let Some(heard) = self.heard.get_mut(&question.key).filter(|heard| heard.of == of) {
            match question.answer(&heard.answer) {
                Ok(answer) => {
                    heard.answer = answer;
                    return Reaction::Reply(json!({ "answer": heard.answer }).to_string());
                }
                Err(why) => {
                    tracing::info!(tool = %self.tool, key = %question.key, "the answer does not fit, asking again: {why}");
                }
            }
        }
        Reaction::Stop(Box::new(self.stop(question, of)))
    }

    /// The outcome that asks the client.
    fn stop(&mut self, question: Question, of: String) -> Outcome {
        self.heard.remove(&question.key);
        let asked = BTreeMap::from([(question.key.clone(), of)]);
        let state = json!(State { asked, heard: std::mem::take(&mut self.heard) });
        let size = state.to_string().len();
        if size > STATE_BYTES {
            return Outcome::Failed(Content::text(format!(
                "the question {:?} cannot be asked: the answers to the questions before it take {size} bytes, \
                 more than the {STATE_BYTES} that can be kept meanwhile; the program has to ask for less before it",
                question.key
            )));
        }
        let Question { key, kind, params, .. } = question;
        Outcome::InputRequired(Ask { requests: vec![InputRequest { key, kind, params }], state: Some(state) })
    }

    fn refuse(&mut self, problem: &str) -> Reaction {
        self.bad += 1;
        if self.bad == 1 {
            tracing::warn!(tool = %self.tool, line = self.lines, "a line of the program is ignored: {problem}");
        } else if self.bad > BAD_LINES_AT_MOST {
            return self.close(format!("more than {BAD_LINES_AT_MOST} lines that are none: no more are read"));
        }
        Reaction::Reply(json!({ "error": shortened(problem, 500) }).to_string())
    }

    fn close(&mut self, problem: String) -> Reaction {
        tracing::warn!(tool = %self.tool, "the program is not listened to any more: {problem}");
        self.closed = true;
        Reaction::Close(json!({ "error": problem }).to_string())
    }
}

#[cfg(test)]
mod tests;
