//! Tools of other MCP servers, pinned by the digest of their whole list.
//!
//! Promises: a call runs on the tool that was declared, of a list that was reviewed, or not at all; what
//! is published never changes by what an upstream does; nothing of our caller's own goes to it but the
//! arguments; every wait, result and error of it is bounded, cleaned and named as its own. One upstream
//! that fails, floods or hangs pauses itself and nobody else.

mod breaker;
mod program;
mod question;
mod result;
mod server;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::backend::defect;
use super::given::Given;
use super::outgoing::how_to_narrow;
use super::redact::Secrets;
use crate::client::outbound::Reach;
use crate::client::reading;
use crate::client::{Answers, Call, Door, Ending, Problem};
use crate::protocol::json::{JsonLimits, shortened};
use crate::protocol::revision::Elicitation;
use crate::protocol::{Arguments, Caller, Content, InputKind, Invocation, Notice, Outcome, RawJson};
use crate::surface::did_you_mean;
use crate::surface::outward::{DeclaredUpstream, UpstreamTool};
use result::Reading;
use server::{Opened, Progress, Ready, Trouble, Upstream};

/// How long a call may take where nothing is said: as long as the engine waits.
const WITHIN: Duration = Duration::from_secs(60);

/// Most characters of an upstream's own words about a failure.
const SAID: usize = 300;

/// The upstreams of this process, so that all tools of one share its connection, over a reload too.
static SHARED: Mutex<Vec<Weak<Upstream>>> = Mutex::new(Vec::new());

fn shared(declared: &Arc<DeclaredUpstream>) -> Arc<Upstream> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|upstream| upstream.strong_count() > 0);
    let known = shared.iter().filter_map(Weak::upgrade).find(|upstream| upstream.declared == *declared);
    known.unwrap_or_else(|| {
        let upstream = Arc::new(Upstream::new(Arc::clone(declared), None));
        shared.push(Arc::downgrade(&upstream));
        upstream
    })
}

/// Ends every connection to an upstream. For a process that is about to end.
pub async fn close_all() {
    let open: Vec<Arc<Upstream>> = {
        let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.iter().filter_map(Weak::upgrade).collect()
    };
    let mut closing = tokio::task::JoinSet::new();
    for upstream in open {
        closing.spawn(async move { upstream.close().await });
    }
    closing.join_all().await;
}

/// A call as a tool of another server sees it.
#[derive(Debug, Clone, Copy)]
pub struct Passed<'i> {
    arguments: &'i Arguments,
    answers: &'i [(Box<str>, RawJson)],
    state: Option<&'i serde_json::Value>,
    /// Whether our caller can be asked with a form.
    elicits: bool,
}

impl<'i> Passed<'i> {
    /// These arguments, with what was answered in an invocation.
    pub fn new(arguments: &'i Arguments, invocation: &'i Invocation) -> Self {
        let Invocation { answers, state, client, revision, .. } = invocation;
        let elicits = client.can(InputKind::ElicitForm) && revision.rules().elicitation != Elicitation::None;
        Self { arguments, answers, state: state.as_ref(), elicits }
    }
}

/// What is sent of a call.
#[derive(Clone, Copy)]
struct Sent<'s> {
    arguments: &'s Arguments,
    answers: Option<&'s Answers>,
    elicits: bool,
}

/// A tool of another MCP server.
#[derive(Debug)]
pub struct UpstreamBackend {
    name: String,
    tool: UpstreamTool,
    upstream: Arc<Upstream>,
    reading: Arc<Reading>,
}

impl UpstreamBackend {
    /// Takes a checked declaration. Connects to nothing.
    pub fn new(name: String, tool: UpstreamTool) -> Self {
        let upstream = shared(&tool.upstream);
        Self::of(name, tool, upstream)
    }

    /// The same with a connection of its own, reached as that says: with roots or a resolver of its own.
    pub fn reaching(name: String, tool: UpstreamTool, reach: Reach) -> Self {
        let upstream = Arc::new(Upstream::new(Arc::clone(&tool.upstream), Some(reach)));
        Self::of(name, tool, upstream)
    }

    fn of(name: String, tool: UpstreamTool, upstream: Arc<Upstream>) -> Self {
        let arguments: Vec<String> = tool.arguments.iter().map(|argument| argument.name.clone()).collect();
        let narrow = how_to_narrow(&name, &arguments);
        let reading = Arc::new(Reading { upstream: tool.upstream.name.clone(), cap: tool.cap, narrow });
        Self { name, tool, upstream, reading }
    }

    /// The name by which the gate judges it too.
    pub(super) fn probed(&self) -> &str {
        &self.tool.tool
    }

    /// What would be sent: the upstream, its tool, and the arguments with declared defaults.
    pub fn prepare(&self, arguments: &Arguments) -> (&str, &str, String) {
        let given = Given::new(arguments, &self.tool.arguments);
        (&self.tool.upstream.name, &self.tool.tool, given.object())
    }

    /// Passes a call on and reads the answer, until its caller is gone, which cancels it there.
    pub async fn run(&self, passed: Passed<'_>, caller: &dyn Caller) -> Outcome {
        tokio::select! {
            outcome = self.pass(passed, caller) => outcome,
            () = caller.gone() => failed("stopped before it was done".to_owned()),
        }
    }

    async fn pass(&self, passed: Passed<'_>, caller: &dyn Caller) -> Outcome {
        let (_, _, object) = self.prepare(passed.arguments);
        let object = RawJson::new(Bytes::from(object), &JsonLimits::default()).ok().and_then(Arguments::new);
        let Some(arguments) = object else {
            return defect(&format!("tool {}: its arguments are no object with their defaults", self.name));
        };
        let Ok(_place) = self.upstream.flight.acquire().await else {
            return failed("stopped before it was done".to_owned());
        };
        let answers = match self.upstream.questions.answered(passed.state, passed.answers) {
            Ok(answers) => answers,
            Err(why) => return failed(why),
        };
        let sent = Sent { arguments: &arguments, answers: answers.as_ref(), elicits: passed.elicits };
        let (mut opened, names) = match self.ready().await {
            Ok(ready) => ready,
            Err(trouble) => return failed(self.told(&trouble)),
        };
        if !names.contains(&self.tool.tool) {
            return failed(self.unknown(&names));
        }
        let mut answered = self.ask(&opened.door, sent, caller).await;
        if matches!(answered, Err(Problem::SessionGone)) {
            // Nothing was done in a session that was over: it is asked once more in another.
            self.upstream.forget(opened).await;
            opened = match self.ready().await {
                Ok((opened, _)) => opened,
                Err(trouble) => return failed(self.told(&trouble)),
            };
            answered = self.ask(&opened.door, sent, caller).await;
        }
        match answered {
            Ok(outcome) => {
                self.upstream.answered();
                outcome
            }
            Err(problem) => failed(self.without_answer(problem, opened).await),
        }
    }

    /// Done in a task of its own: a caller that goes does not end a connection that others wait for.
    async fn ready(&self) -> Result<Ready, Trouble> {
        let upstream = Arc::clone(&self.upstream);
        let ready = tokio::spawn(async move { upstream.ready().await }).await;
        ready.unwrap_or_else(|_| Err(Trouble::Declared("the upstream could not be opened".to_owned())))
    }

    async fn ask(&self, door: &Door, sent: Sent<'_>, caller: &dyn Caller) -> Result<Outcome, Problem> {
        let secrets = self.upstream.secrets();
        let mut hearing = self.upstream.listen();
        let Sent { arguments, answers, elicits } = sent;
        let call = Call { name: &self.tool.tool, arguments, progress: Some(hearing.token), elicits, answers };
        // Before the engine gives it up, so that a server that hangs is known for one.
        let within = self.tool.timeout.unwrap_or(WITHIN).mul_f64(0.95);
        let answer = door.call(call, within);
        tokio::pin!(answer);
        let called = loop {
            tokio::select! {
                biased;
                called = &mut answer => break called?,
                Some(progress) = hearing.progress.recv() => caller.notify(notice(progress, &secrets)),
            }
        };
        if called.ending == Ending::InputRequired {
            return Ok(self.asked(&called.result, elicits, &secrets));
        }
        let (with, result) = (Arc::clone(&self.reading), called.result);
        let read = reading(result.as_bytes().len(), move || result::read(result.as_bytes(), &with, &secrets)).await;
        Ok(match read {
            None => defect(&format!("tool {}: its result could not be read", self.name)),
            Some(Err(why)) => failed(why),
            Some(Ok(content)) if called.ending == Ending::Failed => Outcome::Failed(content),
            Some(Ok(content)) => Outcome::Complete(content),
        })
    }

    /// What becomes of a call that asks first.
    fn asked(&self, result: &RawJson, elicits: bool, secrets: &Secrets) -> Outcome {
        let name = &self.tool.upstream.name;
        if !elicits {
            return failed(format!("{name} asks a question before it goes on: use a client that can fill in forms"));
        }
        match self.upstream.questions.ask(name, result, secrets) {
            Ok(ask) => Outcome::InputRequired(ask),
            Err(why) => failed(why),
        }
    }

    /// What is told of a call that has no answer, or an error for one, through that connection.
    async fn without_answer(&self, problem: Problem, opened: Arc<Opened>) -> String {
        let Problem::Refused { code, message, .. } = &problem else {
            // Nothing more is heard through it, or it is not what it was: the next call opens another.
            let broken = !matches!(problem, Problem::Time { .. } | Problem::TooLong { .. });
            let trouble = self.upstream.failed(problem);
            if broken || self.upstream.is_paused() {
                self.upstream.forget(opened).await;
            }
            return self.told(&trouble);
        };
        let name = &self.tool.upstream.name;
        let said = self.upstream.secrets().outgoing(message.as_bytes(), SAID).text;
        let text = format!("{name} refused the call (error {code}); in its own words: {}", said.trim());
        // It does not know what it agreed to before: another era, another process behind the address.
        if matches!(code, -32022..=-32020 | -32600 | -32601) {
            tracing::info!(upstream = %name, "asked anew how it is to be spoken to: it answered with error {code}");
            self.upstream.forget(opened).await;
        }
        self.upstream.answered();
        text
    }

    fn unknown(&self, names: &[String]) -> String {
        let (upstream, tool) = (&self.tool.upstream.name, &self.tool.tool);
        let meant = did_you_mean(tool, names.iter().map(String::as_str));
        tracing::warn!(
            upstream = %upstream, %tool, tools = names.len(),
            "it has no such tool{}", meant.map(|meant| format!(": is {:?} meant?", shortened(&meant, 64))).unwrap_or_default()
        );
        format!(
            "{upstream} has no tool of the name that stands behind {}: the operator has to mend the declaration",
            self.name
        )
    }

    fn told(&self, trouble: &Trouble) -> String {
        let name = &self.tool.upstream.name;
        match trouble {
            Trouble::Withheld(text) => text.clone(),
            Trouble::Declared(text) => format!("{name} cannot be asked: {text}"),
            Trouble::Paused(left) => {
                let seconds = left.as_secs().saturating_add(1);
                format!("{name} failed and is not asked for a while: try again in {seconds} s; other tools go on")
            }
            Trouble::Failed(problem) => format!("{name} {}", what_it_did(problem)),
        }
    }
}

/// What a failed exchange comes to for a model. Addresses, commands and the server's own words stay in the log.
fn what_it_did(problem: &Problem) -> String {
    match problem {
        Problem::Connect { source, .. } => match source.get_ref().and_then(|source| source.downcast_ref()) {
            Some(crate::client::outbound::Unreachable::Refused(refusal)) => {
                format!("cannot be reached: its address is {refusal}, which is refused")
            }
            _ => "cannot be reached or started: the operator's log says why".to_owned(),
        },
        Problem::ConnectTime { within, .. } => format!("cannot be reached within {within:?}"),
        Problem::Time { within, .. } => {
            format!("did not answer within {within:?}; whether it did what was asked is not known")
        }
        Problem::TooLong { limit, .. } => {
            format!("answered with more than {limit} bytes, which are not read: ask for less")
        }
        Problem::Closed { .. } => "ended before its answer; whether it did what was asked is not known".to_owned(),
        Problem::Status { status, .. } => format!("answered with HTTP status {status}"),
        Problem::Redirected { .. } => "answered with a redirect, which is not followed".to_owned(),
        Problem::NotServed { .. } => "speaks no revision of the protocol that is declared for it".to_owned(),
        Problem::SessionGone => "forgot its session twice".to_owned(),
        Problem::MediaType { .. } | Problem::NotStrict { .. } | Problem::Shape { .. } => {
            "answered with something that is no answer of this protocol".to_owned()
        }
        Problem::Refused { code, .. } => format!("refused to open (error {code})"),
        Problem::Url(_) | Problem::Header(_) => "cannot be asked as it is declared".to_owned(),
    }
}

fn notice(progress: Progress, secrets: &Secrets) -> Notice {
    let message = progress.message.map(|text| secrets.outgoing(text.as_bytes(), SAID).text);
    Notice::Progress { progress: progress.progress, total: progress.total, message }
}

fn failed(text: String) -> Outcome {
    Outcome::Failed(Content::text(text))
}
