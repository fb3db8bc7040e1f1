//! VS Code: `.vscode/mcp.json` of a project, `mcp.json` of the default profile of a user; servers stand under `servers`.

use serde_json::Value;
use twodoor::surface::json_text::Ordered;

use super::Dialect;
use super::client::{Client, Format, Homes, Names, Place, Reach, Scope, plain};
use crate::cli::own_file::Problem;

pub(super) struct VsCode;

impl Client for VsCode {
    fn title(&self) -> &'static str {
        "VS Code"
    }

    fn format(&self) -> Format {
        Format::Jsonc
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::User => Ok(Place::new(&homes.desktop()?, "Code/User/mcp.json")),
            Scope::Project => Ok(Place::new(&homes.project, ".vscode/mcp.json")),
        }
    }

    fn keys(&self, _found: &Value, _dialect: Option<Dialect>) -> Result<&'static [&'static str], Problem> {
        Ok(&["servers"])
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        Ok(plain(reach, Some(["stdio", "http"]), "url"))
    }

    fn names(&self) -> Names {
        Names { shown: |server, tool| format!("mcp_{server}_{tool}"), longest: 64, beyond: "may refuse such a tool" }
    }

    fn expands(&self) -> &'static [&'static str] {
        &["${"]
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "run MCP: List Servers in VS Code, and start the server; its tools are there in agent mode"
    }
}
