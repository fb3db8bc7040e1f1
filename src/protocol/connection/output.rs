//! What a connection wants done, in the order in which it is to be done.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use crate::protocol::fault::Fault;
use crate::protocol::invoke::Invocation;
use crate::protocol::message::{RequestId, encode_response, response_parts, write_response};

/// The number of a line or body on its connection, in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arrival(pub(in crate::protocol) u64);

/// The number of a call on its connection, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub(in crate::protocol) u64);

/// The one answer to a request, or to something unreadable.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The request's id; an answer to something unreadable has none.
    pub id: Option<RequestId>,
    /// The text of the result, or the fault.
    pub result: Result<Bytes, Fault>,
}

impl Reply {
    /// The answer as one message.
    pub fn encode(&self) -> Bytes {
        encode_response(self.id.as_ref(), &self.result)
    }

    /// Writes the answer as one message.
    pub fn write(&self, out: &mut BytesMut) {
        write_response(self.id.as_ref(), &self.result, out);
    }

    /// The answer as one message in parts, to be sent one after the other.
    pub fn parts(&self) -> (BytesMut, Bytes, &'static [u8]) {
        response_parts(self.id.as_ref(), &self.result)
    }
}

/// What has to be done.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub enum Output {
    /// Answer what arrived.
    Reply {
        /// What is answered.
        arrival: Arrival,
        /// With what.
        reply: Reply,
    },
    /// Answer a batch: its replies, encoded, in the order in which they became known. None if all were cancelled.
    Batch {
        /// What is answered.
        arrival: Arrival,
        /// With what.
        replies: Vec<Bytes>,
    },
    /// Tell the peer something about a request that is not answered yet.
    Notify {
        /// What it is about.
        arrival: Arrival,
        /// One encoded notification.
        message: Bytes,
    },
    /// Carry out a call.
    Invoke {
        /// The call.
        call: CallId,
        /// What is called.
        invocation: Arc<Invocation>,
        /// When [`Connection::handle_timeout`] will give it up.
        deadline: Instant,
    },
    /// Stop carrying out a call; its outcome no longer matters.
    Cancel {
        /// The call.
        call: CallId,
        /// What it belonged to.
        arrival: Arrival,
        /// Whether nothing will answer the arrival any more.
        silent: bool,
    },
    /// Ask the client something in the course of a request that is not answered yet: one encoded request of ours.
    Ask {
        /// What it is about.
        arrival: Arrival,
        /// One encoded request.
        message: Bytes,
    },
    /// Tell the peer of something that it asked to hear of. Where it cannot be told now it is told later: a list that changed
    /// unheard would be taken for what it was for ever.
    Announce {
        /// The subscription that it is told on; none for a legacy peer.
        arrival: Option<Arrival>,
        /// Whether it is one of few that must not give way to others.
        lasting: bool,
        /// One encoded notification.
        message: Bytes,
    },
    /// Close the response stream of a request whose answer the peer will fetch later by resuming (2025-11-25 basic/transports, polling).
    Detach {
        /// What it is about.
        arrival: Arrival,
    },
    /// Nothing will answer what arrived, at the peer's own wish.
    Silence {
        /// What it is.
        arrival: Arrival,
    },
    /// From now on this connection wants to hear what is published.
    Hear,
    /// The peer sends nothing but rubbish: end the connection. Nothing that arrives after this is served.
    Overrun,
}
