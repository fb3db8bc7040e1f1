//! Runs the handlers: every operation of the engine by the function that was declared for it, found behind the
//! catalog that the operation began on.

use std::sync::Arc;

use super::call::Call;
use super::give::{End, ToolError};
use super::handle::{Handle, Listing};
use super::resource::contents;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{
    Caller, Completing, Completion, Content, Found, Invocation, Invoke, Operation, Outcome, Reference,
};
use crate::transport::defect;

/// Runs what was declared.
pub(super) struct Rooms(pub(super) Handle);

impl Invoke for Rooms {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let Some(listing) = invocation.catalog.behind::<Listing>() else {
                return defect(&format!("the {} is of a catalog without handlers", invocation.operation.name()));
            };
            let operation = invocation.operation.clone();
            let call = Call::new(Arc::unwrap_or_clone(invocation), caller, self.0.clone());
            carry_out(&listing, operation, call).await
        })
    }
}

async fn carry_out(listing: &Listing, operation: Operation, call: Call) -> Outcome {
    let name = operation.name();
    let missing = || defect(&format!("the {name} is published but has no handler"));
    match operation {
        Operation::Call { tool, arguments, .. } => match listing.tool(tool.as_str()) {
            Some(tool) => ended(&call, (tool.run)(arguments, call.clone()).await, Outcome::Complete),
            None => missing(),
        },
        Operation::Prompt { name, arguments } => match listing.prompt(&name) {
            Some(prompt) => ended(&call, (prompt.run)(arguments, call.clone()).await, |mut prompted| {
                prompted.description = prompted.description.or_else(|| prompt.parts.description.clone());
                Outcome::Prompted(prompted)
            }),
            None => missing(),
        },
        Operation::Read { uri, found } => {
            let (reading, mime_type) = match found {
                Found::Resource(index) => match listing.resources.get(index) {
                    Some(resource) => ((resource.read)((), call.clone()).await, resource.parts.mime_type.as_ref()),
                    None => return missing(),
                },
                Found::Template { index, variables } => match listing.templates.get(index) {
                    Some(template) => {
                        ((template.read)(variables, call.clone()).await, template.parts.mime_type.as_ref())
                    }
                    None => return missing(),
                },
            };
            ended(&call, reading, |reading| Outcome::Read(contents(reading, &uri, mime_type)))
        }
        Operation::Complete(completing) => match complete(listing, completing) {
            Some(completion) => ended(&call, completion.await, Outcome::Completed),
            None => missing(),
        },
        Operation::Task(_) => missing(),
    }
}

fn complete(listing: &Listing, completing: Completing) -> Option<BoxFuture<'static, Result<Completion, ToolError>>> {
    let completers = match &completing.of {
        Reference::Prompt(name) => &listing.prompt(name)?.completers,
        Reference::Template(uri) => &listing.template(uri)?.completers,
    };
    Some(completers.get(&*completing.argument)?(completing))
}

/// How a handler ended. An error while questions are open is their asking, whatever type the handler made of it.
fn ended<T>(call: &Call, result: Result<T, ToolError>, done: impl FnOnce(T) -> Outcome) -> Outcome {
    match result {
        Ok(value) => done(value),
        Err(error) => match (call.questions(), error.0) {
            (Some(ask), _) if call.can_carry(&ask) => Outcome::InputRequired(ask),
            (Some(_), _) => {
                let text =
                    "what was answered so far is too long to be carried to the next question: answer more briefly";
                Outcome::Failed(Content::text(text))
            }
            (None, End::Failed(content)) => Outcome::Failed(content),
            (None, End::NotFound) => match call.invocation().operation {
                Operation::Read { .. } => Outcome::NotFound,
                _ => Outcome::Failed(Content::text(super::NotFound.to_string())),
            },
            (None, End::Refused(why)) => Outcome::Refused(why),
        },
    }
}

/// Has a tool's questions asked before its call is handed on, to what may make a task of it.
pub(super) struct AskFirst {
    pub(super) handle: Handle,
    pub(super) inner: Arc<dyn Invoke>,
}

impl Invoke for AskFirst {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        let listing = invocation.catalog.behind::<Listing>();
        let tool =
            invocation.operation.tool().zip(listing).and_then(|(name, listing)| listing.tool(name.as_str()).cloned());
        let first = tool.and_then(|tool| tool.first.clone()).zip(invocation.operation.arguments().cloned());
        let Some((first, arguments)) = first else { return self.inner.invoke(invocation, caller) };
        Box::pin(async move {
            let call = Call::new(Arc::unwrap_or_clone(invocation), Arc::clone(&caller), self.handle.clone());
            match first(arguments, call.clone()).await {
                Ok(()) => self.inner.invoke(Arc::new(call.answered()), caller).await,
                Err(error) => ended(&call, Err::<(), _>(error), |()| Outcome::Complete(Content::default())),
            }
        })
    }
}
