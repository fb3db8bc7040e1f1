//! `twodoor import mcp`: tools of another MCP server behind a surface of yours.

use std::ffi::OsString;
use std::process::ExitCode;

use twodoor::client::{Door, Listing, Opening, Options, Target};
use twodoor::core::process;
use twodoor::import::upstream::{self, Reached, Upstream};
use twodoor::protocol::json::shortened;

use super::write::Out;
use super::{nothing, patterns};
use crate::cli::{exit, show, target};

/// Makes a surface over the tools of an MCP server, pinned by the digest of its list
#[derive(clap::Args)]
#[command(
    after_help = "The server is started, or connected to, and its whole list is read by the door it has; nothing is called.\n\n\
    Examples:\n  twodoor import mcp http://127.0.0.1:8484/mcp --out up.yaml\n  \
    twodoor import mcp --out memory.yaml --only 'read_*' -- npx -y @modelcontextprotocol/server-memory"
)]
pub(super) struct Mcp {
    /// The server's URL; a command line stands behind --
    #[arg(value_name = "URL", required_unless_present = "command")]
    url: Option<String>,
    /// The name for the surface and the upstream, in the place of the server's own
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Take only tools whose name fits this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    #[command(flatten)]
    out: Out,
    /// The server's program and its arguments
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "url")]
    command: Vec<OsString>,
}

impl Mcp {
    pub(super) fn run(self) -> ExitCode {
        if let Err(refused) = self.out.check() {
            return refused;
        }
        let patterns = match patterns(&self.only) {
            Ok(patterns) => patterns,
            Err(refused) => return refused,
        };
        let (server, reached) = match self.target() {
            Ok(found) => found,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                return exit::usage();
            }
        };
        let read = target::attended("reading the server's list", read(&server));
        let (opening, listing) = match read {
            Some(Ok(read)) => read,
            Some(Err(problem)) => {
                show::error(&problem, "see what it shows: twodoor probe TARGET");
                return exit::usage();
            }
            None => {
                show::error("the import was interrupted", "run it again, and let it end");
                return exit::usage();
            }
        };
        let chosen = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| pattern.is_match(name));
        let upstream = Upstream { reached, opening: &opening, listing: &listing, name: self.name.as_deref() };
        match upstream::surface(&upstream, &chosen, &self.out.folder()) {
            Ok(imported) => self.out.write(&imported),
            Err(error) => nothing(&error),
        }
    }

    fn target(&self) -> Result<(Target, Reached), (String, String)> {
        if let Some(url) = &self.url {
            if !target::is_url(url.as_ref()) {
                let remedy = "give a URL such as http://127.0.0.1:8484/mcp, or a command line behind --";
                return Err((format!("\"{}\" is no URL", shortened(url, 64)), remedy.to_owned()));
            }
            let target = target::read("import mcp", &[OsString::from(url)])?;
            return Ok((target, Reached::Url(url.clone())));
        }
        let words: Option<Vec<String>> = self.command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
        let words = words.ok_or_else(|| {
            ("the command line is not UTF-8".to_owned(), "a surface file is text: rename what it names".to_owned())
        })?;
        let target = target::read("import mcp", &self.command)?;
        let named = self.command.first().and_then(|first| {
            let program = process::Program::find_ours(first).ok()?;
            self.out.declared(first, program.path())
        });
        let words = named.into_iter().chain(words.into_iter().skip(1)).collect();
        Ok((target, Reached::Program(words)))
    }
}

/// Opens whichever door the server has and reads its list.
async fn read(target: &Target) -> Result<(Opening, Listing), String> {
    let options = Options::default();
    let door = Door::open_either(target, &options).await.map_err(|problem| problem.in_full())?;
    let opening = door.opening().clone();
    let listing = door.list_tools().await;
    door.close().await;
    let listing = listing.map_err(|problem| problem.in_full())?;
    Ok((opening, listing))
}
