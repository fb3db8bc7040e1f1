//! `twodoor approvals`: what waits for a person's approval, and the person's decision.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use twodoor::core::gate::{ApprovalError, Approvals as Kept, Decision, Request};
use twodoor::protocol::json::visible;
use twodoor::surface::frozen;

use super::{asking, exit, show, state};

/// Shows the calls that wait for an approval, and decides them
#[derive(clap::Args)]
#[command(
    after_help = "A call that cannot be undone waits here if its client cannot ask anybody. It is approved for its caller, its \
    tool and its arguments as they are shown, for one run, within 10 minutes; the client then makes the same call again.\n\n\
    Examples:\n  twodoor approvals --surface ops.yaml\n  twodoor approvals show 3fa9 --surface ops.yaml\n  \
    twodoor approvals approve 3fa9 --surface ops.yaml\n\n\
    approve shows the call and asks; where there is no terminal it takes --yes, which says that a person has looked."
)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    action: Option<Action>,
    /// The state folder of the server
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    /// The surface file that is served, whose state folder is the default one
    #[arg(long, short, value_name = "SURFACE", default_value = super::DEFAULT_SURFACE, global = true)]
    surface: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// What waits, and what was decided and counts still (the default)
    List,
    /// One request with its arguments
    Show {
        /// Its name, or how it begins
        id: String,
    },
    /// Lets a call run once
    Approve {
        /// Its name, or how it begins
        id: String,
        /// A person has looked at it: do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Does not let a call run; takes back an approval that was not used
    Deny {
        /// Its name, or how it begins
        id: String,
    },
}

impl Approvals {
    pub(crate) fn run(self) -> ExitCode {
        let folder = match &self.state {
            Some(folder) => folder.clone(),
            None => match show::load(&self.surface)
                .map(|loaded| state::folder_of(&frozen::served_as(&self.surface, &loaded.name)))
            {
                Ok(Some(folder)) => folder,
                Ok(None) => {
                    show::error("there is no home to keep approvals in: HOME is not set", "give a folder with --state");
                    return exit::usage();
                }
                Err(refused) => return refused,
            },
        };
        // Looking makes no folder.
        if std::fs::symlink_metadata(&folder).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return match &self.action {
                // A folder that nobody named comes with the first request.
                None | Some(Action::List) if self.state.is_none() => self.list(&[]),
                _ => {
                    let problem = format!("there is no state folder {}", folder.display());
                    show::error(&problem, "name the folder that the server was started with (--state, or --surface)");
                    exit::differs()
                }
            };
        }
        let kept = match Kept::open(&folder) {
            Ok(kept) => kept,
            Err(error) => {
                show::error(&error.to_string(), error.remedy());
                return exit::state();
            }
        };
        self.carry_out(&kept).unwrap_or_else(|error| refused(&error))
    }

    fn carry_out(&self, kept: &Kept) -> Result<ExitCode, ApprovalError> {
        match &self.action {
            None | Some(Action::List) => Ok(self.list(&kept.list()?)),
            Some(Action::Show { id }) => {
                self.print(&kept.named(id)?);
                Ok(ExitCode::SUCCESS)
            }
            Some(Action::Deny { id }) => {
                self.print(&kept.decide(&kept.named(id)?, Decision::Deny)?);
                Ok(ExitCode::SUCCESS)
            }
            Some(Action::Approve { id, yes }) => {
                let request = kept.named(id)?;
                if !yes {
                    match agrees(&request) {
                        Some(true) => {}
                        Some(false) => {
                            show::err("not approved\n");
                            return Ok(exit::differs());
                        }
                        None => {
                            let remedy = "run it in a terminal, or say with --yes that a person has looked at it";
                            show::error("there is no terminal to ask on", remedy);
                            return Ok(exit::usage());
                        }
                    }
                }
                self.print(&kept.decide(&request, Decision::Approve)?);
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn list(&self, requests: &[Request]) -> ExitCode {
        if self.json {
            let all: Vec<Value> = requests.iter().map(value).collect();
            show::out(&format!("{:#}\n", Value::Array(all)));
        } else if requests.is_empty() {
            show::out("nothing waits for an approval\n");
        } else {
            for request in requests {
                let left = request.expires.saturating_sub(now());
                show::out(&format!(
                    "{}  {:8}  {}  {}  {} s left\n",
                    request.id,
                    request.standing.name(),
                    visible(request.principal.chars()),
                    visible(request.tool.chars()),
                    left
                ));
            }
        }
        ExitCode::SUCCESS
    }

    fn print(&self, request: &Request) {
        if self.json {
            show::out(&format!("{:#}\n", value(request)));
        } else {
            show::out(&text(request));
        }
    }
}

fn refused(error: &ApprovalError) -> ExitCode {
    match error {
        ApprovalError::Store(error) => {
            show::error(&error.to_string(), error.remedy());
            exit::state()
        }
        ApprovalError::Write(error) => {
            show::error(&error.to_string(), "mend what the system says; nothing was decided");
            exit::state()
        }
        ApprovalError::Full | ApprovalError::Unknown(_) | ApprovalError::Ambiguous(_) => {
            show::error(&error.to_string(), "twodoor approvals shows which there are");
            exit::differs()
        }
        ApprovalError::Decided { .. } => {
            show::error(&error.to_string(), "the call has to be made anew, once this request has expired");
            exit::differs()
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn value(request: &Request) -> Value {
    json!({
        "id": request.id,
        "standing": request.standing.name(),
        "principal": request.principal,
        "surface": request.surface,
        "version": request.version,
        "tool": request.tool,
        "tool_digest": request.tool_digest,
        "arguments_digest": request.arguments_digest,
        "text": request.text,
        "created": request.created,
        "expires": request.expires,
    })
}

fn text(request: &Request) -> String {
    let left = request.expires.saturating_sub(now());
    format!(
        "request    {}\nstanding   {}, {left} s left\ncaller     {}\ntool       {}, {}\n\n{}\n",
        request.id,
        request.standing.name(),
        visible(request.principal.chars()),
        visible(request.tool.chars()),
        visible(request.tool_digest.chars()),
        show::lines(&request.text)
    )
}

/// Shows the call and asks; `None` where there is no terminal.
fn agrees(request: &Request) -> Option<bool> {
    if !asking::is_possible() {
        return None;
    }
    show::err(&text(request));
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\nLet it run once? [y/N] ").and_then(|()| stderr.flush());
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    Some(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
