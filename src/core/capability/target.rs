//! An action of a registered capability as a published tool.
//!
//! Promises: the capability is found anew for each call, so that one which vanished, or no longer does what was
//! published, is a failed result that says so and starts nothing; only declared arguments are passed on, under the
//! names that the action has for them, paths only once they were confined; a result is within its cap. Used by the router and by a dry run.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::argv::{self, Rendered};
use super::normal::Normal;
use super::registry::Registry;
use super::run::{self, Job};
use super::words::Object;
use super::{cut, enrich, validate};
use crate::core::backend::defect;
use crate::core::blocking::blocking;
use crate::core::confine::{self, Root};
use crate::core::gate::{Manner, Subject};
use crate::core::process::Environment;
use crate::protocol::json::{JsonLimits, shortened};
use crate::protocol::{Arguments, Caller, Content, Json, Outcome, Principal, RawJson};
use crate::surface::declaration::{Target, Variable};
use crate::surface::did_you_mean;
use crate::surface::effect::{Policy, classify};
use crate::surface::manifest::{Manifest, ManifestAction, Runtime};

/// A published action.
#[derive(Debug, Clone)]
pub struct TargetTool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: Target,
    policy: Policy,
    registry: Arc<Registry>,
}

/// A call that can be started.
#[derive(Debug)]
pub struct Plan {
    manifest: Arc<Manifest>,
    rendered: Rendered,
    secrets: Vec<(String, String)>,
}

impl Plan {
    /// What a dry run shows of the program and its arguments, in the project whose folder that is.
    pub fn argv(&self, project: &Path) -> Vec<String> {
        let entry = self.manifest.entrypoint.display().to_string();
        let program = || run::program(&self.manifest, project).map(|program| program.path().display().to_string()).ok();
        let interpreter = match self.manifest.runtime {
            Runtime::Exec => None,
            Runtime::Python => Some(program().unwrap_or_else(|| "python3".to_owned())),
            Runtime::Node => Some(program().unwrap_or_else(|| "node".to_owned())),
        };
        interpreter.into_iter().chain([entry]).chain(self.rendered.argv.iter().cloned()).collect()
    }

    /// The names of the variables that the program is given.
    pub fn env(&self) -> Vec<String> {
        let secret = |(name, _): &(String, String)| Variable::Literal(name.clone(), String::new());
        Environment::names(&self.secrets.iter().map(secret).collect::<Vec<_>>())
    }

    /// What the program can read on standard input.
    pub fn input(&self) -> Option<&[u8]> {
        self.rendered.input.as_deref()
    }
}

impl TargetTool {
    /// The tool as declared, with what its surface says of it.
    pub fn new(target: Target, policy: Policy, registry: Arc<Registry>) -> Self {
        Self(Arc::new(Inner { target, policy, registry }))
    }

    /// The folder that its program runs in.
    pub fn folder(&self) -> &Path {
        self.0.registry.root()
    }

    /// What a call of it would do. What was published can be undone, so nobody is asked where it cannot.
    pub fn subject(&self, tool: &str) -> Subject {
        let Target { name, action, .. } = &self.0.target;
        let behind = std::iter::once(name).chain(action);
        Subject::of_tool(tool, self.0.policy).probing(behind.cloned()).in_manner(Manner::Never)
    }

    /// Holds a call against the manifest as it is now, and starts nothing. Reads files. An error is the answer.
    pub fn plan(&self, arguments: &Arguments) -> Result<Plan, Json> {
        let Inner { target, registry, .. } = &*self.0;
        let whole = self.whole();
        let Some(found) = registry.resolve(Some(target.kind), &target.name) else {
            let message =
                format!("{whole} is not in the registry any more: its {} is gone or broken", target.kind.name());
            return Err(failed(
                "target_gone",
                message,
                "No other arguments help. Tell the operator to check the surface.",
            ));
        };
        let manifest = found.manifest;
        let called = validate::action(&manifest, target.action.as_deref()).map_err(|_| {
            let message = format!("{whole} is not in the registry any more: its action is gone");
            failed("target_gone", message, "No other arguments help. Tell the operator to check the surface.")
        })?;
        if let Some(why) = self.became_irreversible(&manifest, called.action) {
            let message = format!("{whole} is not what was published any more: {why}");
            return Err(failed("target_changed", message, "It cannot be undone and is not offered here."));
        }
        if !found.readiness.ready {
            let tools = found.readiness.tool_status.iter().filter(|status| !status.ready);
            let driven = tools.clone().flat_map(|status| &status.missing_secrets);
            let secrets = found.readiness.missing_secrets.iter().chain(driven).cloned();
            let lacks: Vec<String> = secrets.chain(tools.filter(|s| !s.present).map(|s| s.name.clone())).collect();
            let message = format!("{whole} is not ready: it lacks {}", lacks.join(", "));
            return Err(failed("not_ready", message, "No argument can stand in. Tell the operator what it lacks."));
        }
        let given = self.given(arguments)?;
        validate::arguments(called, given.iter().map(|(flag, value)| (flag.as_str(), value))).map_err(|misuse| {
            if misuse.is_of_values {
                return failed("bad_argument", misuse.message, HINT);
            }
            let message = format!("{whole} takes other arguments than were published: {}", misuse.message);
            failed("target_changed", message, "Tell the operator to check the surface against its registry.")
        })?;
        let fed = |name: &str| called.args().iter().any(|arg| arg.name == name && arg.stdin);
        let action = called.action.map(|action| action.name.as_str());
        let rendered =
            argv::render(action, given.iter().map(|(flag, value)| (flag.as_str(), value)), manifest.argv_style, fed)
                .map_err(|bad| failed("bad_argument", bad.to_string(), HINT))?;
        let secrets = registry.secrets(&manifest);
        Ok(Plan { manifest, rendered, secrets })
    }

    /// Carries out a call that was cleared.
    pub async fn run(&self, arguments: &Arguments, principal: &Principal, caller: &dyn Caller) -> Outcome {
        let (tool, arguments) = (self.clone(), arguments.detached());
        let plan = match blocking(move || tool.plan(&arguments)).await {
            Some(Ok(plan)) => plan,
            Some(Err(answer)) => return self.told(answer, true),
            None => return defect("a target could not be looked up"),
        };
        let Inner { target, registry, .. } = &*self.0;
        let Plan { manifest, rendered, secrets } = plan;
        let timeout = target.timeout.unwrap_or_else(|| run::timeout_of(target.kind));
        let cwd = registry.root().to_path_buf();
        let normal = run::run(
            Job { manifest: &manifest, rendered, secrets, principal, workspace: registry.workspace(), cwd, timeout },
            caller,
        )
        .await;
        if normal.ok {
            return self.told(normal.into_object().into_json(), false);
        }
        let busy = || enrich::is_busy(&normal).then(|| enrich::BUSY_HINT.to_owned());
        let hint = busy().or_else(|| enrich::unequipped(&normal, &manifest)).unwrap_or_else(|| HINT.to_owned());
        self.told(normal.into_object().with("hint", hint).into_json(), true)
    }

    /// The arguments of the call under the names of the action, in the caller's order, then the defaults.
    fn given(&self, arguments: &Arguments) -> Result<Vec<(String, RawJson)>, Json> {
        let Target { flags, defaults, .. } = &self.0.target;
        let flag_of = |name: &str| flags.iter().find(|(exposed, _)| exposed == name).map(|(_, flag)| flag.clone());
        let mut given = Vec::new();
        for (name, value) in arguments.iter() {
            let Some(flag) = flag_of(name) else {
                let known: Vec<&str> = flags.iter().map(|(exposed, _)| exposed.as_str()).collect();
                let meant = did_you_mean(name, known.iter().copied());
                let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
                let message = format!("there is no argument {:?}{meant}", shortened(name, 64));
                return Err(failed("bad_argument", message, &format!("The arguments are {}.", known.join(", "))));
            };
            given.push((flag, self.confined(name, value.clone())?));
        }
        for (name, value) in defaults.iter().filter(|(name, _)| arguments.get(name).is_none()) {
            let value = RawJson::new(Bytes::from(value.to_text()), &JsonLimits::default());
            if let Some((flag, value)) = flag_of(name).zip(value.ok()) {
                given.push((flag, self.confined(name, value)?));
            }
        }
        Ok(given)
    }

    /// The value of an argument; a path checked beneath the root, and seen from the folder that the program runs in.
    fn confined(&self, name: &str, value: RawJson) -> Result<RawJson, Json> {
        let Target { paths, root, .. } = &self.0.target;
        let Some(text) = value.as_text().filter(|_| paths.iter().any(|path| path == name)) else { return Ok(value) };
        let refused = |why: &str| failed("bad_argument", format!("argument {name:?}: the path {why}"), HINT);
        if text.contains('\0') {
            return Err(refused("contains a NUL character: give one without it"));
        }
        let Ok(folder) = Root::open(root) else {
            let message = format!("argument {name:?}: the folder that paths stay beneath cannot be opened");
            return Err(failed("not_ready", message, "No argument can stand in. Tell the operator."));
        };
        let admitted = folder.admit(&text).map_err(|why| refused(&why.to_string()))?;
        let seen = confine::way(self.folder(), root).join(admitted);
        let seen = seen.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>();
        let seen = seen.to_string_lossy();
        Ok(RawJson::encode(&match &*seen {
            "" => ".".to_owned(),
            // To a capability that knows references it would be one.
            reference if reference.starts_with('@') => format!("./{reference}"),
            path => path.to_owned(),
        }))
    }

    /// Why a call would do what cannot be undone, by the manifest as it is now.
    fn became_irreversible(&self, manifest: &Manifest, action: Option<&ManifestAction>) -> Option<String> {
        let declared = action.map(ManifestAction::policy).unwrap_or_default();
        let policy = Policy { said: self.0.policy.said, ..declared };
        let names = std::iter::once(manifest.name.as_str()).chain(action.map(|action| action.name.as_str()));
        let judged = classify(names, policy);
        (!judged.effect.is_reversible()).then(|| judged.reason())
    }

    fn whole(&self) -> String {
        let Target { name, action, .. } = &self.0.target;
        action.as_ref().map_or(name.clone(), |action| format!("{name}/{action}"))
    }

    /// The answer within its cap, as one block of text.
    fn told(&self, answer: Json, is_error: bool) -> Outcome {
        let Target { narrow_by, flags, cap, .. } = &self.0.target;
        let answer = if narrow_by.is_empty() {
            let known: Vec<&str> = flags.iter().map(|(exposed, _)| exposed.as_str()).collect();
            cut::within(answer, *cap, &known)
        } else {
            let narrowing: Vec<&str> = narrow_by.iter().map(String::as_str).collect();
            cut::narrowed_by(answer, *cap, &narrowing)
        };
        let content = Content::text(answer.to_text());
        if is_error { Outcome::Failed(content) } else { Outcome::Complete(content) }
    }
}

const HINT: &str = "This call failed; that is no problem of access. Check the arguments against this tool's schema, mend \
                    them and call again; do not fall back to a shell.";

fn failed(code: &str, message: String, hint: &str) -> Json {
    let told: Object = Normal::failed(code, message).into_object();
    told.with("hint", hint).into_json()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::core::capability::registry::Options;
    use crate::core::capability::secrets::FromEnvironment;
    use crate::surface::effect::Effect;
    use crate::surface::manifest::CapabilityKind;

    const MANIFEST: &str = "name: t\ndescription: x\nactions: [{name: go, args: [{name: max-rows, type: integer}]}]\n";

    fn manifest(root: &Path, text: &str) {
        let folder = root.join("tools/t");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("main.py"), "").unwrap();
        fs::write(folder.join("tool.yaml"), text).unwrap();
    }

    fn tool(root: &Path, policy: Policy) -> TargetTool {
        let target = Target {
            registry: root.to_owned(),
            manifest: root.join("tools/t/tool.yaml"),
            kind: CapabilityKind::Tool,
            name: "t".to_owned(),
            action: Some("go".to_owned()),
            flags: vec![("max_rows".to_owned(), "max-rows".to_owned())],
            root: root.to_owned(),
            paths: Vec::new(),
            defaults: vec![("max_rows".to_owned(), Json::Number("9".into()))],
            narrow_by: Vec::new(),
            timeout: None,
            cap: 60_000,
        };
        let registry = Registry::open(root, Options::default(), Arc::new(FromEnvironment)).unwrap();
        TargetTool::new(target, policy, Arc::new(registry))
    }

    fn plan(tool: &TargetTool, arguments: &str) -> Result<Vec<String>, String> {
        let raw = RawJson::new(Bytes::from(arguments.to_owned()), &JsonLimits::default()).unwrap();
        let planned = tool.plan(&Arguments::new(raw).unwrap());
        planned.map(|plan| plan.rendered.argv).map_err(|answer| {
            assert!(answer.get("hint").is_some(), "{}", answer.to_text());
            let code = answer.get("error").and_then(|error| error.get("code")).and_then(Json::as_str);
            code.unwrap().to_owned()
        })
    }

    #[test]
    fn arguments_go_on_under_the_names_of_the_action() {
        let folder = tempfile::tempdir().unwrap();
        manifest(folder.path(), MANIFEST);
        let tool = tool(folder.path(), Policy::default());
        assert_eq!(plan(&tool, r#"{"max_rows": 3}"#).unwrap(), ["go", "--max-rows", "3"]);
        assert_eq!(plan(&tool, "{}").unwrap(), ["go", "--max-rows", "9"]);
        assert_eq!(plan(&tool, r#"{"max-rows": 3}"#).unwrap_err(), "bad_argument");
        assert_eq!(plan(&tool, r#"{"action": "other"}"#).unwrap_err(), "bad_argument");
    }

    #[test]
    fn a_path_is_confined_beneath_the_root_and_seen_from_the_folder_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let project = base.join("project");
        manifest(&project, &MANIFEST.replace("name: max-rows, type: integer", "name: path"));
        for name in ["project/files/sub", "files", "project/files/@at"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../../secret", project.join("files/out")).unwrap();
        let rooted = |root: &str, default: Option<&str>| {
            let Inner { target, policy, registry } = Arc::into_inner(tool(&project, Policy::default()).0).unwrap();
            let target = Target {
                root: base.join(root),
                paths: vec!["p".to_owned()],
                flags: vec![("p".to_owned(), "path".to_owned())],
                defaults: default.map(|path| ("p".to_owned(), Json::String(path.to_owned()))).into_iter().collect(),
                ..target
            };
            TargetTool::new(target, policy, registry)
        };
        for (root, path, seen) in [
            ("project/files", "a.txt", "files/a.txt"),
            ("project/files", "./sub//x/", "files/sub/x"),
            ("project/files", ".", "files"),
            ("project", "files", "files"),
            ("project", ".", "."),
            ("project", "@x", "./@x"),
            ("project", "-x", "-x"),
            ("files", "a.txt", "../files/a.txt"),
            ("", "project/files", "../project/files"),
        ] {
            let arguments = serde_json::json!({ "p": path }).to_string();
            let expected = vec!["go".to_owned(), format!("--path={seen}")];
            assert_eq!(plan(&rooted(root, None), &arguments).as_ref(), Ok(&expected), "{root} {path}");
            assert_eq!(plan(&rooted(root, Some(path)), "{}").as_ref(), Ok(&expected), "{root} {path}");
        }
        for path in ["/etc/passwd", "../secret", "sub/../../secret", "out", "", "a\0b"] {
            let arguments = serde_json::json!({ "p": path }).to_string();
            assert_eq!(plan(&rooted("project/files", None), &arguments).unwrap_err(), "bad_argument", "{path:?}");
            assert_eq!(plan(&rooted("project/files", Some(path)), "{}").unwrap_err(), "bad_argument", "{path:?}");
        }
        assert_eq!(plan(&rooted("gone", None), r#"{"p": "x"}"#).unwrap_err(), "not_ready");
        assert_eq!(plan(&rooted("gone", None), r#"{"p": null}"#).unwrap(), ["go"]);
    }

    #[test]
    fn what_is_not_what_was_published_any_more_starts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        manifest(folder.path(), MANIFEST);
        let tool = tool(folder.path(), Policy::default());
        assert!(plan(&tool, "{}").is_ok());
        for (text, code) in [
            (MANIFEST.replace("name: go", "name: went"), "target_gone"),
            (MANIFEST.replace("description", "descripton"), "target_gone"),
            (MANIFEST.replace("name: go", "name: go, effects: irreversible"), "target_changed"),
            (MANIFEST.replace("max-rows, type: integer", "rows"), "target_changed"),
            (MANIFEST.replace("args: [", "args: [{name: new, required: true}, "), "target_changed"),
            (format!("{MANIFEST}secrets: [{{name: never-set-anywhere}}]\n"), "not_ready"),
        ] {
            manifest(folder.path(), &text);
            assert_eq!(plan(&tool, "{}").unwrap_err(), code, "{text}");
        }
        manifest(folder.path(), MANIFEST);
        assert!(plan(&tool, "{}").is_ok());
        fs::remove_dir_all(folder.path().join("tools")).unwrap();
        assert_eq!(plan(&tool, "{}").unwrap_err(), "target_gone");
    }

    #[test]
    fn a_value_beside_the_schema_of_its_action_is_for_the_caller_to_mend() {
        let folder = tempfile::tempdir().unwrap();
        manifest(folder.path(), &MANIFEST.replace("type: integer", "type: integer, schema: {maximum: 9}"));
        let tool = tool(folder.path(), Policy::default());
        assert_eq!(plan(&tool, r#"{"max_rows": 9}"#).unwrap(), ["go", "--max-rows", "9"]);
        assert_eq!(plan(&tool, r#"{"max_rows": 10}"#).unwrap_err(), "bad_argument");
    }

    #[test]
    fn a_target_that_cannot_be_undone_is_asked_of_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy { manifest: Some(Effect::Irreversible), ..Policy::default() };
        let subject = tool(folder.path(), policy).subject("tidy");
        assert_eq!((subject.judged().effect, subject.manner()), (Effect::Irreversible, &Manner::Never));
    }
}
