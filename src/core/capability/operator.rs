//! The six tools of an operator surface: discovery, and the runner.
//!
//! Promises: a call that cannot succeed starts nothing and is answered with what would; what a run would do is known
//! before it is done, for whoever reviews it; every answer is one JSON object in one block of text. Used by the router.

use std::collections::HashSet;
use std::sync::Arc;

use super::answer::{self, Answer, Manner, Question};
use super::argv::{self, Rendered};
use super::definition::definition;
use super::listing::{Listed, Runs};
use super::normal::Normal;
use super::registry::Registry;
use super::run::{self, Job};
use super::turn::ManagedTurn;
use super::validate::Called;
use super::words::Object;
use super::{cut, enrich, skill, suggest, validate};
use crate::core::backend::defect;
use crate::core::blocking::blocking;
use crate::core::gate::{self, Subject};
use crate::protocol::digest::Digest;
use crate::protocol::json::shortened;
use crate::protocol::{Arguments, Caller, Content, Json, Outcome, Principal, RawJson};
use crate::surface::builtin::Builtin;
use crate::surface::declaration::{DeclaredBuiltin, DeclaredTool};
use crate::surface::manifest::{CapabilityKind, Manifest, ManifestAction, variable};

/// The variable that says how large an answer of `capabilities` may be before it becomes names.
pub const MAX_BYTES_VARIABLE: &str = "AAT_CAPABILITIES_MAX_BYTES";

/// What the tools of one operator surface share.
#[derive(Debug)]
pub struct Operator {
    registry: Arc<Registry>,
    /// What is published, and under which names.
    published: Vec<(Builtin, String)>,
    manner: Manner,
    turn: ManagedTurn,
}

impl Operator {
    /// The operator of a registry, as the environment wants it; `tools` says how the surface calls its built-in tools.
    pub fn new(registry: Arc<Registry>, tools: &[DeclaredTool], variable: impl Fn(&str) -> Option<String>) -> Self {
        let published: Vec<(Builtin, String)> =
            tools.iter().filter_map(|tool| Some((tool.builtin()?.builtin, tool.name.clone()))).collect();
        let find =
            |builtin: Builtin| published.iter().find(|(found, _)| *found == builtin).map(|(_, name)| name.clone());
        let named = |builtin: Builtin| find(builtin).unwrap_or_else(|| builtin.name().to_owned());
        // One that may ask a person runs everything that the plain one runs.
        let runner = |plain: Builtin| find(plain).unwrap_or_else(|| named(plain.confirmed()));
        let manner = Manner {
            run_tool: runner(Builtin::RunTool),
            run_agent: runner(Builtin::RunAgent),
            capabilities: named(Builtin::Capabilities),
            get_skill: named(Builtin::GetSkill),
            max_bytes: max_bytes(variable(MAX_BYTES_VARIABLE).as_deref()),
        };
        Self { registry, published, manner, turn: ManagedTurn::read(variable) }
    }

    /// A skill, or one of its files. Reads files.
    fn skill(&self, name: &str, resource: Option<&str>) -> Answer {
        let Some(found) = self.registry.skill(name) else {
            let listed = self.registry.listed();
            let names = listed.iter().filter(|listed| listed.kind() == CapabilityKind::Skill).map(Listed::name);
            let near: Vec<&str> = suggest::near(name, names).into_iter().map(|near| near.name).collect();
            let error = Object::new()
                .with("code", "unknown_skill")
                .with("message", format!("no skill has the name {:?}", shortened(name, 100)));
            let ask = Object::new().with("kind", "skill").into_json().to_text();
            let hint = format!("All skills: {} {ask}.", self.manner.capabilities);
            return Answer::wrong(Object::new().with("error", error).with("did_you_mean", near).with("hint", hint));
        };
        match skill::read(&found, resource) {
            Ok(value) => Answer { value, is_error: false },
            Err(error) => {
                let told = Object::new().with("code", error.code()).with("message", error.to_string());
                Answer::wrong(Object::new().with("error", told))
            }
        }
    }
}

/// A negative number is 0, which is never; what is no number is as nothing.
fn max_bytes(said: Option<&str>) -> usize {
    match said.map(str::trim).map(str::parse::<i128>) {
        Some(Ok(bytes)) => usize::try_from(bytes.max(0)).unwrap_or(usize::MAX),
        Some(Err(_)) | None => answer::MAX_BYTES,
    }
}

/// A call that was held against its manifest and can be started.
#[derive(Debug)]
struct Plan {
    manifest: Arc<Manifest>,
    action: Option<String>,
    rendered: Rendered,
    /// The names of arguments that were sent otherwise, and the right ones.
    coerced: Vec<(String, Json)>,
    /// Of what was judged, so that nothing else is run.
    definition: Digest,
}

impl Plan {
    fn called(&self) -> Called<'_> {
        // It was found when the call was planned.
        let action = self.manifest.actions.iter().find(|action| Some(&action.name) == self.action.as_ref());
        Called { manifest: &self.manifest, action }
    }
}

/// One of the six tools.
#[derive(Debug, Clone)]
pub struct OperatorTool {
    declared: DeclaredBuiltin,
    operator: Arc<Operator>,
    /// What the surface calls the tool that asks a person where this one refuses.
    confirmed: Option<Arc<str>>,
}

impl OperatorTool {
    /// The tool as declared, of that operator.
    pub fn new(declared: DeclaredBuiltin, operator: Arc<Operator>) -> Self {
        let twin = declared.builtin.confirmed();
        let confirmed = operator.published.iter().find(|(builtin, _)| *builtin == twin);
        let confirmed = confirmed.map(|(_, name)| Arc::from(name.as_str()));
        Self { declared, operator, confirmed }
    }

    /// Which it is.
    pub fn builtin(&self) -> Builtin {
        self.declared.builtin
    }

    /// What a call of a `run_*` tool would do, for whoever reviews it before it is done; an outcome if it can do nothing.
    pub async fn subject(&self, arguments: &Arguments) -> Result<Subject, Box<Outcome>> {
        let plan = self.plan(arguments).await?;
        let manner = match &self.confirmed {
            _ if self.builtin().is_confirmed() => gate::Manner::Asks,
            Some(confirmed) => gate::Manner::Refers(Arc::clone(confirmed)),
            None => gate::Manner::Never,
        };
        let (kind, name) = (plan.manifest.kind.name(), &plan.manifest.name);
        let subject = Subject::of_action(
            kind,
            name,
            plan.action.as_deref(),
            plan.called().action.map(ManifestAction::policy).unwrap_or_default(),
        );
        Ok(subject.in_manner(manner).defined_by(plan.definition))
    }

    /// Carries out a call that was reviewed, or needs no review; `judged` is the definition that its review was of.
    pub async fn run(
        &self,
        arguments: &Arguments,
        judged: Option<Digest>,
        principal: &Principal,
        caller: &dyn Caller,
    ) -> Outcome {
        match self.builtin() {
            Builtin::Capabilities => self.capabilities(arguments).await,
            Builtin::GetSkill => self.skill(arguments).await,
            Builtin::RunTool | Builtin::RunToolConfirmed | Builtin::RunAgent | Builtin::RunAgentConfirmed => {
                match self.plan(arguments).await {
                    Ok(plan) if judged == Some(plan.definition) => self.start(plan, principal, caller).await,
                    Ok(plan) => self.changed(&plan),
                    Err(outcome) => *outcome,
                }
            }
        }
    }

    /// Holds a call of a `run_*` tool against its manifest, and starts nothing; an outcome if it cannot be started.
    async fn plan(&self, arguments: &Arguments) -> Result<Plan, Box<Outcome>> {
        // Manifests may have to be read, and long arguments held against a schema.
        let (tool, arguments) = (self.clone(), arguments.detached());
        let planned = blocking(move || tool.planned(&arguments)).await;
        planned.unwrap_or_else(|| Err(defect("a capability could not be looked up").into()))
    }

    fn planned(&self, arguments: &Arguments) -> Result<Plan, Box<Outcome>> {
        let (kind, named) = match self.builtin() {
            Builtin::RunAgent | Builtin::RunAgentConfirmed => (CapabilityKind::Agent, "agent"),
            _ => (CapabilityKind::Tool, "tool"),
        };
        let Operator { registry, manner, .. } = &*self.operator;
        let name = text(arguments, named).unwrap_or_default();
        let typed = text(arguments, "action").filter(|action| !action.is_empty());
        let mut given = arguments.get("args").and_then(RawJson::members).unwrap_or_default();
        let Some(runs) = registry.find(Some(kind), &name) else {
            let other = registry.find(None, &name).map(|runs| runs.manifest.kind);
            return Err(self.unknown(&name, kind, other).into());
        };
        let manifest = &runs.manifest;
        if kind == CapabilityKind::Agent && self.operator.turn.refuses(&name, typed.as_deref()) {
            return Err(self.failed(managed_turn(&name, typed.as_deref()), &[]).into());
        }
        if !runs.is_ready() {
            return Err(self.failed(self.not_ready(&runs), &[]).into());
        }
        let called = validate::action(manifest, typed.as_deref()).map_err(|misuse| {
            let called = Called { manifest, action: None };
            Box::new(self.failed(enrich::misuse(misuse, called, manner), &[]))
        })?;
        let coerced = if self.declared.coerce_arg_names { coerce(called, &mut given) } else { Vec::new() };
        validate::arguments(called, given.iter().map(|(name, value)| (&**name, value)))
            .map_err(|misuse| Box::new(self.failed(enrich::misuse(misuse, called, manner), &[])))?;
        let action = called.action.map(|action| action.name.as_str());
        let fed = |name: &str| called.args().iter().any(|arg| arg.name == name && arg.stdin);
        let rendered =
            argv::render(action, given.iter().map(|(name, value)| (&**name, value)), manifest.argv_style, fed)
                .map_err(|bad| {
                    let failure = Normal::failed("bad_argument", bad.to_string());
                    Box::new(self.failed(enrich::failure(failure, called, manner), &[]))
                })?;
        let (action, definition) = (action.map(str::to_owned), definition(called));
        Ok(Plan { manifest: Arc::clone(manifest), action, rendered, coerced, definition })
    }

    /// What is told where a run would not be of what was judged.
    fn changed(&self, plan: &Plan) -> Outcome {
        let message = format!("{} changed while this call was judged: nothing was started", plan.manifest.name);
        let hint = "Make the same call again: it is judged as it is now.";
        self.failed(Normal::failed("capability_changed", message).into_object().with("hint", hint), &[])
    }

    async fn start(&self, plan: Plan, principal: &Principal, caller: &dyn Caller) -> Outcome {
        let called = plan.called();
        let (registry, wanted) = (Arc::clone(&self.operator.registry), Arc::clone(&plan.manifest));
        let Some((secrets, cwd)) = blocking(move || (registry.secrets(&wanted), registry.root().to_path_buf())).await
        else {
            return defect("the secrets of a capability could not be read");
        };
        let timeout = self.declared.timeout.unwrap_or_else(|| run::timeout_of(called.manifest.kind));
        let (rendered, workspace) = (plan.rendered.clone(), self.operator.registry.workspace());
        let job = Job { manifest: called.manifest, rendered, secrets, principal, workspace, cwd, timeout };
        let normal = run::run(job, caller).await;
        let names: Vec<&str> = called.args().iter().map(|arg| arg.name.as_str()).collect();
        let ok = normal.ok;
        let told = if ok { normal.into_object() } else { enrich::failure(normal, called, &self.operator.manner) };
        let coerced = (!plan.coerced.is_empty()).then(|| Json::Object(plan.coerced.clone()));
        self.told(told.with_some("coerced_args", coerced).into_json(), !ok, &names)
    }

    async fn capabilities(&self, arguments: &Arguments) -> Outcome {
        let said = |key: &str| text(arguments, key);
        let kind = match said("kind").as_deref() {
            Some("tool") => Some(CapabilityKind::Tool),
            Some("agent") => Some(CapabilityKind::Agent),
            Some("skill") => Some(CapabilityKind::Skill),
            _ => None,
        };
        let (name, action, search) = (said("name"), said("action"), said("search"));
        let full = arguments.get("full").is_some_and(|full| full.as_str() == "true");
        let limit = arguments.get("limit").and_then(|limit| limit.parse::<f64>().ok()).map(whole);
        let operator = Arc::clone(&self.operator);
        // A registry may have hundreds of actions, and a search looks at each.
        let answered = blocking(move || {
            let (name, action, search) = (name.as_deref(), action.as_deref(), search.as_deref());
            let question = Question { kind, name, action, search, full, limit };
            answer::answer(question, &operator.registry.listed(), &operator.manner)
        });
        match answered.await {
            Some(Answer { value, is_error }) => self.told(value, is_error, &["search", "limit"]),
            None => defect("the registry could not be searched"),
        }
    }

    async fn skill(&self, arguments: &Arguments) -> Outcome {
        let (name, resource) = (text(arguments, "name").unwrap_or_default(), text(arguments, "resource"));
        let operator = Arc::clone(&self.operator);
        match blocking(move || operator.skill(&name, resource.as_deref())).await {
            Some(Answer { value, is_error }) => self.told(value, is_error, &[]),
            None => defect("a skill could not be read"),
        }
    }

    fn unknown(&self, name: &str, kind: CapabilityKind, other: Option<CapabilityKind>) -> Outcome {
        let Operator { registry, manner, .. } = &*self.operator;
        let Answer { value, .. } = answer::unknown(name, Some(kind), &registry.listed(), manner);
        let mut told = Normal::failed("unknown_capability", "").into_object();
        for (key, value) in value.as_object().unwrap_or_default() {
            told.put(key, value.clone());
        }
        if let Some(other) = other {
            let hint = format!("{name} is an {other}: run it with {}.", manner.runner(other), other = other.name());
            told.put("hint", hint.replace("is an tool", "is a tool"));
        }
        self.failed(told, &[])
    }

    fn not_ready(&self, runs: &Runs) -> Object {
        let name = &runs.manifest.name;
        let missing = runs.missing_secrets();
        let error = Object::new()
            .with("code", "not_ready")
            .with("message", format!("{name} is not ready: {}", runs.lacks().join("; ")))
            .with("missing_secrets", missing.clone());
        let variables: Vec<String> = missing.iter().map(|secret| variable(secret)).collect();
        let hint = if variables.is_empty() {
            "Nothing was started. The operator has to make it ready; no argument can stand in.".to_owned()
        } else {
            format!(
                "Nothing was started. The operator has to set {} in this server's environment; no argument can stand in.",
                variables.join(", ")
            )
        };
        let mut told = Normal::failed("not_ready", "").into_object();
        told.put("error", error);
        told.with("hint", hint)
    }

    fn failed(&self, told: Object, args: &[&str]) -> Outcome {
        self.told(told.into_json(), true, args)
    }

    /// The answer within its limit, as one block of text.
    fn told(&self, value: Json, is_error: bool, args: &[&str]) -> Outcome {
        let usual = match self.builtin() {
            // It has limits of its own, and half a skill teaches nothing.
            Builtin::GetSkill => usize::MAX,
            Builtin::Capabilities => match self.operator.manner.max_bytes {
                0 => usize::MAX,
                bytes => bytes.max(cut::RESPONSE_BYTES),
            },
            _ => cut::RESPONSE_BYTES,
        };
        let value = cut::within(value, self.declared.cap.unwrap_or(usual), args);
        let content = Content::text(value.to_text());
        if is_error { Outcome::Failed(content) } else { Outcome::Complete(content) }
    }
}

fn managed_turn(agent: &str, action: Option<&str>) -> Object {
    let message = "this action drives the very turn that it was called in: go on without it";
    let refused = Object::new()
        .with("agent", agent)
        .with("action", action)
        .with("reason", "managed_turn")
        .with("message", message);
    Object::new().with("ok", false).with("refused", refused)
}

fn text(arguments: &Arguments, key: &str) -> Option<String> {
    arguments.get(key).and_then(RawJson::as_text)
}

/// Gives arguments the names that they have in the manifest, each where that is sure and not sent too; what was changed.
fn coerce(called: Called<'_>, given: &mut [(Box<str>, RawJson)]) -> Vec<(String, Json)> {
    let mut taken: HashSet<Box<str>> = given.iter().map(|(name, _)| name.clone()).collect();
    let mut coerced = Vec::new();
    for (name, _) in given {
        let Some(twin) = validate::twin(called, name) else { continue };
        if taken.insert(twin.into()) {
            coerced.push((name.to_string(), Json::String(twin.to_owned())));
            *name = twin.into();
        }
    }
    coerced
}

/// A count as sent, which a schema holds between 1 and 50.
fn whole(count: f64) -> usize {
    (1..=super::search::LIMIT_AT_MOST).rev().find(|n| f64::from(u32::try_from(*n).unwrap_or(0)) <= count).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::core::capability::registry::Options;
    use crate::core::capability::secrets::FromEnvironment;
    use crate::protocol::invoke::Nobody;

    #[tokio::test]
    async fn what_changed_between_its_review_and_its_run_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("tools/t");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("run"), "#!/bin/sh\necho '{}' | tee ran\n").unwrap();
        fs::set_permissions(own.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        let manifest = |effects: &str| {
            let text =
                format!("name: t\ndescription: x\nentrypoint: run\nactions: [{{name: go, effects: {effects}}}]\n");
            fs::write(own.join("tool.yaml"), text).unwrap();
        };
        manifest("write");
        let registry = Registry::open(folder.path(), Options::default(), Arc::new(FromEnvironment)).unwrap();
        let operator = Arc::new(Operator::new(Arc::new(registry), &[], |_| None));
        let declared = DeclaredBuiltin { builtin: Builtin::RunTool, timeout: None, cap: None, coerce_arg_names: false };
        let tool = OperatorTool::new(declared, operator);
        let call = serde_json::json!({ "tool": "t", "action": "go" });
        let arguments = Arguments::new(RawJson::encode(&call)).unwrap();
        let judged = tool.subject(&arguments).await.unwrap().definition();
        assert!(judged.is_some());
        manifest("irreversible");
        for judged in [judged, None] {
            let outcome = tool.run(&arguments, judged, &Principal::LOCAL, &Nobody).await;
            let Outcome::Failed(content) = outcome else { panic!("{outcome:?}") };
            assert!(content.plain_text().contains("capability_changed"), "{}", content.plain_text());
            assert!(!folder.path().join("ran").exists());
        }
        manifest("write");
        assert!(matches!(tool.run(&arguments, judged, &Principal::LOCAL, &Nobody).await, Outcome::Complete(_)));
        assert!(folder.path().join("ran").exists());
    }

    #[test]
    fn the_size_limit_is_read_as_the_contract_says() {
        for (said, bytes) in [
            (None, 40_000),
            (Some(""), 40_000),
            (Some("many"), 40_000),
            (Some("1.5"), 40_000),
            (Some("-1"), 0),
            (Some("0"), 0),
            (Some(" 1234 "), 1234),
            (Some("99999999999999999999999"), usize::MAX),
        ] {
            assert_eq!(max_bytes(said), bytes, "{said:?}");
        }
    }

    #[test]
    fn a_limit_of_matches_is_a_whole_number() {
        for (sent, limit) in [(1.0, 1), (20.0, 20), (50.0, 50), (1e9, 50), (0.0, 1), (-5.0, 1), (f64::NAN, 1)] {
            assert_eq!(whole(sent), limit);
        }
    }
}
