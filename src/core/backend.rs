//! Which backend carries out what is asked for.
//!
//! Promises: a call runs on the backend its tool declares and on no other, a resource is read from
//! its own source; what is published without a backend is a defect of ours, logged under a number,
//! and the peer is told the number alone. Where surfaces are reloaded, a router stands behind its
//! catalog, and a call ends on the pair it began with.

use std::collections::HashMap;
use std::sync::Arc;

use super::capability::operator::{Operator, OperatorTool, Shelf};
use super::command::{Called, CommandTool};
use super::prompt::Prompts;
use super::resource::Resources;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{Caller, Invocation, Invoke, Operation, Outcome, Principal, ToolName};
use crate::surface::LoadedSurface;
use crate::surface::declaration::{DeclaredBackend, DeclaredPrompt, DeclaredResource, DeclaredTemplate, DeclaredTool};

/// What carries out a tool.
#[derive(Debug)]
pub enum Backend {
    /// A declared argument vector.
    Command(CommandTool),
    /// A tool of the operator surface.
    Operator(OperatorTool),
}

impl Backend {
    /// Whether it reports progress, logs or asks while it runs.
    pub fn talks(&self) -> bool {
        match self {
            Self::Command(tool) => tool.talks(),
            Self::Operator(_) => false,
        }
    }

    async fn run(&self, called: Called<'_>, principal: &Principal, caller: &dyn Caller) -> Outcome {
        match self {
            Self::Command(tool) => tool.run(called, caller).await,
            Self::Operator(tool) => tool.run(called.arguments, principal, caller).await,
        }
    }
}

/// The backends of one surface: of tools by their name, of everything else by what it is read from.
#[derive(Debug, Default)]
pub struct Router {
    backends: HashMap<String, Backend>,
    resources: Resources,
    prompts: Prompts,
}

impl Router {
    /// Takes the declared tools; finds each program now, so that a missing one is known before it is called.
    pub fn new(tools: Vec<DeclaredTool>) -> Self {
        let backend = |tool: DeclaredTool| match tool.backend {
            DeclaredBackend::Command(run) => {
                Some((tool.name.clone(), Backend::Command(CommandTool::new(tool.name, run))))
            }
            // They stand upon a registry: see `with_operator`.
            DeclaredBackend::Builtin(_) => None,
        };
        Self { backends: tools.into_iter().filter_map(backend).collect(), ..Self::default() }
    }

    /// Takes everything that a surface declares.
    pub fn of(loaded: &LoadedSurface) -> Self {
        Self::new(loaded.tools.clone())
            .with_resources(loaded.resources.clone(), loaded.templates.clone())
            .with_prompts(loaded.prompts.clone())
    }

    /// Takes the built-in tools too, which work on a registry; `variable` reads the environment.
    pub fn with_operator(
        mut self,
        tools: &[DeclaredTool],
        shelf: Arc<dyn Shelf>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let operator = Arc::new(Operator::new(shelf, tools, variable));
        self.backends.extend(tools.iter().filter_map(|tool| {
            let declared = tool.builtin()?.clone();
            Some((tool.name.clone(), Backend::Operator(OperatorTool::new(declared, Arc::clone(&operator)))))
        }));
        self
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

    /// The backend of a tool, for what is done without a call: a dry run, a check.
    pub fn backend(&self, tool: &str) -> Option<&Backend> {
        self.backends.get(tool)
    }

    async fn carry_out(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> Outcome {
        let Invocation { catalog, operation, .. } = &invocation;
        match operation {
            Operation::Call { tool, arguments, .. } => {
                self.call(tool, Called::new(arguments, &invocation), &invocation.principal, &*caller).await
            }
            Operation::Read { uri, found } => self.resources.read(uri, found, catalog, &*caller).await,
            Operation::Prompt { name, arguments } => {
                self.prompts.say(name, arguments, &self.resources, catalog, &*caller).await
            }
            Operation::Complete(completing) => self.resources.complete(completing).await,
            Operation::Task(_) => defect(&format!("the {} is published but has no backend", operation.name())),
        }
    }

    /// Looks up, has the call reviewed, runs it. The safety gate stands between the two lines below: what
    /// it clears contains the invocation, and [`Backend::run`] then takes nothing else.
    async fn call(&self, tool: &ToolName, called: Called<'_>, principal: &Principal, caller: &dyn Caller) -> Outcome {
        let Some(backend) = self.backends.get(tool.as_str()) else {
            return defect(&format!("the tool {tool} is published but has no backend"));
        };
        backend.run(called, principal, caller).await
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
