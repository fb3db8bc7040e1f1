//! Which backend carries out what is asked for.
//!
//! Promises: a call runs on the backend its tool declares and on no other, a resource is read from
//! its own source; what is published without a backend is a defect of ours, logged under a number,
//! and the peer is told the number alone. Where surfaces are reloaded, a router stands behind its
//! catalog, and a call ends on the pair it began with.

use std::collections::HashMap;
use std::sync::Arc;

use super::command::{Called, CommandTool};
use super::gate::{Cleared, Desk, Gate, Subject};
use super::prompt::Prompts;
use super::resource::Resources;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{Caller, Invocation, Invoke, Operation, Outcome};
use crate::surface::LoadedSurface;
use crate::surface::declaration::{DeclaredBackend, DeclaredPrompt, DeclaredResource, DeclaredTemplate, DeclaredTool};
use crate::surface::effect::Policy;

/// What carries out a tool.
#[derive(Debug)]
pub enum Backend {
    /// A declared argument vector.
    Command(CommandTool),
}

impl Backend {
    /// Whether it reports progress, logs or asks while it runs.
    pub fn talks(&self) -> bool {
        match self {
            Self::Command(tool) => tool.talks(),
        }
    }

    /// Runs a call that was cleared, and nothing else.
    pub async fn run(&self, cleared: Cleared, caller: &dyn Caller) -> Outcome {
        let invocation = cleared.invocation();
        let Operation::Call { arguments, .. } = &invocation.operation else {
            return defect(&format!("the {} was given to the backend of a tool", invocation.operation.name()));
        };
        match self {
            Self::Command(tool) => tool.run(Called::new(arguments, invocation), caller).await,
        }
    }
}

/// A tool: its backend, and what is declared of it.
#[derive(Debug)]
struct Tool {
    backend: Backend,
    policy: Policy,
}

impl Tool {
    /// What a call of it would do. A backend that can do several things says by the arguments which it is.
    fn subject(&self, name: &str, _invocation: &Invocation) -> Subject {
        match &self.backend {
            Backend::Command(_) => Subject::of_tool(name, self.policy),
        }
    }
}

/// The backends of one surface: of tools by their name, of everything else by what it is read from.
#[derive(Debug, Default)]
pub struct Router {
    tools: HashMap<String, Tool>,
    gate: Gate,
    resources: Resources,
    prompts: Prompts,
}

impl Router {
    /// Takes the declared tools; finds each program now, so that a missing one is known before it is called.
    pub fn new(tools: Vec<DeclaredTool>) -> Self {
        let backend = |tool: DeclaredTool| {
            let backend = match tool.backend {
                DeclaredBackend::Command(run) => Backend::Command(CommandTool::new(tool.name.clone(), run)),
                DeclaredBackend::Http(_) | DeclaredBackend::Upstream(_) => return None,
            };
            Some((tool.name, Tool { backend, policy: tool.policy }))
        };
        Self { tools: tools.into_iter().filter_map(backend).collect(), ..Self::default() }
    }

    /// Takes everything that a surface declares.
    pub fn of(loaded: &LoadedSurface) -> Self {
        let gate = Gate::new(&*loaded.name, loaded.version.to_string(), Arc::default());
        Self { gate, ..Self::new(loaded.tools.clone()) }
            .with_resources(loaded.resources.clone(), loaded.templates.clone())
            .with_prompts(loaded.prompts.clone())
    }

    /// Takes the declared resources and templates too.
    pub fn with_resources(mut self, resources: Vec<DeclaredResource>, templates: Vec<DeclaredTemplate>) -> Self {
        self.resources = Resources::new(resources, templates);
        self
    }

    /// Takes the declared prompts too.
    pub fn with_prompts(mut self, prompts: Vec<DeclaredPrompt>) -> Self {
        self.prompts = Prompts::new(prompts);
        self
    }

    /// The same, with the desk of the process: what is asked, approved and written down is kept there.
    #[must_use]
    pub fn at(mut self, desk: Arc<Desk>) -> Self {
        self.gate = self.gate.at(desk);
        self
    }

    /// The backend of a tool, for what is done without a call: a dry run, a check.
    pub fn backend(&self, tool: &str) -> Option<&Backend> {
        self.tools.get(tool).map(|tool| &tool.backend)
    }

    async fn carry_out(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> Outcome {
        let Invocation { catalog, operation, .. } = &invocation;
        match operation {
            Operation::Call { .. } => self.call(invocation, &*caller).await,
            Operation::Read { uri, found } => self.resources.read(uri, found, catalog, &*caller).await,
            Operation::Prompt { name, arguments } => {
                self.prompts.say(name, arguments, &self.resources, catalog, &*caller).await
            }
            Operation::Complete(completing) => self.resources.complete(completing).await,
            Operation::Task(_) => defect(&format!("the {} is published but has no backend", operation.name())),
        }
    }

    /// Looks up, has the gate review the call, runs it. What the gate clears contains the invocation, and
    /// [`Backend::run`] takes nothing else.
    async fn call(&self, invocation: Invocation, caller: &dyn Caller) -> Outcome {
        let found = invocation.operation.tool().and_then(|name| Some((name, self.tools.get(name.as_str())?)));
        let Some((name, tool)) = found else {
            return defect(&format!("the {} is published but has no backend", invocation.operation.name()));
        };
        let subject = tool.subject(name.as_str(), &invocation);
        self.gate.pass(invocation, &subject, |cleared| tool.backend.run(cleared, caller)).await
    }
}

impl Invoke for Router {
    fn invoke(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(self.carry_out(invocation, caller))
    }
}

/// Carries out each call by the [`Router`] that stands behind the catalog it began with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByCatalog;

impl Invoke for ByCatalog {
    fn invoke(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match invocation.catalog.behind::<Router>() {
                Some(router) => router.carry_out(invocation, caller).await,
                None => defect("a catalog is published without a router behind it"),
            }
        })
    }
}

/// Logs a defect of ours under a new number.
pub(super) fn defect(problem: &str) -> Outcome {
    Outcome::Defect { incident: incident(problem) }
}

/// Logs a defect of ours; gives the number under which the log has it.
pub(super) fn incident(problem: &str) -> u64 {
    // Without randomness the number is 0: the log line still stands beside the answer in time.
    let incident = getrandom::u64().unwrap_or(0);
    tracing::error!(incident = format!("{incident:016x}"), "{problem}");
    incident
}
