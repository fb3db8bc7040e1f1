//! Asking a legacy client, in the course of a request of its own.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::{CallId, Connection, Exchange, Output};
use crate::protocol::asking::{Asking, Heard};
use crate::protocol::content::Content;
use crate::protocol::invoke::{Ask, Invocation};
use crate::protocol::json::{RawJson, shortened};
use crate::protocol::limits::{ANSWER_TIME, ECHOED_CHARACTERS};
use crate::protocol::message::{RequestId, Response};

impl Connection {
    /// Whether a request of ours under this id waits for the peer's response.
    pub fn awaits(&self, id: &RequestId) -> bool {
        self.awaited.contains_key(id)
    }

    /// Whether any request of ours waits for the peer's response. No call runs meanwhile that could keep its deadline.
    pub fn is_asking(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Asks the client; its answers take the request back to the backend.
    pub(super) fn ask(&mut self, now: Instant, mut exchange: Exchange, ask: Ask) {
        exchange.asked += 1;
        self.calls += 1;
        let call = CallId(self.calls);
        let next = || {
            self.asked += 1;
            RequestId::Integer(self.asked)
        };
        if ask.requests.is_empty() {
            // Nothing is asked: the backend only wants to be called again with what it said.
            return self.resume(now, exchange, Vec::new(), ask.state);
        }
        let (asking, messages) = Asking::begin(ask, exchange.revision, &exchange.invocation.operation, next);
        for id in asking.ids() {
            self.awaited.insert(id.clone(), call);
        }
        let arrival = exchange.arrival;
        self.outputs.extend(messages.into_iter().map(|message| Output::Ask { arrival, message }));
        exchange.deadline = now + ANSWER_TIME;
        exchange.asking = Some(Box::new(asking));
        self.exchanges.add(call, exchange);
    }

    /// Takes the client's response to a request of ours; any other is dropped.
    pub(super) fn handle_response(&mut self, now: Instant, response: Response) {
        let call = response.id.as_ref().and_then(|id| self.awaited.remove(id));
        let (Some(id), Some(call)) = (response.id, call) else {
            tracing::debug!("response to a request that was never sent");
            return;
        };
        let heard = self.exchanges.get_mut(&call).and_then(|exchange| exchange.asking.as_mut());
        match heard.map(|asking| asking.hear(&id, response.result)) {
            None | Some(Heard::More) => {}
            Some(Heard::All { answers, state }) => {
                if let Some(exchange) = self.remove(call) {
                    self.resume(now, exchange, answers, state);
                }
            }
            Some(Heard::Refused(why)) => {
                let Some(exchange) = self.remove(call) else { return };
                self.withdraw(&exchange);
                let name = exchange.invocation.operation.name();
                let why = shortened(&why, ECHOED_CHARACTERS);
                let text = format!("the {name} asked the client, which refused ({why:?})");
                let result = exchange.failed(&Content::text(text));
                self.answer(&exchange, result);
            }
        }
    }

    fn resume(
        &mut self,
        now: Instant,
        mut exchange: Exchange,
        answers: Vec<(Box<str>, RawJson)>,
        state: Option<Value>,
    ) {
        exchange.asking = None;
        exchange.deadline = now + exchange.time;
        let invocation = Invocation { answers, state, ..(*exchange.invocation).clone() };
        self.begin(exchange, Arc::new(invocation));
    }

    /// Tells the client that it need not answer any more.
    pub(super) fn withdraw(&mut self, exchange: &Exchange) {
        let arrival = exchange.arrival;
        let withdrawn = exchange.asking.iter().flat_map(|asking| asking.withdraw());
        self.outputs.extend(withdrawn.map(|message| Output::Notify { arrival, message }));
    }
}
