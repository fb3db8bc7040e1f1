//! Claude Code: `.mcp.json` of a project, `mcpServers` of `~/.claude.json` for a user.

use twodoor::surface::json_text::Ordered;

use super::client::{Client, Homes, Names, Place, Reach, Scope, double, plain};
use crate::cli::own_file::Problem;

pub(super) struct ClaudeCode;

impl Client for ClaudeCode {
    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::Project => Ok(Place::new(&homes.project, ".mcp.json")),
            Scope::User => {
                let home = homes.home()?;
                homes.unless_moved("CLAUDE_CONFIG_DIR", ".claude.json", home.join(".claude.json"))?;
                Ok(Place::new(&home, ".claude.json"))
            }
        }
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        Ok(plain(reach, Some(["stdio", "http"]), "url"))
    }

    fn names(&self) -> Names {
        Names { shown: double, longest: 128, beyond: "leaves such a tool out" }
    }

    fn reserved(&self) -> &'static [&'static str] {
        &["workspace"]
    }

    fn expands(&self) -> &'static [&'static str] {
        &["${"]
    }

    fn then(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::User => "start Claude Code anew; /mcp shows the server, in every project of yours",
            Scope::Project => {
                "start Claude Code anew in this folder; it asks whoever opens the project to trust the server, then /mcp shows it"
            }
        }
    }
}
