//! One request, as its handler sees it.
//!
//! Promises: a handler is written as if its client answered at once. Where the answer is not there
//! yet the handler ends early and is run again, from its start, with the answers; what was
//! answered in earlier rounds is carried along, sealed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::handle::Handle;
use super::question::{Elicited, Form, Question, Root, Roots, Round, Sample, Sampled, Url};
use crate::protocol::json::RawJson;
use crate::protocol::limits::SEALED_STATE_BYTES;
use crate::protocol::{Ask, Caller, InputKind, InputRequest, Invocation, LogLevel, Notice, Revision};

/// The client has to be asked first; `?` hands this up, and the handler is run again with the answer.
///
/// Nothing else need be done with it. A handler that catches it and returns a result has not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has to answer first")]
pub struct Asks;

/// The members of sealed state: what was answered, and what the handler keeps.
const ANSWERED: &str = "a";
const KEPT: &str = "k";

/// What a seal takes beside the state and the principal's name, in bytes before they are encoded: the digest of the
/// request, method, expiry, member names and the tag.
const SEAL_BYTES: usize = 300;

/// One request, as its handler sees it. Cloning shares it.
///
/// # Asking
///
/// Questions are asked in line: `let name = call.elicit::<Name>("name", "Who are you?")?;`. The first time the handler
/// ends here; once the client has answered it is run **again from its start**, and the same line gives the answer.
/// So ask before you change anything, ask under the same keys each time, and let what is asked depend only on the
/// arguments, on earlier answers and on what was [kept](Self::keep).
#[derive(Clone)]
pub struct Call(Arc<Inner>);

struct Inner {
    caller: Arc<dyn Caller>,
    invocation: Invocation,
    handle: Handle,
    book: Mutex<Book>,
}

/// What was asked and answered.
#[derive(Default)]
struct Book {
    /// What the client told: in this round, and in earlier ones.
    told: BTreeMap<String, Value>,
    /// Of that, what this run has used.
    used: BTreeMap<String, Value>,
    /// What is to be asked.
    open: Vec<InputRequest>,
    kept: Option<Value>,
}

impl Call {
    pub(super) fn new(invocation: Invocation, caller: Arc<dyn Caller>, handle: Handle) -> Self {
        let mut book = Book::default();
        if let Some(state) = &invocation.state {
            let earlier = state.get(ANSWERED).and_then(Value::as_object);
            book.told.extend(earlier.into_iter().flatten().map(|(key, answer)| (key.clone(), answer.clone())));
            book.kept = state.get(KEPT).cloned();
        }
        for (key, answer) in &invocation.answers {
            book.told.insert(key.to_string(), answer.parse().unwrap_or_default());
        }
        Self(Arc::new(Inner { caller, invocation, handle, book: Mutex::new(book) }))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn invocation(&self) -> &Invocation {
        &self.0.invocation
    }

    /// The questions that are open, with what is needed to go on; `None` if nothing was asked in vain.
    pub(super) fn questions(&self) -> Option<Ask> {
        let mut book = self.book();
        let requests = std::mem::take(&mut book.open);
        (!requests.is_empty()).then(|| Ask { requests, state: book.state() })
    }

    /// Whether a question's state can come back by way of the client. What is asked of a legacy client stays here.
    pub(super) fn can_carry(&self, ask: &Ask) -> bool {
        let room = (SEALED_STATE_BYTES / 4 * 3).saturating_sub(SEAL_BYTES + self.principal().len());
        let state = ask.state.as_ref().map_or(0, |state| state.to_string().len());
        !self.revision().rules().input_required || state <= room
    }

    /// The same request with all that was answered so far, for whoever carries it on.
    pub(super) fn answered(&self) -> Invocation {
        let book = self.book();
        let answers = book.told.iter().map(|(key, answer)| (key.as_str().into(), RawJson::encode(answer)));
        Invocation { answers: answers.collect(), state: book.state(), ..self.0.invocation.clone() }
    }

    /// Asks; gives the answer if it is there. A tuple or a vector of questions is asked at once.
    ///
    /// A client that cannot be asked is answered for the handler: find out with [`Self::can`] what to do without.
    pub fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, Asks> {
        let mut book = self.book();
        let Book { told, used, open, .. } = &mut *book;
        let answer = question.answered(&mut Round { told, used, open });
        answer.ok_or(Asks)
    }

    /// Asks the person to fill in a form whose fields are those of `T`.
    pub fn elicit<T: DeserializeOwned + JsonSchema>(&self, key: &str, message: &str) -> Result<Elicited<T>, Asks> {
        self.ask(Form::new(key, message))
    }

    /// Asks the person to fill in a form of this schema.
    pub fn elicit_form(&self, key: &str, message: &str, schema: Value) -> Result<Elicited<Value>, Asks> {
        self.ask(Form::of_schema(key, message, schema))
    }

    /// Asks the person to visit a page.
    pub fn elicit_url(&self, key: &str, message: &str, url: &str) -> Result<Elicited<()>, Asks> {
        self.ask(Url::new(key, message, url))
    }

    /// Has the client's model say something; [`Sample`] says more than a text does.
    pub fn sample(&self, key: &str, text: &str) -> Result<Sampled, Asks> {
        self.ask(Sample::new(key, text))
    }

    /// Asks which folders the client works in.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>, Asks> {
        self.ask(Roots::new(key))
    }

    /// Whether the client can be asked this.
    pub fn can(&self, kind: InputKind) -> bool {
        self.0.invocation.client.can(kind)
    }

    /// Keeps a value for the next run, after the client answered. It passes through the client: sealed, so that it comes
    /// back as it was, but readable, so nothing secret; and short, since all that is kept and answered, once sealed, has 8 KiB.
    pub fn keep(&self, value: impl Serialize) {
        self.book().kept = serde_json::to_value(value).ok();
    }

    /// What was kept last, in this run or an earlier one.
    pub fn kept<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.book().kept.clone()?).ok()
    }

    /// Tells how far the request is: `done`, which must grow, of `total`.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        self.0.caller.notify(Notice::Progress { progress: done, total, message: message.map(str::to_owned) });
    }

    /// Logs to the client, if it wants this level and the server declared [`logging`](super::Server::logging).
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        self.0.caller.notify(Notice::Log { level, logger: None, data: data.into() });
    }

    /// Logs as a part of the server that has a name.
    pub fn log_as(&self, logger: &str, level: LogLevel, data: impl Into<Value>) {
        self.0.caller.notify(Notice::Log { level, logger: Some(logger.to_owned()), data: data.into() });
    }

    /// Says that the answer will take a while: a client whose revision lets it fetch the answer later need not hold its
    /// connection open meanwhile.
    pub fn detach(&self) {
        self.0.caller.notify(Notice::Detach);
    }

    /// Whether the request was cancelled, ran out of time, or its client is gone.
    pub fn is_gone(&self) -> bool {
        self.0.caller.is_gone()
    }

    /// Ends when [`Self::is_gone`] becomes true. A handler that goes on is dropped some seconds later.
    pub async fn gone(&self) {
        self.0.caller.gone().await;
    }

    /// Who asks, as far as that was proven; `local` for whoever can reach our standard input or loopback port.
    pub fn principal(&self) -> &str {
        self.0.invocation.principal.name()
    }

    /// The revision that the request came in. Few handlers need it.
    pub fn revision(&self) -> Revision {
        self.0.invocation.revision
    }

    /// The server, to publish other tools or tell of a resource.
    pub fn server(&self) -> &Handle {
        &self.0.handle
    }
}

impl Book {
    /// What has to come back with the answers; nothing at first.
    fn state(&self) -> Option<Value> {
        let mut state = Map::new();
        if !self.used.is_empty() {
            state.insert(ANSWERED.to_owned(), json!(self.used));
        }
        state.extend(self.kept.clone().map(|kept| (KEPT.to_owned(), kept)));
        (!state.is_empty()).then_some(Value::Object(state))
    }
}
