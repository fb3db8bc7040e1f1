//! Why a server cannot be served, for whoever embeds it.

use std::fmt;
use std::net::SocketAddr;

use crate::protocol::{CatalogError, CatalogParts, Place};
use crate::transport::ServeError;

/// One thing that keeps a server from being published.
#[derive(Debug, Clone)]
pub struct Unpublishable {
    /// What it is in, such as `tool greet`.
    pub what: String,
    /// What is wrong there, and how to mend it.
    pub error: CatalogError,
}

impl fmt::Display for Unpublishable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, error } = self;
        match error.pointer.as_str() {
            "" => write!(f, "{what}: {error}"),
            pointer => write!(f, "{what}, {pointer}: {error}"),
        }
    }
}

/// Why a server cannot be published or served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Names, schemas or addresses that clients could not take: all of them at once.
    #[error("the server cannot be published:{}", lines(.0))]
    Unpublishable(Vec<Unpublishable>),
    /// The system gives no randomness, without which no state can be sealed.
    #[error("the system gives no randomness: start again once it does, or give the server a key")]
    Randomness,
    /// Others could reach the address, and nothing would tell them apart.
    #[error(
        "{0} can be reached from other machines: listen on 127.0.0.1 or [::1], and let a proxy with authentication stand in front"
    )]
    Exposed(SocketAddr),
    /// What was put between the engine and the handlers could not begin.
    #[error("what stands before the handlers cannot begin: {0}")]
    Wrap(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The transport failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

fn lines(problems: &[Unpublishable]) -> String {
    problems.iter().map(|problem| format!("\n- {problem}")).collect()
}

impl ServerError {
    pub(super) fn unpublishable(parts: &CatalogParts, problems: Vec<CatalogError>) -> Self {
        let named = |kind: &str, name: Option<&str>| format!("{kind} {}", name.unwrap_or_default());
        let what = |place: Place| match place {
            Place::Catalog => "the server".to_owned(),
            Place::Tool(index) => named("tool", parts.tools.get(index).map(|t| t.name.as_str())),
            Place::Resource(index) => named("resource", parts.resources.get(index).map(|r| r.uri.as_str())),
            Place::Template(index) => named("template", parts.templates.get(index).map(|t| t.uri_template.as_str())),
            Place::Skill(index) => named("skill", parts.skills.get(index).map(|s| s.uri.as_str())),
            Place::Prompt(index) => named("prompt", parts.prompts.get(index).map(|p| p.name.as_str())),
        };
        Self::Unpublishable(
            problems.into_iter().map(|error| Unpublishable { what: what(error.place), error }).collect(),
        )
    }
}
