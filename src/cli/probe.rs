//! `twodoor probe`: both doors of any MCP server, side by side.

use std::ffi::OsString;
use std::process::ExitCode;

use twodoor::client::{self, Options};

use super::{exit, show, target};

/// Opens the modern and the legacy door of a server and compares what they show
#[derive(clap::Args)]
#[command(
    after_help = "Exits with 0 if both doors show one list and its published digest holds, with 1 if they differ, \
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
    pub(crate) fn run(mut self) -> ExitCode {
        // Behind a URL no word can belong to another program.
        if self.target.first().is_some_and(|first| target::is_url(first)) {
            let words = self.target.len();
            self.target.retain(|word| word != "--json");
            self.json |= self.target.len() < words;
        }
        let target = match target::read("probe", &self.target) {
            Ok(target) => target,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                return exit::usage();
            }
        };
        let options = Options::default();
        let report = target::attended("opening both doors", client::probe(&target, &options));
        let Some(report) = report else {
            show::error("the probe was interrupted", "run it again, and let it end");
            return exit::usage();
        };
        let text = if self.json { report.to_json() } else { report.to_string() };
        show::out(&format!("{}\n", text.trim_end()));
        ExitCode::from(report.verdict.exit_code())
    }
}
