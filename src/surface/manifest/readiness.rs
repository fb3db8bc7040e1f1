//! Whether a capability can be called: a pure decision over manifests and what is known of secrets.

use super::{CapabilityKind, Manifest, ManifestSecret};

/// What keeps a capability from being called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing.
    Ready,
    /// A secret is there, but does not reach as far as it must.
    NeedsScopes,
    /// A secret is missing.
    NeedsCredentials,
}

impl State {
    /// The word for it, as models see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NeedsScopes => "needs-scopes",
            Self::NeedsCredentials => "needs-credentials",
        }
    }
}

/// Whether a capability can be called, and what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it, and all that it drives, is ready.
    pub ready: bool,
    /// What keeps itself from being ready, whatever it drives.
    pub own: State,
    /// The names of its own secrets that are missing and not optional.
    pub missing_secrets: Vec<String>,
    /// The tools that an agent drives, in its order; empty for a tool.
    pub tool_status: Vec<ToolStatus>,
}

/// A tool as an agent that drives it finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStatus {
    /// Its name.
    pub name: String,
    /// Whether there is a tool of that name that can be read.
    pub present: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// The names of its secrets that are missing.
    pub missing_secrets: Vec<String>,
}

/// Decides whether a capability is ready; `tool` finds a tool by its name, hidden ones too, and `secret` says what is
/// known of a secret.
pub fn readiness<'m>(
    manifest: &Manifest,
    tool: impl Fn(&str) -> Option<&'m Manifest>,
    secret: impl Fn(&ManifestSecret) -> State,
) -> Readiness {
    let own = |manifest: &Manifest| {
        let needed = || manifest.secrets.iter().filter(|needed| !needed.optional);
        let state = needed().map(&secret).max().unwrap_or(State::Ready);
        let missing = needed().filter(|needed| secret(needed) == State::NeedsCredentials);
        (state, missing.map(|needed| needed.name.clone()).collect::<Vec<_>>())
    };
    let status = |name: &String| match tool(name) {
        Some(driven) => {
            let (state, missing_secrets) = own(driven);
            ToolStatus { name: name.clone(), present: true, ready: state == State::Ready, missing_secrets }
        }
        None => ToolStatus { name: name.clone(), present: false, ready: false, missing_secrets: Vec::new() },
    };
    let tool_status: Vec<ToolStatus> = match manifest.kind {
        CapabilityKind::Agent => manifest.drives.iter().map(status).collect(),
        CapabilityKind::Tool | CapabilityKind::Skill => Vec::new(),
    };
    let (state, missing_secrets) = own(manifest);
    let ready = state == State::Ready && tool_status.iter().all(|status| status.ready);
    Readiness { ready, own: state, missing_secrets, tool_status }
}
