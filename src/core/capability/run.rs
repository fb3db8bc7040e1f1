//! A capability as a child process: started from its manifest, ended whole, told in one shape.
//!
//! Promises: the program sees its arguments, the secrets that its manifest declares and the context that this server
//! established, and nothing else of ours; whatever way a run ends, nothing of it is left. No argument, no output and no
//! secret is logged.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::argv::Rendered;
use super::normal::Normal;
use super::places::place;
use crate::core::blocking::blocking;
use crate::core::process::{self, Ended, Environment, Launch, Overflowed, Program, STDOUT_BYTES, SpawnError};
use crate::core::redact::Secrets;
use crate::protocol::{Caller, Principal};
use crate::surface::builtin::Builtin;
use crate::surface::declaration::Variable;
use crate::surface::manifest::{CapabilityKind, Manifest, Runtime};

/// The variable by which a program knows for whom it works.
pub const USER_VARIABLE: &str = "AAT_USER_ID";
/// The variable by which a program knows in whose workspace.
pub const WORKSPACE_VARIABLE: &str = "AAT_WORKSPACE_ID";
/// The code of a run that found no place.
pub const BUSY: &str = "busy";

/// How long a capability may take where nothing is said.
pub fn timeout_of(kind: CapabilityKind) -> Duration {
    match kind {
        CapabilityKind::Agent => Builtin::RunAgent.timeout(),
        CapabilityKind::Tool | CapabilityKind::Skill => Builtin::RunTool.timeout(),
    }
}

/// A run that is ready.
pub struct Job<'m> {
    /// What is run.
    pub manifest: &'m Manifest,
    /// With which arguments.
    pub rendered: Rendered,
    /// The secrets that it is given: the variable and its value.
    pub secrets: Vec<(String, String)>,
    /// For whom.
    pub principal: &'m Principal,
    /// In whose workspace, as whoever started this server says.
    pub workspace: Option<&'m str>,
    /// The folder it runs in: that of its registry.
    pub cwd: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
}

/// Runs it to its end, or until its caller is gone or its time is over, which stops it and all that it started.
pub async fn run(job: Job<'_>, caller: &dyn Caller) -> Normal {
    let Job { manifest, rendered, secrets, principal, workspace, cwd, timeout } = job;
    if caller.is_gone() {
        return stopped();
    }
    let waited = Builtin::WAIT.min(timeout);
    let _place = tokio::select! {
        biased;
        place = place(manifest) => place,
        () = caller.gone() => return stopped(),
        () = tokio::time::sleep(waited) => return busy(manifest, waited),
    };
    let redacted = Secrets::new(secrets.iter().map(|(_, value)| value.as_str()));
    let program = match program(manifest, &cwd) {
        Ok(program) => program,
        Err(why) => return not_started(manifest, &why),
    };
    let entry = match manifest.runtime {
        Runtime::Exec => None,
        Runtime::Python | Runtime::Node => Some(manifest.entrypoint.clone().into_os_string()),
    };
    let launch = Launch {
        program,
        arguments: entry.into_iter().chain(rendered.argv.into_iter().map(OsString::from)).collect(),
        cwd: Some(cwd),
        environment: Environment::Minimal(variables(secrets, principal, workspace)),
        input: rendered.input,
    };
    let mut is_late = false;
    let gone = async {
        tokio::select! {
            () = caller.gone() => {}
            () = tokio::time::sleep(timeout) => is_late = true,
        }
    };
    let ended = process::run_whole(launch, gone).await;
    match ended {
        Err(why) => not_started(manifest, &why),
        Ok(Err(Overflowed)) => {
            let message =
                format!("it wrote more than {STDOUT_BYTES} bytes, at which it was stopped: ask for less at a time");
            Normal::failed("output_too_large", message)
        }
        Ok(Ok(Ended::Stopped)) if is_late => {
            let message = format!("it did not end within {} seconds and was stopped", timeout.as_secs());
            Normal::failed("timeout", message)
        }
        Ok(Ok(Ended::Stopped)) => stopped(),
        Ok(Ok(Ended::Itself(run))) => {
            // Megabytes of it may have to be read, and searched for secrets.
            let told = blocking(move || Normal::of(&run, &redacted)).await;
            told.unwrap_or_else(|| Normal::failed("no_json", "what it wrote could not be read"))
        }
    }
}

/// What runs a capability, in the project whose folder that is: the entry point itself, or its interpreter. Python is that
/// of the environment (`.venv`) of the capability or else of the project, where one stands.
pub(super) fn program(manifest: &Manifest, project: &Path) -> Result<Program, SpawnError> {
    let by_name = |name: &str| Program::find(name).or_else(|_| Program::find_ours(name.as_ref()));
    match manifest.runtime {
        Runtime::Exec => manifest.entrypoint.to_str().map_or(Err(SpawnError::NoProgram), Program::find),
        Runtime::Python => {
            let own = [&*manifest.folder, project].map(|folder| folder.join(".venv/bin/python3"));
            match own.iter().find(|python| python.exists()) {
                Some(python) => python.to_str().map_or(Err(SpawnError::NoProgram), Program::find),
                None => by_name("python3"),
            }
        }
        Runtime::Node => by_name("node"),
    }
}

/// What is established by this server comes last, so that no secret's name can stand in for it.
fn variables(secrets: Vec<(String, String)>, principal: &Principal, workspace: Option<&str>) -> Vec<Variable> {
    let reserved = |name: &str| name == "PATH" || name.starts_with("AAT_") || name.starts_with("LD_");
    let secrets = secrets.into_iter().filter(|(name, value)| !reserved(name) && !value.contains('\0'));
    let mut variables: Vec<Variable> = secrets.map(|(name, value)| Variable::Literal(name, value)).collect();
    let user = (*principal != Principal::LOCAL).then(|| principal.name());
    let established = [(USER_VARIABLE, user), (WORKSPACE_VARIABLE, workspace)];
    let established = established.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let established = established.filter(|(_, value)| !value.contains('\0'));
    variables.extend(established.map(|(name, value)| Variable::Literal(name.to_owned(), value.to_owned())));
    variables
}

fn not_started(manifest: &Manifest, why: &SpawnError) -> Normal {
    let cause = std::error::Error::source(why).map(ToString::to_string).unwrap_or_default();
    tracing::warn!(capability = %manifest.name, %cause, "not started: {why}");
    let code = if matches!(why, SpawnError::TooLong) { "bad_argument" } else { "not_started" };
    let what = match manifest.runtime {
        Runtime::Exec => "its program",
        Runtime::Python => "python3",
        Runtime::Node => "node",
    };
    Normal::failed(code, format!("{} cannot be started: {what}: {why}", manifest.name))
}

fn busy(manifest: &Manifest, waited: Duration) -> Normal {
    let message = format!(
        "{} has {} runs already, the most that its manifest allows at once, and none ended within {} seconds: nothing was started",
        manifest.name,
        manifest.max_concurrent,
        waited.as_secs()
    );
    Normal::failed(BUSY, message)
}

fn stopped() -> Normal {
    Normal::failed("stopped", "it was stopped before it ended: nobody waits for it any more")
}
