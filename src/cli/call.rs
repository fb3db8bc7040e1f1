//! `twodoor call`: one tool from the shell, or what it would run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use twodoor::core::backend::{Backend, Router};
use twodoor::core::gate::{Desk, Foreseen, Stance};
use twodoor::core::http::HttpTool;
use twodoor::core::upstream::UpstreamBackend;
use twodoor::protocol::json::{JsonError, JsonLimits, check, visible};
use twodoor::protocol::{
    Arguments, Catalog, Content, Limits, Operation, Outcome, Principal, RawJson, Tool, ToolParts, schema,
};

use super::{carry, exit, show, state};

/// Calls one tool of a surface, or shows what the call would run
#[derive(clap::Args)]
#[command(
    after_help = "Arguments are read by the type that the tool declares: count=5 is a number where count is an integer.\n\n\
    Examples:\n  twodoor call log count=5 --surface examples/git.yaml\n  \
    twodoor call log --args '{\"count\": 5}' --surface examples/git.yaml --dry-run\n\n\
    Exits with 1 if the tool fails or is refused, with 6 if nothing ran and a request waits for approval."
)]
pub(crate) struct Call {
    /// The tool
    tool: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// Its arguments as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "arguments")]
    args: Option<String>,
    /// Show the argument vector, the folder, the environment's names and what the gate would say, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Refuse what cannot be undone instead of asking at the terminal
    #[arg(long)]
    deny_irreversible: bool,
    /// Where the audit log is kept, if the surface has something that a person is asked about or a rule denies [default:
    /// the state folder of the surface]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Write every decision about a call into this file, and not into the state folder
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// The surface file
    #[arg(long, short, value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surface: PathBuf,
    /// Print one JSON object: the call's result, or the dry run
    #[arg(long)]
    json: bool,
}

/// What a call would run.
struct Dry {
    argv: Vec<String>,
    cwd: String,
    env: Vec<String>,
    input: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn run(self) -> ExitCode {
        let loaded = match show::load(&self.surface) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        let names: Vec<String> = loaded.parts.tools.iter().map(|tool| tool.name.clone()).collect();
        let Some(parts) = loaded.parts.tools.iter().find(|tool| tool.name == self.tool).cloned() else {
            show::error(
                &format!("the surface has no tool {:?}", self.tool),
                &show::meant(&self.tool, &names, "its tools are"),
            );
            return exit::usage();
        };
        let arguments = match self.read_arguments(&parts) {
            Ok(arguments) => arguments,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                return exit::usage();
            }
        };
        let desk = Arc::new(Desk::new(if self.deny_irreversible { Stance::Deny } else { Stance::Ask }));
        let router = Router::of(&loaded).at(Arc::clone(&desk));
        let surface = loaded.name.clone();
        let talks = router.backend(&self.tool).is_some_and(Backend::talks);
        let Ok(catalog) = Catalog::build(loaded.parts) else { return exit::surface() };
        if let Some(refused) = misfit(&catalog, &self.tool, &arguments) {
            return refused;
        }
        if self.dry_run {
            let gate = router.foresee(&self.tool, Principal::LOCAL.name(), &arguments);
            self.show(&router, &arguments, gate.as_ref())
        } else if let Err(refused) = self.log(&desk, &router, &surface) {
            refused
        } else {
            let code = self.carry_out(&router, &Arc::new(catalog), arguments, talks);
            // The line of a call that was given up is written aside: it has to be there before the process ends.
            desk.settle(super::LOG_AT_MOST);
            code
        }
    }

    /// Has what is decided written down, as a server of this surface does.
    fn log(&self, desk: &Desk, router: &Router, surface: &str) -> Result<(), ExitCode> {
        let opened = match &self.audit {
            Some(file) => desk.audit_to(file),
            None if router.is_gated() => {
                let folder = self.state.clone().or_else(|| state::folder_of(surface));
                folder.map_or(Ok(()), |folder| desk.audit_in(&folder))
            }
            None => Ok(()),
        };
        opened.map_err(|error| {
            show::error(&error.to_string(), "name a folder of your own with --state, or a file with --audit");
            exit::state()
        })
    }

    fn read_arguments(&self, tool: &ToolParts) -> Result<Arguments, (String, String)> {
        let text = match &self.args {
            Some(text) => text.clone(),
            None => {
                let mut object = Map::new();
                for pair in &self.arguments {
                    let (key, value) = read_pair(pair, tool)?;
                    if object.insert(key.clone(), value).is_some() {
                        return Err((format!("{key} is given twice"), "give each argument once".to_owned()));
                    }
                }
                Value::Object(object).to_string()
            }
        };
        let raw = RawJson::new(Bytes::from(text), &JsonLimits::default()).map_err(|error| {
            (format!("--args: {error}"), "give one JSON object in quotes, such as '{\"count\": 5}'".to_owned())
        })?;
        Arguments::new(raw).ok_or_else(|| {
            ("--args is not an object".to_owned(), "give one JSON object, such as '{\"count\": 5}'".to_owned())
        })
    }

    fn show(&self, router: &Router, arguments: &Arguments, gate: Option<&Foreseen>) -> ExitCode {
        let planned = match router.backend(&self.tool) {
            Some(Backend::Http(request)) => return self.show_request(request, arguments, gate),
            Some(Backend::Upstream(of)) => return self.show_passed_on(of, arguments, gate),
            Some(Backend::Command(command)) => command.prepare(arguments).map_err(|why| why.to_string()).map(|ready| {
                let program = ready.program.display().to_string();
                Dry {
                    argv: std::iter::once(program).chain(ready.argv.iter().cloned()).collect(),
                    cwd: ready.cwd.display().to_string(),
                    env: ready.env.clone(),
                    input: ready.input().map(<[u8]>::to_vec),
                }
            }),
            Some(Backend::Target(target)) => target.plan(arguments).map_err(|why| why.to_text()).map(|plan| Dry {
                argv: plan.argv(target.folder()),
                cwd: target.folder().display().to_string(),
                env: plan.env(),
                input: plan.input().map(<[u8]>::to_vec),
            }),
            Some(Backend::Operator(_)) | None => {
                show::error(
                    "a built-in tool has no command of its own, so there is nothing to show of it",
                    "publish the action as a tool with `target`, whose calls can be shown",
                );
                return exit::usage();
            }
        };
        let Dry { argv, cwd, env, input } = match planned {
            Ok(dry) => dry,
            Err(refused) => {
                show::error(&refused, "change the arguments");
                return exit::differs();
            }
        };
        let input = input.as_deref().map(String::from_utf8_lossy);
        if self.json {
            let shown = json!({ "argv": argv, "cwd": cwd, "env": env, "stdin": input, "gate": gate_json(gate) });
            show::out(&format!("{shown:#}\n"));
        } else {
            show::out(&format!(
                "argv   {}\ncwd    {}\nenv    {}\n",
                show::quoted(&argv),
                visible(cwd.chars()),
                env.join(" ")
            ));
            if let Some(input) = input {
                show::out(&format!("stdin  {} bytes\n", input.len()));
            }
            show::out(&format!("gate   {}\n", gate_text(gate)));
        }
        ExitCode::SUCCESS
    }

    fn show_request(&self, tool: &HttpTool, arguments: &Arguments, gate: Option<&Foreseen>) -> ExitCode {
        let prepared = match tool.prepare(arguments) {
            Ok(prepared) => prepared,
            Err(refused) => {
                show::error(&refused.to_string(), "change the arguments");
                return exit::differs();
            }
        };
        if self.json {
            let headers: Map<String, Value> =
                prepared.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
            let shown = json!({
                "method": prepared.method, "url": prepared.url, "headers": headers, "body": prepared.body,
                "gate": gate_json(gate),
            });
            show::out(&format!("{shown:#}\n"));
            return ExitCode::SUCCESS;
        }
        show::out(&format!("{:<6} {}\n", prepared.method, visible(prepared.url.chars())));
        for (name, value) in &prepared.headers {
            show::out(&format!("header {name}: {}\n", visible(value.chars())));
        }
        if let Some(body) = &prepared.body {
            show::out(&format!("body   {}\n", visible(body.chars())));
        }
        show::out(&format!("gate   {}\n", gate_text(gate)));
        ExitCode::SUCCESS
    }

    fn show_passed_on(&self, of: &UpstreamBackend, arguments: &Arguments, gate: Option<&Foreseen>) -> ExitCode {
        let (upstream, tool, arguments) = of.prepare(arguments);
        if self.json {
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            let gate = gate_json(gate);
            let shown = json!({ "upstream": upstream, "tool": tool, "arguments": arguments, "gate": gate });
            show::out(&format!("{shown:#}\n"));
        } else {
            let arguments = visible(arguments.chars());
            show::out(&format!(
                "upstream   {upstream}\ntool       {}\narguments  {arguments}\ngate       {}\n",
                visible(tool.chars()),
                gate_text(gate)
            ));
        }
        ExitCode::SUCCESS
    }

    fn carry_out(&self, router: &Router, catalog: &Arc<Catalog>, arguments: Arguments, talks: bool) -> ExitCode {
        let Some(tool) = catalog.tool(&self.tool) else { return exit::usage() };
        let deadline = tool.deadline.unwrap_or(Limits::default().deadline);
        let operation = Operation::Call { tool: tool.name.clone(), arguments, task: None };
        match carry::out(router, catalog, operation, deadline, talks) {
            Ok(Some(Outcome::Complete(content))) => match unfit(tool, &content) {
                None if waits(&content) => {
                    self.print(&content, ExitCode::SUCCESS);
                    exit::approval()
                }
                None => self.print(&content, ExitCode::SUCCESS),
                Some(problem) => {
                    show::error(
                        &problem,
                        "mend the program or the outputSchema: clients get an internal error instead",
                    );
                    exit::differs()
                }
            },
            Ok(Some(Outcome::Failed(content))) => self.print(&content, exit::differs()),
            Ok(outcome) => carry::failed(outcome),
            Err(code) => code,
        }
    }

    fn print(&self, content: &Content, code: ExitCode) -> ExitCode {
        let failed = code != ExitCode::SUCCESS;
        if self.json {
            let text = content.plain_text();
            let result = json!({ "isError": failed, "text": text, "structuredContent": content.structured });
            show::out(&format!("{result:#}\n"));
        } else {
            let blocks: Vec<String> = content.blocks.iter().map(show::block).collect();
            let text = show::ended(&blocks.join("\n"));
            if failed { show::err(&text) } else { show::out(&text) }
        }
        code
    }
}

/// What the gate would say, for people.
fn gate_text(gate: Option<&Foreseen>) -> String {
    match gate {
        Some(Foreseen::Runs) => "runs".to_owned(),
        Some(Foreseen::Asks(why)) => format!("asks ({})", visible(why.chars())),
        Some(Foreseen::Denied(why)) => format!("denied ({})", visible(why.chars())),
        None => "known when it is called".to_owned(),
    }
}

/// The same for programs.
fn gate_json(gate: Option<&Foreseen>) -> Value {
    let (verdict, reason) = match gate {
        Some(Foreseen::Runs) => ("runs", None),
        Some(Foreseen::Asks(why)) => ("asks", Some(why)),
        Some(Foreseen::Denied(why)) => ("denied", Some(why)),
        None => return Value::Null,
    };
    json!({ "verdict": verdict, "reason": reason })
}

/// Whether this is the gate's answer that a person has to approve first, of ours or of the server behind the tool.
fn waits(content: &Content) -> bool {
    let told = content.structured.as_ref();
    let id = told.and_then(|told| told.pointer("/approval_required/request_id"));
    id.is_some() && told.and_then(|told| told.get("status")).and_then(Value::as_str) == Some("approval_required")
}

/// Reads `key=value` by the type that the tool's schema gives the key.
fn read_pair(pair: &str, tool: &ToolParts) -> Result<(String, Value), (String, String)> {
    let Some((key, text)) = pair.split_once('=') else {
        return Err((
            format!("{pair:?} is no argument"),
            "write key=value, or give all of them with --args".to_owned(),
        ));
    };
    let properties = tool.input_schema.get("properties").and_then(|p| p.as_object()).unwrap_or_default();
    let Some((_, property)) = properties.iter().find(|(name, _)| name == key) else {
        let names: Vec<String> = properties.iter().map(|(name, _)| name.clone()).collect();
        return Err((format!("{} has no argument {key:?}", tool.name), show::meant(key, &names, "its arguments are")));
    };
    let value = match property.get("type").and_then(|t| t.as_str()) {
        Some("string") => Value::String(text.to_owned()),
        Some(kind) => read_json(key, text)?
            .ok_or_else(|| (format!("{key}={text} is no {kind}"), format!("give {key} as JSON of type {kind}")))?,
        None => read_json(key, text)?.unwrap_or_else(|| Value::String(text.to_owned())),
    };
    Ok((key.to_owned(), value))
}

/// Reads a JSON text by the rules that hold for `--args`; `None` if it is not JSON.
fn read_json(key: &str, text: &str) -> Result<Option<Value>, (String, String)> {
    match check(text.as_bytes(), &JsonLimits::default()) {
        Ok(()) => Ok(serde_json::from_str(text).ok()),
        Err(JsonError::Syntax(_)) => Ok(None),
        Err(error) => Err((format!("{key}: {error}"), "correct the value and call again".to_owned())),
    }
}

/// What keeps a result from being sent by a server: a tool with an `outputSchema` must return what fits it.
fn unfit(tool: &Tool, content: &Content) -> Option<String> {
    let Some(value) = &content.structured else { return tool.misfit(content) };
    let violations = tool.output.as_ref()?.violations(value);
    let explained = schema::explain("the output", &violations);
    (!violations.is_empty()).then(|| format!("the output of {} does not fit its outputSchema:\n{explained}", tool.name))
}

fn misfit(catalog: &Catalog, tool: &str, arguments: &Arguments) -> Option<ExitCode> {
    let value: Value = arguments.text().parse().unwrap_or_default();
    let violations = catalog.tool(tool)?.input.violations(&value);
    if violations.is_empty() {
        return None;
    }
    show::error(
        &format!("the arguments do not fit:\n{}", schema::explain("the arguments", &violations)),
        "correct them and call again",
    );
    Some(exit::usage())
}
