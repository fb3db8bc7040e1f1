//! A declared command as a tool.
//!
//! Promises: [`CommandTool::prepare`] says exactly what would run, and [`CommandTool::run`] runs exactly
//! that; a call that is refused starts nothing; whatever happens to the program is an outcome whose text
//! a model can act on, while paths and system errors go to the operator's log. Used by the router and by
//! a dry run.

pub mod argv;
pub(super) mod blocks;
mod input;
pub(super) mod report;
mod talk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::backend::defect;
use super::confine::{self, PathRefusal, Root};
use super::process::{self, Ended, Environment, Exit, Launch, Line, Program, SpawnError};
use crate::protocol::{Arguments, Caller, Catalog, Content, Invocation, Outcome, RawJson};
use crate::surface::declaration::{Argument, ArgumentKind, Element, Feed, Output, Run};
use argv::{ArgvRefusal, Value, Values};
use report::Reporter;
pub(in crate::core) use report::clean;
use talk::Conversation;

/// A command that carries out one tool.
#[derive(Debug)]
pub struct CommandTool {
    name: String,
    run: Run,
    program: Option<Program>,
    reporter: Reporter,
}

/// A call that is ready to run: what a dry run shows.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The program, an absolute path.
    pub program: PathBuf,
    /// Its arguments, without the program.
    pub argv: Vec<String>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// The names of the variables it is given.
    pub env: Vec<String>,
    launch: Launch,
}

impl Prepared {
    /// What it can read from standard input; `None` if nothing.
    pub fn input(&self) -> Option<&[u8]> {
        self.launch.input.as_deref()
    }
}

/// What a command is called with.
#[derive(Debug, Clone, Copy)]
pub struct Called<'i> {
    /// The arguments.
    pub arguments: &'i Arguments,
    /// The client's answers to what the last run asked.
    pub answers: &'i [(Box<str>, RawJson)],
    /// What the last run wanted to be told again.
    pub state: Option<&'i serde_json::Value>,
    /// The catalog that the call began with.
    pub catalog: &'i Arc<Catalog>,
}

impl<'i> Called<'i> {
    /// These arguments, with all else that came with an invocation.
    pub fn new(arguments: &'i Arguments, invocation: &'i Invocation) -> Self {
        let Invocation { answers, state, catalog, .. } = invocation;
        Self { arguments, answers, state: state.as_ref(), catalog }
    }
}

/// Why a call is not started. The text is for the model; it names no path of ours.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// An argument cannot be rendered.
    #[error(transparent)]
    Argv(#[from] ArgvRefusal),
    /// A path leaves its root.
    #[error("argument {argument:?}: the path {why}")]
    Path {
        /// The argument.
        argument: String,
        /// Why.
        why: PathRefusal,
    },
    /// The program, or the folder to run in, is not as declared.
    #[error("{program} cannot be started: {why}; {}", remedy(why))]
    Start {
        /// The program's name without folders.
        program: String,
        /// Why.
        why: SpawnError,
    },
    /// The declaration is not one that `load` lets pass.
    #[error("the declaration is defective: {0}")]
    Declaration(&'static str),
}

impl CommandTool {
    /// Takes a checked declaration and finds its program; a missing one is looked for again at each call.
    pub fn new(name: String, run: Run) -> Self {
        let program = declared_program(&run).and_then(|declared| Program::find(declared).ok());
        let declared = declared_program(&run).unwrap_or_default();
        let reporter = Reporter {
            tool: name.clone(),
            program: Path::new(declared).file_name().unwrap_or_default().to_string_lossy().into_owned(),
            narrowing: narrowing(&run),
            cap: run.cap,
        };
        Self { name, run, program, reporter }
    }

    /// Whether the program is given a descriptor to talk on while it runs.
    pub fn talks(&self) -> bool {
        self.run.talk
    }

    /// Renders a call without running it.
    pub fn prepare(&self, arguments: &Arguments) -> Result<Prepared, Refusal> {
        let program = self.program()?;
        let root = Root::open(&self.run.root).map_err(|error| self.not_started(not_opened(error)))?;
        let folder = self
            .run
            .cwd
            .strip_prefix(&self.run.root)
            .map_err(|_| Refusal::Declaration("the folder to run in is not beneath the root"))?;
        root.find_folder(folder).map_err(|error| self.not_started(not_opened(error)))?;
        let mut values = Values::new();
        for declared in &self.run.arguments {
            values.insert(declared.name.clone(), value(declared, arguments, &root, folder)?);
        }
        let elements = self.run.argv.get(1..).unwrap_or_default();
        let argv = argv::render(elements, &values)?;
        let input =
            self.run.stdin.as_ref().and_then(|feed| input::render(feed, arguments, &self.run.arguments, &values));
        let launch = Launch {
            program: program.clone(),
            arguments: argv.iter().map(Into::into).collect(),
            cwd: Some(self.run.cwd.clone()),
            environment: Environment::Minimal(self.run.env.clone()),
            input,
        };
        Ok(Prepared {
            program: program.path().to_path_buf(),
            argv,
            cwd: self.run.cwd.clone(),
            env: {
                let mut names = Environment::names(&self.run.env);
                names.extend(self.run.talk.then(|| process::TALK_VARIABLE.to_owned()));
                names
            },
            launch,
        })
    }

    /// Runs a call to its end, or until its caller is gone, which stops the program and all that it started.
    /// So does dropping the future.
    pub async fn run(&self, called: Called<'_>, caller: &dyn Caller) -> Outcome {
        let prepared = match self.prepare(called.arguments) {
            Ok(prepared) => prepared,
            Err(refusal) => return self.refused(&refusal),
        };
        match self.execute(prepared, Some(called), caller).await {
            Ok(run) => self.report(&run),
            Err(outcome) => outcome,
        }
    }

    /// Runs what was prepared; an outcome if it did not come to an end of its own. One that talks needs to know what
    /// it was called with.
    pub(super) async fn execute(
        &self,
        prepared: Prepared,
        called: Option<Called<'_>>,
        caller: &dyn Caller,
    ) -> Result<process::Run, Outcome> {
        if caller.is_gone() {
            return Err(stopped());
        }
        let ended = match called.filter(|_| self.run.talk) {
            None => process::run(prepared.launch, caller.gone()).await,
            Some(called) => self.run_talking(prepared.launch, called, caller).await?,
        };
        match ended {
            Err(why) => Err(self.refused(&self.not_started(why))),
            Ok(Ended::Stopped) => Err(stopped()),
            Ok(Ended::Itself(run)) => Ok(run),
        }
    }

    /// What is told of a run.
    pub(super) fn report(&self, run: &process::Run) -> Outcome {
        match (run.exit, self.run.output) {
            (Exit::Code(code), Output::Text) if self.run.exit_codes.contains(&code) => self.reporter.text(run),
            (Exit::Code(code), Output::Json) if self.run.exit_codes.contains(&code) => self.reporter.json(run),
            (Exit::Code(code), Output::Content) if self.run.exit_codes.contains(&code) => self.reporter.content(run),
            _ => self.reporter.failed(run),
        }
    }

    /// Runs a program that talks; `Err` is the outcome of a run that it ended by what it said.
    async fn run_talking(
        &self,
        launch: Launch,
        called: Called<'_>,
        caller: &dyn Caller,
    ) -> Result<Result<Ended, SpawnError>, Outcome> {
        let (ours, line) = match Line::open() {
            Ok(pair) => pair,
            Err(error) => return Ok(Err(SpawnError::NoRoom(error))),
        };
        let Called { answers, state, catalog, .. } = called;
        let mut conversation = Conversation::new(&self.name, Arc::clone(catalog), answers, state);
        let (stop, stopped) = oneshot::channel();
        let mut stop = Some(stop);
        let talking = talk::converse(ours, &mut conversation, caller);
        let running = process::run_talking(launch, line, async {
            tokio::select! {
                () = caller.gone() => {}
                // Kept until something is sent.
                _ = stopped => {}
            }
        });
        tokio::pin!(talking, running);
        let mut said = None;
        let ended = loop {
            tokio::select! {
                biased;
                outcome = &mut talking, if said.is_none() => {
                    if outcome.is_some() {
                        let _ = stop.take().map(|stop| stop.send(()));
                    }
                    said = Some(outcome);
                }
                ended = &mut running => break ended,
            }
        };
        if said.is_none() {
            // What it wrote at its end counts; given up where somebody outside the call holds the line.
            said = timeout(process::ABANDON_PIPES, talking).await.ok();
        }
        match (said.flatten(), ended) {
            (Some(outcome), Ok(_)) => Err(outcome),
            (_, ended) => Ok(ended),
        }
    }

    fn program(&self) -> Result<Program, Refusal> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let declared = declared_program(&self.run).ok_or(Refusal::Declaration("the program is not a fixed name"))?;
        Program::find(declared).map_err(|why| self.not_started(why))
    }

    fn not_started(&self, why: SpawnError) -> Refusal {
        Refusal::Start { program: self.reporter.program.clone(), why }
    }

    /// What is told of a call that was not started.
    pub(super) fn refused(&self, refusal: &Refusal) -> Outcome {
        match refusal {
            Refusal::Declaration(_) | Refusal::Argv(ArgvRefusal::Undeclared(_)) => {
                return defect(&format!("tool {}: {refusal}", self.name));
            }
            Refusal::Start { why, .. } => {
                let (program, cwd) = (declared_program(&self.run).unwrap_or_default(), self.run.cwd.display());
                let cause = std::error::Error::source(why).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(tool = %self.name, %program, %cwd, %cause, "not started: {why}");
            }
            Refusal::Argv(_) | Refusal::Path { .. } => {}
        }
        Outcome::Failed(Content::text(refusal.to_string()))
    }
}

/// The first element, if it is one literal.
fn declared_program(run: &Run) -> Option<&str> {
    let Some(Element::One(template)) = run.argv.first() else { return None };
    template.as_literal().filter(|text| !text.is_empty())
}

/// The arguments that decide what the program does, as opposed to the text that it is fed.
fn narrowing(run: &Run) -> Vec<String> {
    let fed = |name: &str| matches!(&run.stdin, Some(Feed::Argument(text)) if text == name);
    run.arguments.iter().map(|argument| argument.name.clone()).filter(|name| !fed(name)).collect()
}

/// The value that the caller gave, or the default; a path checked, and seen from the folder to run in.
fn value(declared: &Argument, arguments: &Arguments, root: &Root, folder: &Path) -> Result<Value, Refusal> {
    let given = arguments.get(&declared.name).and_then(argv::text_of);
    let mut text = given.or_else(|| declared.default.as_ref().and_then(argv::text_of_default));
    if declared.kind == ArgumentKind::Path
        && let Some(path) = &mut text
    {
        if path.contains('\0') {
            return Err(ArgvRefusal::Nul(declared.name.clone()).into());
        }
        let refused = |why| Refusal::Path { argument: declared.name.clone(), why };
        let admitted = root.admit(path).map_err(refused)?;
        *path = confine::seen_from(folder, &admitted).to_string_lossy().into_owned();
    }
    Ok(Value { text, kind: declared.kind })
}

/// Why the root, or the folder to run in, could not be opened.
fn not_opened(error: std::io::Error) -> SpawnError {
    match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => SpawnError::NoRoom(error),
        _ => SpawnError::NoFolder,
    }
}

/// What is to be done about a program that cannot be started, and by whom.
fn remedy(why: &SpawnError) -> &'static str {
    match why {
        SpawnError::NoProgram => "the operator has to install it, or declare its absolute path",
        SpawnError::NotExecutable => "the operator has to let this server execute it",
        SpawnError::NotAProgram => "the operator has to give it a `#!` line or build it for this machine",
        SpawnError::NoInterpreter => "the operator has to install what it needs to run",
        SpawnError::NoFolder => "the operator has to restore the folder",
        SpawnError::TooLong => "give shorter arguments",
        SpawnError::NoRoom(_) => "try again later",
        SpawnError::Refused(_) => "the operator's log has the cause",
    }
}

fn stopped() -> Outcome {
    Outcome::Failed(Content::text("stopped before it ended"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::{Json, RawJson};
    use crate::surface::declaration::{Piece, Template, Variable};

    fn literal(text: &str) -> Element {
        Element::One(Template(vec![Piece::Literal(text.to_owned())]))
    }

    fn placeholder(name: &str) -> Element {
        Element::One(Template(vec![Piece::Argument(name.to_owned())]))
    }

    fn argument(name: &str, kind: ArgumentKind, default: Option<Json>) -> Argument {
        Argument { name: name.to_owned(), kind, default }
    }

    fn declaration(root: &str) -> Run {
        Run {
            argv: vec![literal("cat"), placeholder("count"), placeholder("path")],
            arguments: vec![
                argument("count", ArgumentKind::Value, Some(Json::Number("20".into()))),
                argument("path", ArgumentKind::Path, None),
                argument("text", ArgumentKind::Data, None),
            ],
            root: root.into(),
            cwd: root.into(),
            env: vec![Variable::Literal("COLOR".into(), "no".into()), Variable::Inherited("TWODOOR_UNSET".into())],
            stdin: Some(Feed::Argument("text".to_owned())),
            cap: 1000,
            exit_codes: vec![0],
            output: Output::Text,
            talk: false,
        }
    }

    fn prepare(run: Run, arguments: serde_json::Value) -> Result<Prepared, String> {
        let arguments = Arguments::new(RawJson::encode(&arguments)).unwrap();
        CommandTool::new("show".to_owned(), run).prepare(&arguments).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_dry_run_says_what_would_run() {
        let prepared = prepare(declaration("/usr"), json!({ "path": "./bin/", "text": "-in\0put" })).unwrap();
        assert!(prepared.program.is_absolute() && prepared.program.ends_with("cat"));
        assert_eq!(prepared.argv, ["20", "bin"]);
        assert_eq!(prepared.cwd, Path::new("/usr"));
        let env: Vec<&str> = prepared.env.iter().map(String::as_str).filter(|name| *name != "TZ").collect();
        assert_eq!(env, ["PATH", "LANG", "COLOR", "TWODOOR_CALL"]);
        assert_eq!(prepared.input(), Some(&b"-in\0put"[..]));
    }

    #[test]
    fn null_is_absent_and_a_default_stands_in_for_it() {
        let prepared = prepare(declaration("/usr"), json!({ "count": null, "path": null, "text": null })).unwrap();
        assert_eq!(prepared.argv, ["20"]);
        assert_eq!(prepared.input(), None);
        assert_eq!(prepare(declaration("/usr"), json!({ "count": 3.0 })).unwrap().argv, ["3"]);
    }

    #[test]
    fn a_path_is_right_for_the_folder_that_the_program_runs_in() {
        let run = Run { cwd: "/usr/bin".into(), ..declaration("/usr") };
        assert_eq!(prepare(run.clone(), json!({ "path": "bin/x" })).unwrap().argv, ["20", "../bin/x"]);
        assert_eq!(prepare(run, json!({ "path": "." })).unwrap().argv, ["20", ".."]);
    }

    #[test]
    fn no_descriptor_left_is_no_missing_folder() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(matches!(not_opened(errno.into()), SpawnError::NoRoom(_)), "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::NOTDIR, Errno::XDEV] {
            assert!(matches!(not_opened(errno.into()), SpawnError::NoFolder), "{errno}");
        }
    }

    #[test]
    fn a_refusal_tells_the_model_what_to_change_or_who_has_to() {
        let missing = |program: &str| Run { argv: vec![literal(program)], ..declaration("/usr") };
        for (run, arguments, expected) in [
            (declaration("/usr"), json!({ "path": "../etc" }), "argument \"path\": the path contains \"..\""),
            (declaration("/usr"), json!({ "path": "/etc" }), "argument \"path\": the path is absolute"),
            (declaration("/usr"), json!({ "path": "" }), "argument \"path\": the path is empty"),
            (declaration("/usr"), json!({ "path": "a\0b" }), "argument \"path\" contains a NUL character"),
            (declaration("/usr"), json!({ "path": "./-x" }), "argument \"path\" begins with \"-\""),
            (declaration("/usr"), json!({ "count": -1 }), "argument \"count\" begins with \"-\""),
            (declaration("/usr/gone"), json!({}), "cat cannot be started: the folder to run in is missing"),
            (
                Run { cwd: "/usr/gone".into(), ..declaration("/usr") },
                json!({}),
                "cat cannot be started: the folder to run in is missing or closed to this server; the operator has to restore",
            ),
            (Run { cwd: "/etc".into(), ..declaration("/usr") }, json!({}), "the declaration is defective"),
            (missing("no-such-program"), json!({}), "no-such-program cannot be started: the program is not there"),
            (missing("/opt/no/such"), json!({}), "such cannot be started: the program is not there; the operator"),
            (missing("../bin/cat"), json!({}), "cat cannot be started: the program is not there"),
            (missing("bin/cat"), json!({}), "cat cannot be started: the program is not there"),
            (missing("/etc/passwd"), json!({}), "passwd cannot be started: the program is not executable"),
            (
                Run { argv: vec![placeholder("count")], ..declaration("/usr") },
                json!({}),
                "the declaration is defective",
            ),
            (Run { argv: Vec::new(), ..declaration("/usr") }, json!({}), "the declaration is defective"),
        ] {
            let refused = prepare(run, arguments).unwrap_err();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }
}
