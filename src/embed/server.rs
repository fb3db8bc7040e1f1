//! A server as it is declared, and the one that is ready to be served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::error::ServerError;
use super::handle::{Handle, Listing};
use super::prompt::Prompt;
use super::resource::{Resource, Template};
use super::rooms::{AskFirst, Rooms};
use super::skill::Skill;
use super::tool::Tool;
use crate::protocol::{
    CacheHints, CacheScope, Catalog, CatalogParts, Dispatcher, Icon, Invoke, Limits, Offer, Published as _,
};
use crate::transport::{Engine, Hub, http, stdio};

/// Why what was put between the engine and the handlers could not begin.
type WrapError = Box<dyn std::error::Error + Send + Sync>;

type Wrap = Box<dyn FnOnce(Inside) -> Result<Arc<dyn Invoke>, WrapError> + Send>;

/// What stands behind something that is put between the engine and the handlers.
pub struct Inside {
    /// Carries out what is handed on.
    pub invoke: Arc<dyn Invoke>,
    /// Tells clients of tasks and resources.
    pub hub: Hub,
    /// What is published at first.
    pub catalog: Arc<Catalog>,
}

/// A server: what it says of itself, and what it publishes.
///
/// Nothing is checked before it is served, or [made ready](Self::ready): then all problems are told at once.
pub struct Server {
    own: CatalogParts,
    listing: Listing,
    limits: Limits,
    http: http::Options,
    key: Option<[u8; 32]>,
    wraps: Vec<Wrap>,
}

impl Server {
    /// A server of nothing, under a name and the version of what it publishes.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            own: CatalogParts::new(name, version),
            listing: Listing::default(),
            limits: Limits::default(),
            http: http::Options::default(),
            key: None,
            wraps: Vec::new(),
        }
    }

    /// With this tool. Two of the same name are a problem, as are two of anything below.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.listing.tools.push(Arc::new(tool));
        self
    }

    /// With this resource.
    #[must_use]
    pub fn resource(mut self, resource: Resource) -> Self {
        self.listing.resources.push(Arc::new(resource));
        self
    }

    /// With this resource template. Of several that match, the first is taken.
    #[must_use]
    pub fn template(mut self, template: Template) -> Self {
        self.listing.templates.push(Arc::new(template));
        self
    }

    /// With this prompt.
    #[must_use]
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.listing.prompts.push(Arc::new(prompt));
        self
    }

    /// With this skill.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.listing.skills.push(Arc::new(skill));
        self
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.own.identity.title = Some(title.into());
        self
    }

    /// What it is, in a sentence for people.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.own.identity.description = Some(description.into());
        self
    }

    /// A page about it.
    #[must_use]
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.own.identity.website = Some(url.into());
        self
    }

    /// A picture; one more each time.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.own.identity.icons.push(icon);
        self
    }

    /// What every client that opens is told, for its model.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.own.instructions = Some(instructions.into());
        self
    }

    /// Lets calls log to their client.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.own.logging = true;
        self
    }

    /// At most so many definitions on one page of a list.
    #[must_use]
    pub fn page_size(mut self, definitions: usize) -> Self {
        self.own.page = definitions;
        self
    }

    /// How long what is listed and read may be kept, and by whom: by one caller alone where callers are authorized.
    #[must_use]
    pub fn cache(mut self, kept: Duration, scope: CacheScope) -> Self {
        self.own.cache = CacheHints { ttl_ms: u64::try_from(kept.as_millis()).unwrap_or(u64::MAX), scope };
        self
    }

    /// Serves only clients that send `_meta` with each request, none that open with `initialize`.
    #[must_use]
    pub fn modern_only(mut self) -> Self {
        self.own.offer = Offer::ModernOnly;
        self
    }

    /// The `_meta` key under which the digest of the tools is published, with a reverse-DNS prefix of your own.
    #[must_use]
    pub fn digest_key(mut self, key: impl Into<String>) -> Self {
        self.own.digest_key = key.into();
        self
    }

    /// Lets clients list their tasks: only where callers can be told apart.
    #[must_use]
    pub fn task_list(mut self) -> Self {
        self.own.task_list = true;
        self
    }

    /// Other limits than the usual ones.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What an operator decides about HTTP.
    #[must_use]
    pub fn http(mut self, options: http::Options) -> Self {
        self.http = options;
        self
    }

    /// The key that seals what passes through clients, shared by all instances of one server. Without it each makes its
    /// own, and a question asked by one cannot be answered to another. It must come from the system's randomness.
    #[must_use]
    pub fn key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(key);
        self
    }

    /// Puts something between the engine and the handlers, such as an engine of tasks; the last one is the outermost.
    #[must_use]
    pub fn with_invoke(
        mut self,
        wrap: impl FnOnce(Inside) -> Result<Arc<dyn Invoke>, WrapError> + Send + 'static,
    ) -> Self {
        self.wraps.push(Box::new(wrap));
        self
    }

    /// Checks all and makes it ready to be served.
    pub fn ready(mut self) -> Result<Ready, ServerError> {
        if self.http.auth.is_some() {
            self.own.cache.scope = CacheScope::Private;
        }
        let handle = Handle::new(self.own, self.listing)?;
        let mut key = self.key.unwrap_or_default();
        if self.key.is_none() {
            getrandom::fill(&mut key).map_err(|_| ServerError::Randomness)?;
        }
        let mut inner: Arc<dyn Invoke> = Arc::new(Rooms(handle.clone()));
        for wrap in self.wraps {
            let inside = Inside { invoke: inner, hub: handle.hub().clone(), catalog: handle.current() };
            inner = wrap(inside).map_err(ServerError::Wrap)?;
        }
        let invoke = Arc::new(AskFirst { handle: handle.clone(), inner });
        let dispatcher = Arc::new(Dispatcher::new(Arc::new(handle.clone()), key));
        let engine = Engine::new(dispatcher, invoke, self.limits).with_hub(handle.hub().clone());
        Ok(Ready { engine, handle, http: self.http })
    }

    /// Serves the peer on our standard streams until its input ends. Whatever else the process prints to its standard
    /// output goes to standard error meanwhile.
    pub async fn serve_stdio(self) -> Result<(), ServerError> {
        self.ready()?.serve_stdio().await
    }

    /// Serves HTTP on a loopback address, at `/mcp`.
    pub async fn serve_http(self, address: SocketAddr) -> Result<(), ServerError> {
        self.ready()?.serve_http(address).await
    }
}

/// A server that was checked. Cloning shares it, so that it can be served over several transports at once.
#[derive(Clone)]
pub struct Ready {
    engine: Engine,
    handle: Handle,
    http: http::Options,
}

impl Ready {
    /// What changes it, and stops it, while it is served.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The engine, for a transport of your own.
    pub fn engine(&self) -> Engine {
        self.engine.clone()
    }

    /// Serves the peer on our standard streams until its input ends or the server is stopped.
    pub async fn serve_stdio(&self) -> Result<(), ServerError> {
        let streams = stdio::Streams::take_standard()?;
        Ok(stdio::serve(self.engine(), streams, self.handle.stopped()).await?)
    }

    /// Serves HTTP on a loopback address, at `/mcp`, until the server is stopped.
    pub async fn serve_http(&self, address: SocketAddr) -> Result<(), ServerError> {
        if !address.ip().is_loopback() {
            return Err(ServerError::Exposed(address));
        }
        self.serve_listener(http::listen(address).await?).await
    }

    /// Serves HTTP on a listener of your own, which must be on a loopback address.
    pub async fn serve_listener(&self, listener: TcpListener) -> Result<(), ServerError> {
        if let Some(address) = listener.local_addr().ok().filter(|address| !address.ip().is_loopback()) {
            return Err(ServerError::Exposed(address));
        }
        Ok(http::serve(self.engine(), listener, self.http.clone(), self.handle.stopped()).await?)
    }
}
