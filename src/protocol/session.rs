//! What a legacy `initialize` agreed on.

use super::admit::ClientCapabilities;
use super::revision::Revision;
use super::subscription::Changed;

/// A legacy session. A modern request is never passed one.
#[derive(Debug, Clone)]
pub struct Session {
    revision: Revision,
    client: ClientCapabilities,
    lists: Changed,
}

impl Session {
    /// What a handshake agreed on.
    pub(super) fn agreed(revision: Revision, client: ClientCapabilities) -> Self {
        Self { revision, client, lists: Changed::default() }
    }

    /// The same session, which was told that these lists may change.
    #[must_use]
    pub(super) fn hearing_of(mut self, lists: Changed) -> Self {
        self.lists = lists;
        self
    }

    /// The lists of which it was told that they may change.
    pub(super) fn lists(&self) -> Changed {
        self.lists
    }

    /// What a sessionless HTTP request is served under (2025-06-18 basic/transports, Protocol Version Header).
    pub fn assumed(revision: Revision) -> Self {
        Self::agreed(revision, ClientCapabilities::default())
    }

    /// The negotiated revision, always a legacy one.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// What the client can be asked.
    pub(super) fn client(&self) -> ClientCapabilities {
        self.client
    }
}
