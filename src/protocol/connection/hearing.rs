//! What a connection hears unasked: its listen streams and its legacy subscriptions.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Arrival, Connection, Output};
use crate::protocol::catalog::Catalog;
use crate::protocol::fault::Fault;
use crate::protocol::limits::{SUBSCRIBED_BYTES, SUBSCRIBED_URIS, SUBSCRIPTIONS_AT_MOST};
use crate::protocol::message::{RequestId, encode_notification};
use crate::protocol::revision::{Era, Revision, Tasks};
use crate::protocol::session::Session;
use crate::protocol::subscription::{self, Changed, Filter};
use crate::protocol::task::TaskView;

/// See the module.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Hearing {
    listens: HashMap<RequestId, Listen>,
    /// What the legacy session subscribed to.
    uris: BTreeSet<String>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Listen {
    arrival: Arrival,
    filter: Filter,
}

impl Hearing {
    pub(super) fn subscribe(&mut self, uri: String) -> Result<(), Fault> {
        let bytes = self.uris.iter().map(String::len).sum::<usize>() + uri.len();
        let is_full = self.uris.len() >= SUBSCRIBED_URIS || bytes > SUBSCRIBED_BYTES;
        if is_full && !self.uris.contains(&uri) {
            let problem = format!(
                "{SUBSCRIBED_URIS} resources, or {SUBSCRIBED_BYTES} bytes of their names, are subscribed to, which is the \
                 limit: unsubscribe first"
            );
            return Err(Fault::Failed(problem));
        }
        self.uris.insert(uri);
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        self.uris.remove(uri);
    }

    /// Whether a subscription was opened by a request of that id.
    pub(super) fn listens_by(&self, id: &RequestId) -> bool {
        self.listens.contains_key(id)
    }

    fn is_idle(&self) -> bool {
        self.listens.is_empty()
    }
}

impl Connection {
    /// Begins a subscription: it is heard of first, then acknowledged, so that no change falls between.
    pub(super) fn listen(&mut self, arrival: Arrival, id: RequestId, filter: Filter) {
        if self.hearing.listens.len() >= SUBSCRIPTIONS_AT_MOST {
            let problem =
                format!("{SUBSCRIPTIONS_AT_MOST} subscriptions are open here, which is the limit: end one first");
            self.reply(arrival, false, Some(id), Err(Fault::Failed(problem)));
            return;
        }
        if self.hearing.is_idle() {
            self.outputs.push_back(Output::Hear);
        }
        let params = json!({ "_meta": subscription::meta(&id), "notifications": filter.to_json() });
        let message = encode_notification("notifications/subscriptions/acknowledged", &params.to_string());
        self.outputs.push_back(Output::Announce { arrival: Some(arrival), lasting: true, message });
        self.hearing.listens.insert(id, Listen { arrival, filter });
    }

    /// Ends a subscription at the peer's wish: nothing more is said of it.
    pub(super) fn unlisten(&mut self, id: &RequestId) {
        if let Some(listen) = self.hearing.listens.remove(id) {
            // No call stands behind it, but its stream ends as that of a cancelled one does.
            self.outputs.push_back(Output::Silence { arrival: listen.arrival });
        }
    }

    /// Whether anything is told to this connection unasked.
    pub fn listens(&self) -> bool {
        !self.hearing.is_idle()
    }

    /// Another catalog is published.
    pub fn handle_published(&mut self, changed: Changed) {
        // Only what `initialize` said could change (2025-11-25 server/tools, List Changed Notification).
        let lists = self.session.as_ref().map(Session::lists).unwrap_or_default();
        for method in changed.and(lists).methods() {
            self.announce(true, encode_notification(method, ""));
        }
        let mut told = Vec::new();
        for (id, listen) in &self.hearing.listens {
            let params = json!({ "_meta": subscription::meta(id) }).to_string();
            let methods = listen.filter.of(changed).methods();
            told.extend(methods.map(|method| (listen.arrival, encode_notification(method, &params))));
        }
        self.tell(true, told);
    }

    /// A resource is not what it was.
    pub fn handle_updated(&mut self, uri: &str) {
        const METHOD: &str = "notifications/resources/updated";
        if self.hearing.uris.iter().any(|subscribed| subscription::concerns(subscribed, uri)) {
            self.announce(false, encode_notification(METHOD, &json!({ "uri": uri }).to_string()));
        }
        let mut told = Vec::new();
        for (id, listen) in self.hearing.listens.iter().filter(|(_, listen)| listen.filter.wants_uri(uri)) {
            let params = json!({ "_meta": subscription::meta(id), "uri": uri });
            told.push((listen.arrival, encode_notification(METHOD, &params.to_string())));
        }
        self.tell(false, told);
    }

    /// A task of this connection's principal is not as far as it was.
    pub fn handle_task(&mut self, task: &TaskView, catalog: &Catalog) {
        if self.session.as_ref().is_some_and(|s| s.revision().rules().tasks == Tasks::Experimental) {
            let params = Value::Object(task.members(Tasks::Experimental));
            self.announce(false, encode_notification("notifications/tasks/status", &params.to_string()));
        }
        let mut told = Vec::new();
        for (id, listen) in self.hearing.listens.iter().filter(|(_, listen)| listen.filter.wants_task(&task.id)) {
            let mut params = task.detailed(Revision::MODERN, catalog);
            params.insert("_meta".to_owned(), subscription::meta(id));
            told.push((listen.arrival, encode_notification("notifications/tasks", &Value::Object(params).to_string())));
        }
        self.tell(false, told);
    }

    /// The server is about to stop: every subscription is told so, and ends (2026-07-28 basic/patterns/subscriptions,
    /// Graceful Closure). Where other messages share the stream a cancellation goes before the result, since no end of
    /// the stream tells it (basic/patterns/cancellation).
    pub fn handle_draining(&mut self) {
        let mut listens: Vec<(RequestId, Listen)> = self.hearing.listens.drain().collect();
        listens.sort_by_key(|(_, listen)| listen.arrival);
        let catalog = self.dispatcher.catalog();
        for (id, listen) in listens {
            let arrival = listen.arrival;
            if self.shared {
                let params = json!({ "_meta": subscription::meta(&id), "requestId": id.to_json() });
                let message = encode_notification("notifications/cancelled", &params.to_string());
                self.outputs.push_back(Output::Notify { arrival, message });
            }
            let mut meta = catalog.identity_value();
            if let (Some(meta), Value::Object(own)) = (meta.as_object_mut(), subscription::meta(&id)) {
                meta.extend(own);
            }
            let result = json!({ "resultType": "complete", "_meta": meta });
            self.reply(arrival, false, Some(id), Ok(Bytes::from(result.to_string())));
        }
    }

    /// Tells a legacy peer that is ready to hear.
    fn announce(&mut self, lasting: bool, message: Bytes) {
        let legacy = self.session.as_ref().is_some_and(|session| session.revision().era() == Era::Legacy);
        if legacy && self.ready && self.way_back {
            self.outputs.push_back(Output::Announce { arrival: None, lasting, message });
        }
    }

    fn tell(&mut self, lasting: bool, mut told: Vec<(Arrival, Bytes)>) {
        told.sort_by_key(|(arrival, _)| *arrival);
        let told = told.into_iter();
        self.outputs.extend(told.map(|(arrival, message)| Output::Announce {
            arrival: Some(arrival),
            lasting,
            message,
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::protocol::catalog::{CatalogParts, ToolParts};
    use crate::protocol::connection::Moment;
    use crate::protocol::dispatch::Dispatcher;
    use crate::protocol::invoke::Principal;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::limits::Limits;
    use crate::protocol::message::Decoded;

    #[test]
    fn a_session_hears_only_of_lists_that_it_was_told_can_change() {
        let parts = CatalogParts { tools: vec![ToolParts::new("t")], ..CatalogParts::new("s", "1.0.0") };
        let dispatcher = Dispatcher::new(Arc::new(Arc::new(Catalog::build(parts).unwrap())), [0; 32]);
        let mut connection = Connection::new(Arc::new(dispatcher), Principal::LOCAL, &Limits::default());
        for message in [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        ] {
            let now = Moment { instant: Instant::now(), unix: 0 };
            let line = Bytes::from(message.to_string());
            connection.handle_message(now, Decoded::read(&line, &JsonLimits::default()), None);
        }
        while connection.poll_output().is_some() {}
        connection.handle_published(Changed { tools: true, resources: true, prompts: true });
        let mut announced = Vec::new();
        while let Some(output) = connection.poll_output() {
            match output {
                Output::Announce { message, .. } => announced.push(message),
                other => panic!("{other:?}"),
            }
        }
        let announced: Vec<Value> = announced.iter().map(|message| serde_json::from_slice(message).unwrap()).collect();
        assert_eq!(announced.iter().map(|m| &m["method"]).collect::<Vec<_>>(), ["notifications/tools/list_changed"]);
    }
}
