//! What a legacy `initialize` agreed on.

use super::admit::ClientCapabilities;
use super::revision::Revision;

/// A legacy session. A modern request is never passed one.
#[derive(Debug, Clone)]
pub struct Session {
    revision: Revision,
    client: ClientCapabilities,
}

impl Session {
    /// What a handshake agreed on.
    pub(super) fn agreed(revision: Revision, client: ClientCapabilities) -> Self {
        Self { revision, client }
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
