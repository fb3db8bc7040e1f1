//! `twodoor probe`: both doors of any MCP server, side by side.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use twodoor::client::{self, HttpTarget, Options, Pipes, Program, Target};
use twodoor::core::process::{self, Environment, Exit, Stderr};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::visible;

use super::signals::Signals;
use super::{exit, show};

/// Opens the modern and the legacy door of a server and compares what they show
#[derive(clap::Args)]
#[command(
    after_help = "Exits with 0 if both doors show one list and its published digest holds, with 1 if they differ,\n\
    with 2 if that cannot be told.\n\n\
    Examples:\n  twodoor probe http://127.0.0.1:8484/mcp\n  twodoor probe twodoor serve examples/git.yaml\n  \
    twodoor probe --json -- npx some-server --flag"
)]
pub(crate) struct Probe {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// A URL, or a command line that serves stdio
    #[arg(value_name = "TARGET", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    target: Vec<OsString>,
}

impl Probe {
    pub(crate) fn run(self) -> ExitCode {
        let target = match read_target(&self.target) {
            Ok(target) => target,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                return exit::usage();
            }
        };
        let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
            return exit::usage();
        };
        let report = runtime.block_on(async {
            let _ = process::become_subreaper();
            let options = Options::default();
            let mut signals = Signals::catch();
            let report = tokio::select! {
                report = show::with_progress("opening both doors", client::probe(&target, &options)) => Some(report),
                () = signals.next() => None,
            };
            let _ = process::settle(process::GRACE).await;
            report
        });
        let Some(report) = report else {
            show::error("the probe was interrupted", "run it again, and let it end");
            return exit::usage();
        };
        let text = if self.json { report.to_json() } else { report.to_string() };
        show::out(&format!("{}\n", text.trim_end()));
        ExitCode::from(report.verdict.exit_code())
    }
}

fn read_target(words: &[OsString]) -> Result<Target, (String, String)> {
    let Some((first, rest)) = words.split_first() else {
        return Err(("there is nothing to probe".to_owned(), "give a URL or a command line".to_owned()));
    };
    let is_url = first.to_str().is_some_and(|text| text.starts_with("http://") || text.starts_with("https://"));
    if is_url && rest.is_empty() {
        let target = HttpTarget::new(&first.to_string_lossy(), &[]);
        return target
            .map(Target::Http)
            .map_err(|problem| (problem.in_full(), "give a URL such as http://127.0.0.1:8484/mcp".to_owned()));
    }
    let program = process::Program::find_ours(first).map_err(|error| {
        (
            format!("{}: {error}", visible(first.to_string_lossy().chars())),
            "give a URL, or a program that is on your PATH".to_owned(),
        )
    })?;
    Ok(Target::Program(started(program, first, rest)))
}

/// How long a server may take to end by itself once its input has ended, before it is stopped.
const END_WITHIN: Duration = Duration::from_secs(3);

fn started(program: process::Program, first: &OsStr, rest: &[OsString]) -> Program {
    let words = std::iter::once(first).chain(rest.iter().map(OsString::as_os_str));
    let shown = show::quoted(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>());
    let arguments = rest.to_vec();
    let connect = move || -> BoxFuture<'static, std::io::Result<Pipes>> {
        let piped = process::spawn_piped(program.clone(), arguments.clone(), Environment::Inherited, Stderr::Null);
        let pipes = piped.map_err(std::io::Error::other).map(|piped| Pipes {
            reader: Box::new(piped.stdout),
            writer: Box::new(piped.stdin),
            end: Box::new(move || Box::pin(end(piped.group))),
        });
        Box::pin(std::future::ready(pipes))
    };
    Program { shown, connect: Arc::new(connect) }
}

/// Ends a server whose input has ended, and says what was unusual about its end.
async fn end(group: process::Group) -> Option<String> {
    match group.end_within(END_WITHIN).await {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("the program ended with code {code}")),
        Exit::Signal(signal) => Some(format!("the program did not end by itself and was ended by signal {signal}")),
        Exit::Unknown => None,
    }
}
