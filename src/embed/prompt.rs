//! Prompts, and the completion of their arguments.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::Call;
use super::give::{End, Give, ToolError};
use super::schema;
use super::setters::setters;
use super::tool::{Run, erased};
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{Completes, Completing, Completion, PromptArgument, PromptParts, Prompted};

/// A completion whose types are forgotten.
pub(super) type Completer = Arc<dyn Fn(Completing) -> BoxFuture<'static, Result<Completion, ToolError>> + Send + Sync>;

pub(super) fn completer<F, R, G>(complete: F) -> Completer
where
    F: Fn(Completing) -> R + Send + Sync + 'static,
    R: Future<Output = G> + Send + 'static,
    G: Give<Completion>,
{
    Arc::new(move |completing| {
        let running = complete(completing);
        Box::pin(async move { running.await.give() })
    })
}

/// The arguments of a prompt as they were sent.
pub(super) type Texts = Vec<(Box<str>, String)>;

/// A prompt: a name, what it is for, and an async function that makes its messages.
///
/// The function's first argument names the prompt's arguments: all are texts, those in an `Option` may be left out.
///
/// ```
/// use serde::Deserialize;
/// use twodoor::embed::{Call, JsonSchema, Prompt};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review {
///     /// The file to look at.
///     path: String,
///     /// In which tone.
///     tone: Option<String>,
/// }
///
/// let review = Prompt::new("review", "Reviews a file.", |Review { path, tone }, _call: Call| async move {
///     format!("Review {path} in a {} tone.", tone.as_deref().unwrap_or("friendly"))
/// })
/// .complete("tone", ["friendly", "strict"]);
/// ```
#[derive(Clone)]
pub struct Prompt {
    pub(super) parts: PromptParts,
    pub(super) run: Run<Texts, Prompted>,
    pub(super) completers: HashMap<String, Completer>,
}

impl Prompt {
    /// A prompt of that name; see the type, and [`Give`] for what may be returned.
    pub fn new<A, F, R, G>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Fn(A, Call) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Prompted>,
    {
        let argument =
            |(name, description, required)| PromptArgument { name, description, required, ..PromptArgument::default() };
        let parts = PromptParts {
            name: name.into(),
            description: Some(description.into()),
            arguments: schema::of_prompt::<A>().into_iter().map(argument).collect(),
            ..PromptParts::default()
        };
        let run = erased(run, |texts: &Texts, _| {
            let texts = texts.iter().map(|(name, value)| (name.to_string(), Value::from(value.as_str())));
            serde_json::from_value(Value::Object(texts.collect()))
                .map_err(|error| ToolError(End::Refused(format!("the prompt's arguments do not fit: {error}"))))
        });
        Self { parts, run, completers: HashMap::new() }
    }

    /// Suggests, for an argument, those of these values that begin with what was typed.
    #[must_use]
    pub fn complete(self, argument: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.completes(argument, Completes::Of(values))
    }

    /// Suggests, for an argument, what an async function makes of what was typed.
    #[must_use]
    pub fn complete_with<F, R, G>(mut self, argument: &str, complete: F) -> Self
    where
        F: Fn(Completing) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Completion>,
    {
        self.completers.insert(argument.to_owned(), completer(complete));
        self.completes(argument, Completes::Backend)
    }

    /// An argument that the type does not have is declared by this, so that nothing is lost in silence.
    fn completes(mut self, argument: &str, completes: Completes) -> Self {
        match self.parts.arguments.iter_mut().find(|declared| declared.name == argument) {
            Some(declared) => declared.completes = completes,
            None => {
                let declared = PromptArgument { name: argument.to_owned(), completes, ..PromptArgument::default() };
                self.parts.arguments.push(declared);
            }
        }
        self
    }
}

setters!(Prompt: title icon meta);
