//! Transports: how messages are carried. Each feeds a [`crate::protocol::Connection`] through the one driver.
//!
//! Promises: a transport knows bytes and the protocol, never what is behind a tool. All transports
//! share one [`Engine`], so stdio and HTTP cannot drift apart.

mod driver;
pub mod http;
mod hub;
pub mod stdio;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::sync::Semaphore;

pub(crate) use self::driver::defect;
pub use self::hub::Hub;
use crate::protocol::{Connection, Dispatcher, Invoke, Limits, Moment, Principal};

/// What every transport serves from. Cloning shares it.
#[derive(Clone)]
pub struct Engine {
    dispatcher: Arc<Dispatcher>,
    invoke: Arc<dyn Invoke>,
    limits: Arc<Limits>,
    /// Calls in flight in the process.
    calls: Arc<Semaphore>,
    hub: Hub,
}

impl Engine {
    /// An engine that dispatches by `dispatcher` and has calls carried out by `invoke`.
    pub fn new(dispatcher: Arc<Dispatcher>, invoke: Arc<dyn Invoke>, limits: Limits) -> Self {
        let calls = Arc::new(Semaphore::new(limits.calls));
        Self { dispatcher, invoke, limits: Arc::new(limits), calls, hub: Hub::new() }
    }

    /// The same engine, whose connections hear what this hub is told.
    #[must_use]
    pub fn with_hub(mut self, hub: Hub) -> Self {
        self.hub = hub;
        self
    }

    /// The same engine, whose calls in flight count among those of another, by the other's limit.
    #[must_use]
    pub fn beside(mut self, other: &Self) -> Self {
        self.limits = Arc::new(Limits { calls: other.limits.calls, ..(*self.limits).clone() });
        self.calls = Arc::clone(&other.calls);
        self
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends when no call is running. None begins meanwhile, so this is for the end alone.
    async fn idle(&self) {
        let all = u32::try_from(self.limits.calls).unwrap_or(u32::MAX);
        drop(self.calls.acquire_many(all).await);
    }

    fn open(&self, principal: Principal) -> Connection {
        Connection::new(Arc::clone(&self.dispatcher), principal, &self.limits)
    }
}

/// Why a transport could not serve, for the operator.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Callers are to be authorized for what is no resource.
    #[error("{uri:?} is no resource: it must be an http or https URI with a host, without query and fragment")]
    Resource {
        /// As written.
        uri: String,
    },
    /// Callers are authorized, and caches are told to keep for all what one of them sees.
    #[error("callers are authorized, but lists may be cached for everyone: let the cache scope be private")]
    SharedCache,
    /// A surface cannot be told from another by its path.
    #[error("{name:?} is no name for a path: it takes 1 to 129 of A-Z a-z 0-9 _ . - @, and each name stands once")]
    Path {
        /// The name; empty if there is none.
        name: String,
    },
    /// The standard streams cannot be used.
    #[error("cannot use the standard streams: {source}")]
    Streams {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn now() -> Moment {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Moment { instant: Instant::now(), unix }
}
