//! A tool: its definition, and the async function that carries it out.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::Call;
use super::give::{End, Give, ToolError};
use super::schema;
use super::setters::setters;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::revision::BadArguments;
use crate::protocol::{Annotations, Arguments, Content, Json, TaskSupport, ToolParts};

/// A handler whose types are forgotten.
pub(super) type Run<I, O> = Arc<dyn Fn(I, Call) -> BoxFuture<'static, Result<O, ToolError>> + Send + Sync>;

/// For a tool or a prompt that takes no arguments.
// Without a description of its own, or that above would be part of every definition, and of the digest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct NoArguments {}

/// A tool: a name, what it does in words for a model, and an async function.
///
/// The function's first argument is any type that serde reads and schemars describes; its fields' doc comments become
/// the descriptions. Arguments that do not fit are refused before the function is run. What it may return is listed
/// under [`Give`]. An error is a failed result whose text the model reads; a panic ends that call alone.
///
/// ```
/// use serde::Deserialize;
/// use twodoor::embed::{Call, JsonSchema, Tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Divide {
///     /// What is divided.
///     dividend: i64,
///     /// By what; not 0.
///     divisor: i64,
/// }
///
/// async fn divide(Divide { dividend, divisor }: Divide, _call: Call) -> Result<String, &'static str> {
///     let quotient = dividend.checked_div(divisor).ok_or("divide by something other than 0")?;
///     Ok(quotient.to_string())
/// }
///
/// let tool = Tool::new("divide", "Divides one whole number by another.", divide).read_only();
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(super) parts: ToolParts,
    pub(super) run: Run<Arguments, Content>,
    pub(super) first: Option<Run<Arguments, ()>>,
}

impl Tool {
    /// A tool of that name; see the type.
    pub fn new<A, F, R, G>(name: impl Into<String>, description: impl Into<String>, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        F: Fn(A, Call) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Content>,
    {
        let parts = ToolParts {
            description: Some(description.into()),
            input_schema: schema::of_input::<A>(),
            output_schema: G::output_schema(),
            ..ToolParts::new(name)
        };
        Self { parts, run: with_arguments(run), first: None }
    }

    /// Runs this before the tool, where a call becomes a task: what the client has to answer before there is one.
    ///
    /// The tool itself asks the same questions again, under the same keys, and finds them answered.
    #[must_use]
    pub fn ask_first<A, F, R, G>(mut self, first: F) -> Self
    where
        A: DeserializeOwned + 'static,
        F: Fn(A, Call) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<()>,
    {
        self.first = Some(with_arguments(first));
        self
    }

    /// It changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.parts.annotations.read_only = Some(true);
        self
    }

    /// It may destroy something (`true`) or only adds (`false`).
    #[must_use]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.parts.annotations.destructive = Some(destructive);
        self
    }

    /// A second call with the same arguments has no further effect.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.parts.annotations.idempotent = Some(true);
        self
    }

    /// It reaches beyond a closed set of things (`true`), such as the web, or stays within one (`false`).
    #[must_use]
    pub fn open_world(mut self, open: bool) -> Self {
        self.parts.annotations.open_world = Some(open);
        self
    }

    /// All hints at once.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.parts.annotations = annotations;
        self
    }

    /// How long a call may take; the server's deadline otherwise.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.parts.deadline = Some(deadline);
        self
    }

    /// A scope that a caller over HTTP must have, where callers are authorized; one more each time. Not published.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.parts.scopes.push(scope.into());
        self
    }

    /// Whether a call may outlive its request as a task. The server needs an engine of tasks for that, given by
    /// [`Server::with_invoke`](super::Server::with_invoke).
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.parts.task = support;
        self
    }

    /// Allows a definition that some revisions cannot carry, such as an `outputSchema` whose root is a list, to be left
    /// out or rewritten for those.
    #[must_use]
    pub fn divergent(mut self) -> Self {
        self.parts.divergent = true;
        self
    }

    /// This schema in place of that of the arguments' type, sent as it is.
    #[must_use]
    pub fn input_schema(mut self, schema: &Value) -> Self {
        self.parts.input_schema = Json::from(schema);
        self
    }

    /// This schema of the structured result, sent as it is.
    #[must_use]
    pub fn output_schema(mut self, schema: &Value) -> Self {
        self.parts.output_schema = Some(Json::from(schema));
        self
    }
}

setters!(Tool: title icon meta);

fn with_arguments<A, F, R, G, O>(run: F) -> Run<Arguments, O>
where
    A: DeserializeOwned + 'static,
    F: Fn(A, Call) -> R + Send + Sync + 'static,
    R: Future<Output = G> + Send + 'static,
    G: Give<O>,
    O: Send + 'static,
{
    erased(run, |arguments: &Arguments, call| arguments.text().parse().map_err(|error| misfit(&error, call)))
}

/// Forgets the types of a handler: `read` makes its argument of what was asked for.
pub(super) fn erased<I, A, F, R, G, O>(run: F, read: fn(&I, &Call) -> Result<A, ToolError>) -> Run<I, O>
where
    I: 'static,
    A: 'static,
    F: Fn(A, Call) -> R + Send + Sync + 'static,
    R: Future<Output = G> + Send + 'static,
    G: Give<O>,
    O: Send + 'static,
{
    Arc::new(move |input, call| match read(&input, &call) {
        Ok(argument) => {
            let running = run(argument, call);
            Box::pin(async move { running.await.give() })
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    })
}

/// What fits the schema and yet is not the type, such as a text that serde reads further; told as other misfits are.
fn misfit(error: &serde_json::Error, call: &Call) -> ToolError {
    let text = format!("the arguments of the {} do not fit: {error}", call.invocation().operation.name());
    ToolError(match call.revision().rules().bad_arguments {
        BadArguments::Fault => End::Refused(text),
        BadArguments::ToolError => End::Failed(Content::text(text)),
    })
}
