//! One ordered path of messages to and from one peer, as a machine.
//!
//! `handle_*` takes what happened, with the time at which it did; after each, drain
//! [`Connection::poll_output`]. [`Connection::poll_timeout`] says when to call
//! [`Connection::handle_timeout`]; a spurious call is harmless.
//!
//! Promises: at most one answer to a request, none after a cancellation or a close, whatever the
//! order of events. Nothing is keyed by a request's id beyond this connection, and an outcome is
//! matched by a number that is never used twice, so that a late one cannot answer another request.

mod asks;
mod batch;
mod hearing;
mod output;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::batch::Batch;
use self::hearing::Hearing;
pub use self::output::{Arrival, CallId, Output, Reply};
use super::admit::{self, Admitted};
use super::content::Content;
use super::dispatch::{Context, Dispatcher, Step};
use super::exchange::{Answered, Arrived, Exchange};
use super::fault::Fault;
use super::few::{FewMap, FewQueue};
use super::headers::Mirror;
use super::invoke::{Invocation, Notice, Outcome, Principal};
use super::limits::{BAD_LINES_ANSWERED, BAD_LINES_AT_MOST, BAD_LINES_PER_SECOND, DEADLINE_AT_MOST, Limits};
use super::log::LogLevel;
use super::message::{Decoded, Malformed, Message, Notification, Params, Request, RequestId};
use super::revision::{Era, Method};
use super::session::Session;

/// A point in time, by both clocks: deadlines are monotonic, sealed state expires by the calendar.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Monotonic.
    pub instant: Instant,
    /// Seconds since 1970.
    pub unix: u64,
}

/// See the module.
#[cfg_attr(test, derive(Clone))]
pub struct Connection {
    dispatcher: Arc<Dispatcher>,
    principal: Principal,
    calls_at_most: usize,
    deadline: Duration,
    session: Option<Session>,
    /// Whether the peer can be told something that answers nothing.
    way_back: bool,
    /// Whether all messages share one stream, which goes on when a request's own messages end.
    shared: bool,
    /// Whether the legacy peer said that it is ready, or went on as if it had.
    ready: bool,
    /// The least level of log messages that the legacy session wants.
    level: LogLevel,
    arrivals: u64,
    calls: u64,
    /// Requests of ours so far.
    asked: i64,
    exchanges: FewMap<CallId, Exchange>,
    /// Which call waits for the response to which request of ours.
    awaited: HashMap<RequestId, CallId>,
    hearing: Hearing,
    batches: HashMap<Arrival, Batch>,
    outputs: FewQueue<Output>,
    rubbish: Rubbish,
    /// Whether what arrives is read no more.
    deaf: bool,
}

/// Lines in a row that were no message.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
struct Rubbish {
    in_row: u32,
    answered: Option<Instant>,
}

impl Connection {
    /// A connection of one peer that nothing was said on yet.
    pub fn new(dispatcher: Arc<Dispatcher>, principal: Principal, limits: &Limits) -> Self {
        Self {
            dispatcher,
            principal,
            calls_at_most: limits.calls_per_connection,
            deadline: limits.deadline,
            session: None,
            way_back: true,
            shared: false,
            ready: false,
            level: LogLevel::Warning,
            arrivals: 0,
            calls: 0,
            asked: 0,
            exchanges: FewMap::default(),
            awaited: HashMap::new(),
            hearing: Hearing::default(),
            batches: HashMap::new(),
            outputs: FewQueue::default(),
            rubbish: Rubbish::default(),
            deaf: false,
        }
    }

    /// The same connection with a session that needs no handshake.
    #[must_use]
    pub fn with_session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// The same connection, on which nothing but answers can be sent: a legacy POST without a session.
    #[must_use]
    pub fn one_way(mut self) -> Self {
        self.way_back = false;
        self
    }

    /// The same connection, all of whose messages share one stream: stdio.
    #[must_use]
    pub fn sharing_its_stream(mut self) -> Self {
        self.shared = true;
        self
    }

    /// What `initialize` agreed on, if it did.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Whether what arrives is read no more, and so answered by nothing.
    pub fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Whose connection it is.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// How many calls are in flight.
    pub fn calls_in_flight(&self) -> usize {
        self.exchanges.len()
    }

    /// Takes one line or body. `mirror` holds the HTTP headers, where there are any.
    pub fn handle_message(&mut self, now: Moment, decoded: Decoded, mirror: Option<&Mirror>) -> Arrival {
        self.arrivals += 1;
        let arrival = Arrival(self.arrivals);
        if self.deaf {
            return arrival;
        }
        if let Decoded::One(Err(malformed)) = decoded {
            self.handle_rubbish(now.instant, arrival, malformed);
            return arrival;
        }
        self.rubbish = Rubbish::default();
        match decoded {
            Decoded::One(Ok(message)) => self.handle_one(now, arrival, false, message, mirror),
            Decoded::One(Err(_)) => {}
            Decoded::Batch(elements) => self.handle_batch(now, arrival, elements, mirror),
        }
        arrival
    }

    /// Takes how a call ended. One that was answered, cancelled or given up meanwhile is dropped.
    pub fn handle_outcome(&mut self, now: Moment, call: CallId, outcome: Outcome) {
        let Some(mut exchange) = self.remove(call) else {
            tracing::debug!("outcome of a call that is over");
            return;
        };
        if let Some(message) = exchange.progress.as_mut().and_then(|p| p.last_held()) {
            self.outputs.push_back(Output::Notify { arrival: exchange.arrival, message });
        }
        match exchange.answer(outcome, &self.dispatcher, now.unix, self.way_back) {
            Answered::Reply(result) => self.answer(&exchange, result),
            Answered::Ask(ask) => self.ask(now.instant, exchange, ask),
        }
    }

    /// Takes what a running call tells.
    pub fn handle_notice(&mut self, now: Instant, call: CallId, notice: Notice) {
        let Some(exchange) = self.exchanges.get_mut(&call) else { return };
        let arrival = exchange.arrival;
        if matches!(notice, Notice::Detach) && exchange.revision.rules().polling {
            self.outputs.push_back(Output::Detach { arrival });
            return;
        }
        // Without a way back no log was promised (every revision, server/utilities/logging, Capabilities).
        let level = Some(self.level).filter(|_| self.way_back);
        if let Some(message) = exchange.tell(notice, level, now) {
            self.outputs.push_back(Output::Notify { arrival, message });
        }
    }

    /// Gives up the calls whose deadline has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut overdue: Vec<CallId> =
            self.exchanges.iter().filter(|(_, e)| e.deadline <= now).map(|(call, _)| *call).collect();
        overdue.sort_unstable();
        for call in overdue {
            let Some(exchange) = self.remove(call) else { continue };
            let result = if exchange.asking.is_some() {
                self.withdraw(&exchange);
                exchange.unanswered()
            } else {
                self.outputs.push_back(Output::Cancel { call, arrival: exchange.arrival, silent: false });
                exchange.overdue()
            };
            self.answer(&exchange, result);
        }
    }

    /// The peer is gone: every call is cancelled and nothing is answered any more.
    pub fn handle_closed(&mut self) {
        self.deaf = true;
        let mut calls: Vec<(CallId, Arrival)> = self.exchanges.drain().map(|(call, e)| (call, e.arrival)).collect();
        calls.sort_unstable();
        self.awaited.clear();
        self.hearing = Hearing::default();
        self.batches.clear();
        self.outputs.clear();
        self.outputs.extend(calls.into_iter().map(|(call, arrival)| Output::Cancel { call, arrival, silent: true }));
    }

    /// What has to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Connection::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.exchanges.iter().map(|(_, exchange)| exchange.deadline).min()
    }

    fn handle_rubbish(&mut self, now: Instant, arrival: Arrival, malformed: Malformed) {
        if let Some(response) = malformed.as_response() {
            self.handle_response(now, response);
        }
        self.rubbish.in_row += 1;
        if self.rubbish.in_row >= BAD_LINES_AT_MOST {
            self.deaf = true;
            self.outputs.push_back(Output::Overrun);
            return;
        }
        if self.rubbish.in_row > BAD_LINES_ANSWERED {
            let pause = Duration::from_secs(1) / BAD_LINES_PER_SECOND;
            if self.rubbish.answered.is_some_and(|last| now.saturating_duration_since(last) < pause) {
                return;
            }
        }
        self.rubbish.answered = Some(now);
        self.reply(arrival, false, malformed.answered_as(), Err(malformed.fault));
    }

    fn handle_one(&mut self, now: Moment, arrival: Arrival, batched: bool, message: Message, mirror: Option<&Mirror>) {
        match message {
            Message::Request(request) => self.handle_request(now, arrival, batched, request, mirror),
            Message::Notification(notification) => self.handle_notification(&notification),
            Message::Response(response) => self.handle_response(now.instant, response),
        }
    }

    fn handle_request(
        &mut self,
        now: Moment,
        arrival: Arrival,
        batched: bool,
        request: Request,
        mirror: Option<&Mirror>,
    ) {
        let id = request.id.clone();
        if self.call(&id).is_some() || self.hearing.listens_by(&id) {
            let problem = format!("a request with id {id} is in flight: give each request its own id");
            self.reply(arrival, batched, Some(id), Err(Fault::InvalidRequest(problem)));
            return;
        }
        let offer = self.dispatcher.catalog().offer();
        let admitted = match Admitted::admit(request, self.session.as_ref(), offer, mirror) {
            Ok(admitted) => admitted,
            Err(fault) => {
                self.reply(arrival, batched, Some(id), Err(fault));
                return;
            }
        };
        let legacy = admitted.revision().era() == Era::Legacy;
        if legacy && self.session.is_some() && admitted.method() != Method::Ping {
            self.ready = true;
        }
        let context = Context {
            session: self.session.as_ref().filter(|_| legacy),
            principal: &self.principal,
            mirror,
            now: now.unix,
            way_back: self.way_back || !legacy,
        };
        match self.dispatcher.dispatch(&admitted, &context) {
            Ok(Step::Reply(result)) => self.reply(arrival, batched, Some(id), Ok(result)),
            Ok(Step::Open(result, session)) => {
                self.session = Some(session);
                self.reply(arrival, batched, Some(id), Ok(result));
                if self.way_back {
                    self.outputs.push_back(Output::Hear);
                }
            }
            Ok(Step::Invoke(invocation)) => {
                let declared = invocation.tool();
                let time = match admitted.method() {
                    // It waits for its task to end (2025-11-25 basic/utilities/tasks, Result Retrieval).
                    Method::TasksResult => DEADLINE_AT_MOST,
                    _ => declared.and_then(|tool| tool.deadline).unwrap_or(self.deadline).min(DEADLINE_AT_MOST),
                };
                let arrived = Arrived {
                    arrival,
                    id,
                    method: admitted.method(),
                    batched,
                    now: now.instant,
                    time,
                    progress: admitted.meta().progress.clone(),
                    level: admitted.meta().level,
                };
                self.invoke(arrived, invocation);
            }
            Ok(Step::Listen(filter)) => self.listen(arrival, id, filter),
            Ok(Step::Subscribe(uri)) => {
                let result = self.hearing.subscribe(uri).map(|()| Bytes::from_static(b"{}"));
                self.reply(arrival, batched, Some(id), result);
            }
            Ok(Step::Unsubscribe(uri)) => {
                self.hearing.unsubscribe(&uri);
                self.reply(arrival, batched, Some(id), Ok(Bytes::from_static(b"{}")));
            }
            Ok(Step::SetLevel(level)) => {
                self.level = level;
                self.reply(arrival, batched, Some(id), Ok(Bytes::from_static(b"{}")));
            }
            Err(fault) => self.reply(arrival, batched, Some(id), Err(fault)),
        }
    }

    fn invoke(&mut self, arrived: Arrived, invocation: Arc<Invocation>) {
        let (arrival, id, batched) = (arrived.arrival, arrived.id.clone(), arrived.batched);
        let exchange = Exchange::new(arrived, Arc::clone(&invocation));
        if self.exchanges.len() >= self.calls_at_most {
            let most = self.calls_at_most;
            let text = format!(
                "{most} calls are in flight on this connection, which is the limit: wait for one to end, then call again"
            );
            let result = exchange.failed(&Content::text(text));
            self.reply(arrival, batched, Some(id), result);
            return;
        }
        if let (true, Some(batch)) = (batched, self.batches.get_mut(&arrival)) {
            batch.open += 1;
        }
        self.begin(exchange, invocation);
    }

    /// Hands a request to its backend, under a number of its own each time.
    fn begin(&mut self, exchange: Exchange, invocation: Arc<Invocation>) {
        self.calls += 1;
        let call = CallId(self.calls);
        let deadline = exchange.deadline;
        self.exchanges.add(call, exchange);
        self.outputs.push_back(Output::Invoke { call, invocation, deadline });
    }

    fn handle_notification(&mut self, notification: &Notification) {
        // Everything else a peer may tell us changes nothing here; unknown notifications are ignored in every revision.
        match &*notification.method {
            "notifications/cancelled" => self.handle_cancelled(&notification.params),
            // One with a claim is of the modern era, which has no such notification.
            "notifications/initialized" if !admit::claims(&notification.params) => self.ready |= self.session.is_some(),
            _ => {}
        }
    }

    fn handle_cancelled(&mut self, params: &Params) {
        let Some(id) = params.get("requestId").and_then(|raw| RequestId::read(&raw)) else { return };
        let Some(call) = self.call(&id) else { return self.unlisten(&id) };
        let Some(exchange) = self.remove(call) else { return };
        let arrival = exchange.arrival;
        self.withdraw(&exchange);
        self.outputs.push_back(Output::Cancel { call, arrival, silent: !exchange.batched });
        if exchange.batched {
            if let Some(batch) = self.batches.get_mut(&arrival) {
                batch.open = batch.open.saturating_sub(1);
            }
            self.finish_batch(arrival);
        }
    }

    /// The call that a request's id stands for as long as it is not answered.
    fn call(&self, id: &RequestId) -> Option<CallId> {
        self.exchanges.iter().find(|(_, exchange)| exchange.id == *id).map(|(call, _)| *call)
    }

    /// Whether a call is neither answered nor cancelled.
    pub fn is_in_flight(&self, call: CallId) -> bool {
        self.exchanges.iter().any(|(known, _)| *known == call)
    }

    fn remove(&mut self, call: CallId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&call)?;
        for id in exchange.asking.iter().flat_map(|asking| asking.ids()) {
            self.awaited.remove(id);
        }
        Some(exchange)
    }

    fn answer(&mut self, exchange: &Exchange, result: Result<Bytes, Fault>) {
        if let (true, Some(batch)) = (exchange.batched, self.batches.get_mut(&exchange.arrival)) {
            batch.open = batch.open.saturating_sub(1);
        }
        self.reply(exchange.arrival, exchange.batched, Some(exchange.id.clone()), result);
    }

    fn reply(&mut self, arrival: Arrival, batched: bool, id: Option<RequestId>, result: Result<Bytes, Fault>) {
        let reply = Reply { id, result };
        if !batched {
            self.outputs.push_back(Output::Reply { arrival, reply });
        } else if let Some(batch) = self.batches.get_mut(&arrival) {
            batch.replies.push(reply.encode());
            self.finish_batch(arrival);
        }
    }
}

#[cfg(test)]
mod orders;
