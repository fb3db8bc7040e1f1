//! Where the secrets of capabilities are kept: asked by reference, never listed.

use crate::surface::manifest::{ManifestSecret, State};

/// Holds secrets. One that cannot be reached, or is in disorder, has none: it never fails.
pub trait Secrets: std::fmt::Debug + Send + Sync + 'static {
    /// The value of a secret, if it is there.
    fn value(&self, secret: &ManifestSecret) -> Option<String>;

    /// Whether the secret is there and reaches as far as it must.
    fn state(&self, secret: &ManifestSecret) -> State {
        if self.value(secret).is_some() { State::Ready } else { State::NeedsCredentials }
    }
}

/// The server's own environment: [`ManifestSecret::variable`] holds a secret, and an empty one is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct FromEnvironment;

impl Secrets for FromEnvironment {
    fn value(&self, secret: &ManifestSecret) -> Option<String> {
        std::env::var(secret.variable()).ok().filter(|value| !value.is_empty())
    }
}
