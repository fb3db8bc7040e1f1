//! Which backend carries out what is asked for.
//!
//! Promises: a call runs on the backend its tool declares and on no other, a resource is read from
//! its own source; what is published without a backend is a defect of ours, logged under a number,
//! and the peer is told the number alone. Where surfaces are reloaded, a router stands behind its
//! catalog, and a call ends on the pair it began with.

use std::collections::HashMap;
use std::sync::Arc;

use super::capability::operator::{Operator, OperatorTool};
use super::capability::registry::{Options, Registry};
use super::capability::secrets::FromEnvironment;
use super::capability::target::TargetTool;
use super::command::{Called, CommandTool};
use super::gate::{Cleared, Desk, Foreseen, Gate, Manner, Subject};
use super::http::HttpTool;
use super::prompt::Prompts;
use super::resource::Resources;
use super::upstream::{Passed, UpstreamBackend};
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{Arguments, Caller, Invocation, Invoke, Operation, Outcome};
use crate::surface::LoadedSurface;
use crate::surface::declaration::{
    ArgumentKind, DeclaredBackend, DeclaredPrompt, DeclaredResource, DeclaredTemplate, DeclaredTool,
};
use crate::surface::effect::Policy;
use crate::surface::rules::Declared;

/// What carries out a tool.
#[derive(Debug)]
pub enum Backend {
    /// A declared argument vector.
    Command(Box<CommandTool>),
    /// An action of a registered capability.
    Target(TargetTool),
    /// A tool of the operator surface.
    Operator(OperatorTool),
    /// An HTTP request.
    Http(Box<HttpTool>),
    /// A tool of another MCP server.
    Upstream(Box<UpstreamBackend>),
}

impl Backend {
    /// Whether it reports progress, logs or asks while it runs.
    pub fn talks(&self) -> bool {
        match self {
            Self::Command(tool) => tool.talks(),
            Self::Target(_) | Self::Operator(_) | Self::Http(_) => false,
            Self::Upstream(_) => true,
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
            Self::Target(tool) => tool.run(arguments, &invocation.principal, caller).await,
            Self::Operator(tool) => tool.run(arguments, cleared.definition(), &invocation.principal, caller).await,
            Self::Http(tool) => tool.run(arguments, caller).await,
            Self::Upstream(tool) => tool.run(Passed::new(arguments, invocation), caller).await,
        }
    }
}

/// A tool: its backend, and what is declared of it.
#[derive(Debug)]
struct Tool {
    backend: Backend,
    policy: Policy,
    asks_itself: bool,
    declared: Declared,
}

impl Tool {
    /// What a call of it would do. A backend that can do several things says by the arguments which it is; the outcome
    /// of a call that cannot be done at all, about which nobody need be asked.
    async fn subject(&self, name: &str, invocation: &Invocation) -> Result<Subject, Box<Outcome>> {
        match (&self.backend, invocation.operation.arguments()) {
            (Backend::Operator(tool), Some(arguments)) if tool.builtin().runs() => tool.subject(arguments).await,
            _ => Ok(self.itself(name)),
        }
    }

    /// What it would do whatever its arguments; `None` if that depends on them.
    fn always(&self, name: &str) -> Option<Subject> {
        match &self.backend {
            Backend::Operator(tool) if tool.builtin().runs() => None,
            _ => Some(self.itself(name)),
        }
    }

    /// A tool that does one thing.
    fn itself(&self, name: &str) -> Subject {
        let manner = if self.asks_itself { Manner::Itself } else { Manner::Asks };
        let subject = Subject::of_tool(name, self.policy).in_manner(manner).declaring(self.declared.clone());
        match &self.backend {
            Backend::Http(tool) => subject.probing(tool.probed()),
            Backend::Upstream(tool) => subject.probing([tool.probed()]),
            Backend::Target(tool) => tool.subject(name).declaring(self.declared.clone()),
            Backend::Command(_) | Backend::Operator(_) => subject,
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
            let arguments = tool.command().map(|run| run.arguments.as_slice()).unwrap_or_default();
            let paths = arguments.iter().filter(|argument| argument.kind == ArgumentKind::Path);
            let paths = paths.map(|argument| argument.name.clone()).collect();
            let declared = Declared { defaults: tool.defaults, paths };
            let backend = match tool.backend {
                DeclaredBackend::Command(run) => Backend::Command(CommandTool::new(tool.name.clone(), run).into()),
                DeclaredBackend::Http(request) => Backend::Http(HttpTool::new(tool.name.clone(), request).into()),
                DeclaredBackend::Upstream(of) => Backend::Upstream(UpstreamBackend::new(tool.name.clone(), of).into()),
                // They stand upon a registry: see `with_registry`.
                DeclaredBackend::Target(_) | DeclaredBackend::Builtin(_) => return None,
            };
            Some((tool.name, Tool { backend, policy: tool.policy, asks_itself: tool.asks_itself, declared }))
        };
        Self { tools: tools.into_iter().filter_map(backend).collect(), ..Self::default() }
    }

    /// Takes everything that a surface declares.
    pub fn of(loaded: &LoadedSurface) -> Self {
        let gate = Gate::new(&*loaded.name, loaded.version.to_string(), Arc::default())
            .with_rules(loaded.rules.clone())
            .with_latitude(loaded.latitude.clone());
        Self { gate, ..Self::new(loaded.tools.clone()) }
            .with_resources(loaded.resources.clone(), loaded.templates.clone())
            .with_prompts(loaded.prompts.clone())
            .with_registry(loaded)
    }

    /// Takes the tools that stand upon the surface's registry, if it has one.
    fn with_registry(mut self, loaded: &LoadedSurface) -> Self {
        let Some(root) = &loaded.registry else { return self };
        let variable = |name: &str| std::env::var(name).ok();
        let registry = Arc::new(Registry::at(root.clone(), Options::read(variable), Arc::new(FromEnvironment)));
        self.tools.extend(loaded.tools.iter().filter_map(|tool| {
            let DeclaredBackend::Target(target) = &tool.backend else { return None };
            let backend = Backend::Target(TargetTool::new(target.clone(), tool.policy, Arc::clone(&registry)));
            let declared = Declared { defaults: tool.defaults.clone(), paths: target.paths.clone() };
            Some((tool.name.clone(), Tool { backend, policy: tool.policy, asks_itself: false, declared }))
        }));
        self.with_operator(&loaded.tools, registry, variable)
    }

    /// Takes the built-in tools too, which work on a registry; `variable` reads the environment.
    pub fn with_operator(
        mut self,
        tools: &[DeclaredTool],
        registry: Arc<Registry>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let operator = Arc::new(Operator::new(registry, tools, variable));
        self.tools.extend(tools.iter().filter_map(|tool| {
            let backend = Backend::Operator(OperatorTool::new(tool.builtin()?.clone(), Arc::clone(&operator)));
            let (policy, declared) = (tool.policy, Declared::default());
            Some((tool.name.clone(), Tool { backend, policy, asks_itself: false, declared }))
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

    /// The same, with the desk of the process: what is asked, approved and written down is kept there.
    #[must_use]
    pub fn at(mut self, desk: Arc<Desk>) -> Self {
        self.gate = self.gate.at(desk);
        self
    }

    /// Whether some call may be asked about or denied, so that there is something to keep: approvals, and a log of what
    /// was decided.
    pub fn is_gated(&self) -> bool {
        let asked = |subject: &Subject| !subject.judged().effect.is_reversible();
        self.gate.may_deny() || self.tools.iter().any(|(name, tool)| tool.always(name).as_ref().is_none_or(asked))
    }

    /// What a call of a tool would do whatever its arguments; `None` if that depends on them.
    pub fn subject(&self, tool: &str) -> Option<Subject> {
        self.tools.get(tool)?.always(tool)
    }

    /// What the gate would say to a call of a tool; `None` if that depends on more than its arguments.
    pub fn foresee(&self, tool: &str, caller: &str, arguments: &Arguments) -> Option<Foreseen> {
        Some(self.gate.foresee(tool, caller, arguments, &self.subject(tool)?))
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
        let subject = match tool.subject(name.as_str(), &invocation).await {
            Ok(subject) => subject,
            Err(outcome) => return *outcome,
        };
        self.gate.pass(invocation, &subject, |cleared| tool.backend.run(cleared, caller)).await
    }
}

impl Invoke for Router {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(self.carry_out(Arc::unwrap_or_clone(invocation), caller))
    }
}

/// Carries out each call by the [`Router`] that stands behind the catalog it began with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByCatalog;

impl Invoke for ByCatalog {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match invocation.catalog.behind::<Router>() {
                Some(router) => router.carry_out((*invocation).clone(), caller).await,
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
