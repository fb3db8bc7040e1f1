//! Arrays of messages: taken where the revision has them, answered as one array (2025-03-26 basic, Batching).

use bytes::Bytes;

use super::output::{Arrival, Output};
use super::{Connection, Moment};
use crate::protocol::admit;
use crate::protocol::fault::Fault;
use crate::protocol::headers::Mirror;
use crate::protocol::message::{Malformed, Message};
use crate::protocol::revision::Revision;

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Batch {
    /// Calls whose outcome is not known.
    pub(super) open: usize,
    pub(super) replies: Vec<Bytes>,
    /// Whether every element was looked at.
    pub(super) read: bool,
}

impl Connection {
    pub(super) fn handle_batch(
        &mut self,
        now: Moment,
        arrival: Arrival,
        elements: Vec<Result<Message, Malformed>>,
        mirror: Option<&Mirror>,
    ) {
        let accepted = self.session.as_ref().is_some_and(|s| s.revision().rules().batches);
        let refused = match accepted {
            false => {
                let dates = Revision::with_batches();
                Some(format!("an array of messages is taken only in a session of revision {dates}: send one message"))
            }
            true if elements.iter().flatten().any(admit::stands_alone) => Some(
                "an array holds neither initialize nor a message with modern _meta: send that one alone".to_owned(),
            ),
            true => None,
        };
        if let Some(problem) = refused {
            self.reply(arrival, false, None, Err(Fault::InvalidRequest(problem)));
            return;
        }
        self.batches.insert(arrival, Batch::default());
        for element in elements {
            match element {
                Ok(message) => self.handle_one(now, arrival, true, message, mirror),
                Err(malformed) => {
                    if let Some(response) = malformed.as_response() {
                        self.handle_response(now.instant, response);
                    }
                    self.reply(arrival, true, malformed.answered_as(), Err(malformed.fault));
                }
            }
        }
        if let Some(batch) = self.batches.get_mut(&arrival) {
            batch.read = true;
        }
        self.finish_batch(arrival);
    }

    pub(super) fn finish_batch(&mut self, arrival: Arrival) {
        if self.batches.get(&arrival).is_none_or(|batch| !batch.read || batch.open > 0) {
            return;
        }
        if let Some(batch) = self.batches.remove(&arrival) {
            self.outputs.push_back(Output::Batch { arrival, replies: batch.replies });
        }
    }
}
