//! The command line: one file a subcommand, each of which builds what it needs and maps results to exit codes.

mod approvals;
mod asking;
mod call;
mod carry;
mod check;
mod completions;
mod diff;
mod digest;
mod effects;
mod export;
mod freeze;
mod import;
mod init;
mod install;
mod listed;
mod lock;
mod logging;
mod mounts;
mod own_file;
mod place;
mod probe;
mod read;
mod reload;
mod serve;
mod show;
mod signals;
mod state;
mod talk;
mod target;
mod token;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Longest time that the end of a command waits for the disk of an audit log.
const LOG_AT_MOST: std::time::Duration = std::time::Duration::from_secs(5);

/// What a command ended with, beyond success.
pub(crate) mod exit {
    use std::process::ExitCode;

    /// Something differs, or a tool failed.
    pub(crate) fn differs() -> ExitCode {
        ExitCode::from(1)
    }
    /// The command was called wrongly, or cannot tell.
    pub(crate) fn usage() -> ExitCode {
        ExitCode::from(2)
    }
    /// A surface file is refused.
    pub(crate) fn surface() -> ExitCode {
        ExitCode::from(3)
    }
    /// The state folder is refused.
    pub(crate) fn state() -> ExitCode {
        ExitCode::from(4)
    }
    /// An address cannot be listened on.
    pub(crate) fn listen() -> ExitCode {
        ExitCode::from(5)
    }
    /// Nothing ran: a request waits for a person's approval.
    pub(crate) fn approval() -> ExitCode {
        ExitCode::from(6)
    }
}

/// The surface file that a command reads where none is named.
const DEFAULT_SURFACE: &str = "surface.yaml";

#[derive(Parser)]
#[command(
    name = "twodoor",
    version,
    about = "Serves the command-line tools you declare to every MCP client, of either era, over stdio and HTTP",
    after_help = "A surface file declares tools as argument vectors, never as shell lines:\n\n  \
        surface: hello\n  version: 1.0.0\n  tools:\n    greet:\n      description: Says hello to somebody.\n      read_only: true\n      \
        args:\n        name: { type: string, required: true }\n      run: [echo, \"hello {name}\"]\n\n\
        Then: twodoor check hello.yaml, twodoor call greet name=you --surface hello.yaml, twodoor serve hello.yaml.\n\n\
        Exit codes: 0 done, 1 different or failed, 2 wrong usage or cannot tell, 3 surface refused, 4 state refused, 5 cannot listen, \
        6 nothing ran: a request waits for approval.\n\n\
        Logs go to standard error; TWODOOR_LOG sets what is logged (error, warn, info, debug, or a filter)."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Check(check::Check),
    Call(call::Call),
    Read(read::Read),
    Prompt(read::Prompt),
    Digest(digest::Digest),
    Diff(diff::Diff),
    Lock(lock::WriteLock),
    Verify(verify::Verify),
    Freeze(freeze::Freeze),
    Probe(probe::Probe),
    Import(import::Import),
    Init(init::Init),
    Install(install::Install),
    Export(export::Export),
    Token(token::Token),
    Approvals(approvals::Approvals),
    Completions(completions::Completions),
}

/// A surface file to read.
#[derive(clap::Args)]
struct SurfaceFile {
    /// The surface file
    #[arg(value_name = "SURFACE", default_value = DEFAULT_SURFACE)]
    path: PathBuf,
}

/// Reads the command line and does what it says.
pub(crate) fn run() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(serve) => serve.run(),
        Command::Check(check) => check.run(),
        Command::Call(call) => call.run(),
        Command::Read(read) => read.run(),
        Command::Prompt(prompt) => prompt.run(),
        Command::Digest(digest) => digest.run(),
        Command::Diff(diff) => diff.run(),
        Command::Lock(lock) => lock.run(),
        Command::Verify(verify) => verify.run(),
        Command::Freeze(freeze) => freeze.run(),
        Command::Probe(probe) => probe.run(),
        Command::Import(import) => import.run(),
        Command::Init(init) => init.run(),
        Command::Install(install) => install.run(),
        Command::Export(export) => export.run(),
        Command::Token(token) => token.run(),
        Command::Approvals(approvals) => approvals.run(),
        Command::Completions(completions) => completions.run(Arguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command and all beneath it.
    fn each(command: &clap::Command, see: &mut dyn FnMut(&clap::Command)) {
        see(command);
        command.get_subcommands().for_each(|beneath| each(beneath, see));
    }

    #[test]
    fn help_is_broken_into_lines_by_the_terminals_width_alone() {
        each(&Arguments::command(), &mut |command| {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for paragraph in text.split("\n\n") {
                let broken = paragraph.lines().skip(1).find(|line| !line.starts_with("  "));
                assert_eq!(broken, None, "{}: end the paragraph, or let the line go on", command.get_name());
            }
        });
    }
}
