//! `twodoor import`: a surface file for review, from what is there already.

mod cli;
mod mcp;
mod openapi;
mod write;

use std::process::ExitCode;

use globset::{GlobBuilder, GlobMatcher};

use super::{exit, show};

/// Writes a surface file for review, from a program's help, an OpenAPI document or an MCP server
#[derive(clap::Args)]
#[command(
    after_help = "What comes out is a beginning: it passes `twodoor check`, and its comments say what a person has to decide. \
    Exits with 0 if a file was made, with 1 if there was nothing to make it of, with 2 if what was given cannot be read.\n\n\
    Examples:\n  twodoor import cli git --out git.yaml\n  twodoor import openapi petstore.yaml --only pet\n  \
    twodoor import mcp --out memory.yaml -- npx -y @modelcontextprotocol/server-memory"
)]
pub(crate) struct Import {
    #[command(subcommand)]
    from: Source,
}

#[derive(clap::Subcommand)]
enum Source {
    Cli(cli::Cli),
    Openapi(openapi::Openapi),
    Mcp(mcp::Mcp),
}

impl Import {
    pub(crate) fn run(self) -> ExitCode {
        match self.from {
            Source::Cli(cli) => cli.run(),
            Source::Openapi(openapi) => openapi.run(),
            Source::Mcp(mcp) => mcp.run(),
        }
    }
}

/// A pattern of names.
pub(super) fn pattern(text: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(text).case_insensitive(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
}

/// Reads patterns, or says which is none.
fn patterns(only: &[String]) -> Result<Vec<GlobMatcher>, ExitCode> {
    let read = only.iter().map(|text| {
        pattern(text).map_err(|why| {
            show::error(
                &format!("--only {text:?} is no pattern: {why}"),
                "write a name, or a part of one with *: list_*",
            );
            exit::usage()
        })
    });
    read.collect()
}

/// Says that nothing was made, and why.
fn nothing(error: &twodoor::import::ImportError) -> ExitCode {
    show::error(&error.to_string(), error.remedy());
    match error {
        twodoor::import::ImportError::Nothing { .. } => exit::differs(),
        _ => exit::usage(),
    }
}
