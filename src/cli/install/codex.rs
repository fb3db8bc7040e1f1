//! Codex: `[mcp_servers.NAME]` of `config.toml`, in `~/.codex` for a user and in `.codex` of a project.

use serde_json::Value;
use twodoor::surface::json_text::Ordered;

use super::Dialect;
use super::client::{Client, Format, Homes, Names, Place, Reach, Scope, double, plain};
use crate::cli::own_file::Problem;

pub(super) struct Codex;

impl Client for Codex {
    fn title(&self) -> &'static str {
        "Codex"
    }

    fn format(&self) -> Format {
        Format::Toml
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::Project => Ok(Place::new(&homes.project, ".codex/config.toml")),
            Scope::User => {
                let home = homes.home()?;
                homes.unless_moved("CODEX_HOME", "config.toml", home.join(".codex/config.toml"))?;
                Ok(Place::new(&home, ".codex/config.toml"))
            }
        }
    }

    fn keys(&self, _found: &Value, _dialect: Option<Dialect>) -> Result<&'static [&'static str], Problem> {
        Ok(&["mcp_servers"])
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        Ok(plain(reach, None, "url"))
    }

    fn names(&self) -> Names {
        Names { shown: double, longest: 64, beyond: "gives such a tool another name" }
    }

    fn notes(&self, _name: &str, _reach: &Reach, scope: Scope) -> Vec<String> {
        let note = "Codex reads the configuration of a project only if you trust the project".to_owned();
        (scope == Scope::Project).then_some(note).into_iter().collect()
    }

    fn environment(&self) -> &'static str {
        "`env`, or by name alone under `env_vars`,"
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "start Codex anew; /mcp shows the server"
    }
}
