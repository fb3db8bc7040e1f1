//! One call from its arrival to its one answer: what is kept of it, and how its end is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::admit::ClientCapabilities;
use super::catalog::{Catalog, ToolName};
use super::connection::Arrival;
use super::content::Content;
use super::dispatch::Dispatcher;
use super::fault::Fault;
use super::invoke::{Ask, InputKind, Invocation, Notice, Outcome};
use super::json::RawJson;
use super::limits::NOTICE_BURST;
use super::message::{RequestId, encode_notification};
use super::revision::Revision;
use super::seal::Binding;

/// A call in flight.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Exchange {
    pub(super) arrival: Arrival,
    pub(super) id: RequestId,
    pub(super) revision: Revision,
    pub(super) deadline: Instant,
    /// How long the call was given, for the text that says so.
    pub(super) time: Duration,
    /// Whether its answer belongs to a batch.
    pub(super) batched: bool,
    pub(super) progress: Option<Progress>,
    catalog: Arc<Catalog>,
    tool: ToolName,
    client: ClientCapabilities,
    principal: String,
    arguments: RawJson,
}

/// What is needed besides the invocation to keep track of it.
pub(super) struct Arrived {
    pub(super) arrival: Arrival,
    pub(super) id: RequestId,
    pub(super) batched: bool,
    pub(super) now: Instant,
    pub(super) time: Duration,
    pub(super) progress: Option<RawJson>,
}

impl Exchange {
    pub(super) fn new(arrived: Arrived, invocation: &Invocation) -> Self {
        let Arrived { arrival, id, batched, now, time, progress } = arrived;
        Self {
            arrival,
            id,
            revision: invocation.revision,
            deadline: now + time,
            time,
            batched,
            progress: progress.map(|token| Progress::new(token, now)),
            catalog: Arc::clone(&invocation.catalog),
            tool: invocation.tool.clone(),
            client: invocation.client,
            principal: invocation.principal.name().to_owned(),
            arguments: invocation.arguments.text().clone(),
        }
    }

    /// The answer to an outcome.
    pub(super) fn answer(&self, outcome: Outcome, dispatcher: &Dispatcher, now: u64) -> Result<Bytes, Fault> {
        match outcome {
            Outcome::Complete(content) => {
                if let Err(problem) = self.check_output(&content) {
                    return Err(self.defect(dispatcher, &problem));
                }
                Ok(encode_result(&content, false, self.revision, &self.catalog))
            }
            Outcome::Failed(content) => Ok(self.failed(&content)),
            Outcome::InputRequired(ask) if self.revision.rules().input_required => self.ask(ask, dispatcher, now),
            Outcome::InputRequired(ask) => {
                let kinds: Vec<&str> = ask.requests.iter().map(|r| r.kind.method()).collect();
                let text = format!(
                    "{} needs to ask the client ({}) before it can go on, and protocol revision {} gives it no way to ask here: \
                     connect with revision {}",
                    self.tool,
                    kinds.join(", "),
                    self.revision,
                    Revision::MODERN
                );
                Ok(self.failed(&Content::text(text)))
            }
            Outcome::Defect { incident } => Err(Fault::Internal { incident }),
        }
    }

    /// The answer to a call that ran out of time.
    pub(super) fn overdue(&self) -> Bytes {
        let seconds = self.time.as_secs_f64();
        let text = format!(
            "{} did not end within {seconds} s and was stopped: narrow what it has to do, then call it again",
            self.tool
        );
        self.failed(&Content::text(text))
    }

    /// The answer to a call that cannot even begin now.
    pub(super) fn failed(&self, content: &Content) -> Bytes {
        encode_result(content, true, self.revision, &self.catalog)
    }

    /// A tool with an `outputSchema` must return what fits it (2025-06-18 server/tools, Output Schema).
    fn check_output(&self, content: &Content) -> Result<(), String> {
        let Some(schema) = self.catalog.tool(self.tool.as_str()).and_then(|tool| tool.output.as_ref()) else {
            return Ok(());
        };
        let Some(value) = &content.structured else {
            return Err("the tool has an outputSchema but returned no structured content".to_owned());
        };
        match schema.violations(value).first() {
            None => Ok(()),
            Some(first) => Err(format!("the structured content does not fit the outputSchema at {:?}", first.pointer)),
        }
    }

    fn ask(&self, ask: Ask, dispatcher: &Dispatcher, now: u64) -> Result<Bytes, Fault> {
        if ask.requests.is_empty() && ask.state.is_none() {
            return Err(self.defect(dispatcher, "the tool asks for nothing"));
        }
        if let Some(required) = self.client.missing(ask.requests.iter().map(|r| r.kind)) {
            return Err(Fault::MissingClientCapability { required });
        }
        let mut members = Map::new();
        members.insert("resultType".to_owned(), "input_required".into());
        if !ask.requests.is_empty() {
            let requests =
                ask.requests.into_iter().map(|request| (request.key.clone(), question(request.kind, request.params)));
            members.insert("inputRequests".to_owned(), Value::Object(requests.collect()));
        }
        if let Some(state) = ask.state {
            let binding =
                Binding::to_call(&self.principal, "tools/call", self.tool.as_str(), self.arguments.as_bytes());
            let Some(sealed) = dispatcher.sealer().seal(now, binding, state) else {
                return Err(self.defect(dispatcher, "the tool's state is too large to seal"));
            };
            members.insert("requestState".to_owned(), sealed.into());
        }
        members.insert("_meta".to_owned(), serde_json::from_slice(self.catalog.identity_meta()).unwrap_or_default());
        Ok(Value::Object(members).to_string().into())
    }

    /// Logs a defect under a number, which is all that the peer is told.
    fn defect(&self, dispatcher: &Dispatcher, problem: &str) -> Fault {
        let incident = dispatcher.incident();
        tracing::error!(incident = format!("{incident:016x}"), tool = %self.tool, "{problem}");
        Fault::Internal { incident }
    }
}

fn question(kind: InputKind, mut params: Value) -> Value {
    let mode = match kind {
        InputKind::ElicitForm => Some("form"),
        InputKind::ElicitUrl => Some("url"),
        InputKind::Sample | InputKind::SampleWithTools | InputKind::Roots => None,
    };
    if let (Some(mode), Some(params)) = (mode, params.as_object_mut()) {
        params.insert("mode".to_owned(), mode.into());
    }
    json!({ "method": kind.method(), "params": params })
}

/// A `CallToolResult` as a revision has it, written without building a tree of it.
pub(super) fn encode_result(content: &Content, failed: bool, revision: Revision, catalog: &Catalog) -> Bytes {
    let rules = revision.rules();
    let mut out = BytesMut::with_capacity(content.size_hint() + catalog.identity_meta().len() + 128);
    out.put_slice(br#"{"content":"#);
    content.write_blocks(&mut out);
    if failed {
        out.put_slice(br#","isError":true"#);
    } else if let Some(structured) = content.structured_for(rules) {
        out.put_slice(br#","structuredContent":"#);
        out.put_slice(structured.to_string().as_bytes());
    }
    if rules.result_type {
        out.put_slice(br#","resultType":"complete""#);
    }
    if rules.identity_in_meta {
        out.put_slice(br#","_meta":"#);
        out.put_slice(catalog.identity_meta());
    }
    out.put_u8(b'}');
    out.freeze()
}

/// What a request that gave a token hears: growing values only, at most ten at once and ten a
/// second, the newest kept (2026-07-28 basic/patterns/progress).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Progress {
    token: RawJson,
    last: Option<f64>,
    allowance: f64,
    counted: Instant,
    /// The newest notice's params that were not told.
    held: Option<String>,
}

impl Progress {
    fn new(token: RawJson, now: Instant) -> Self {
        Self { token, last: None, allowance: f64::from(NOTICE_BURST), counted: now, held: None }
    }

    /// What to send for a notice now, if anything.
    pub(super) fn tell(&mut self, notice: Notice, revision: Revision, now: Instant) -> Option<Bytes> {
        let Notice::Progress { progress, total, message } = notice;
        if !progress.is_finite() || self.last.is_some_and(|last| progress <= last) {
            return None;
        }
        self.last = Some(progress);
        let mut params = format!("{{\"progressToken\":{},\"progress\":{}", self.token.as_str(), number(progress));
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params.push_str(&format!(",\"total\":{}", number(total)));
        }
        if let Some(message) = message.filter(|_| revision.rules().progress_message) {
            params.push_str(&format!(",\"message\":{}", RawJson::encode(&message).as_str()));
        }
        params.push('}');
        let rate = f64::from(NOTICE_BURST);
        let elapsed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.allowance = (self.allowance + elapsed * rate).min(rate);
        self.counted = now;
        if self.allowance < 1.0 {
            self.held = Some(params);
            return None;
        }
        self.allowance -= 1.0;
        self.held = None;
        Some(encode_notification("notifications/progress", &params))
    }

    /// The newest notice that was held back, to be sent before the answer.
    pub(super) fn last_held(&mut self) -> Option<Bytes> {
        self.held.take().map(|params| encode_notification("notifications/progress", &params))
    }
}

/// Whole numbers are written without a fraction, which some clients' integer types need.
fn number(value: f64) -> Value {
    let text = format!("{value}");
    text.parse::<i64>().map_or_else(|_| json!(value), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(now: Instant) -> Progress {
        Progress::new(RawJson::encode(&"t"), now)
    }

    fn notice(value: f64) -> Notice {
        Notice::Progress { progress: value, total: Some(100.0), message: Some("m".to_owned()) }
    }

    #[test]
    fn progress_that_does_not_grow_is_not_told() {
        let now = Instant::now();
        let mut progress = progress(now);
        let told: Vec<bool> = [0.0, 1.5, 1.5, 1.0, f64::NAN, f64::INFINITY, 2.0]
            .into_iter()
            .map(|v| progress.tell(notice(v), Revision::MODERN, now).is_some())
            .collect();
        assert_eq!(told, [true, true, false, false, false, false, true]);
    }

    #[test]
    fn a_flood_is_thinned_and_its_newest_notice_is_kept_for_the_end() {
        let now = Instant::now();
        let mut progress = progress(now);
        let told = (0..1000).filter(|i| progress.tell(notice(f64::from(*i)), Revision::MODERN, now).is_some()).count();
        assert_eq!(told, 10);
        let last = String::from_utf8(progress.last_held().unwrap().to_vec()).unwrap();
        assert!(last.contains("\"progress\":999,"), "{last}");
        assert!(progress.last_held().is_none());
        assert!(progress.tell(notice(2000.0), Revision::MODERN, now + Duration::from_millis(100)).is_some());
    }

    #[test]
    fn the_oldest_revision_hears_no_message() {
        let now = Instant::now();
        let text =
            |revision| String::from_utf8(progress(now).tell(notice(1.0), revision, now).unwrap().to_vec()).unwrap();
        assert!(!text(Revision::ALL[0]).contains("\"message\""));
        assert!(text(Revision::ALL[1]).contains("\"message\":\"m\""));
    }
}
