//! Gemini CLI: `mcpServers` of `settings.json`, in `~/.gemini` for a user and in `.gemini` of a project.

use twodoor::surface::json_text::Ordered;

use super::client::{Client, Format, Homes, Names, Place, Reach, Scope, plain};
use crate::cli::own_file::Problem;

pub(super) struct Gemini;

impl Client for Gemini {
    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn format(&self) -> Format {
        Format::Jsonc
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::User => Ok(Place::new(&homes.home()?, ".gemini/settings.json")),
            Scope::Project => Ok(Place::new(&homes.project, ".gemini/settings.json")),
        }
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        // Its `url` means HTTP+SSE.
        Ok(plain(reach, None, "httpUrl"))
    }

    fn names(&self) -> Names {
        let shown = |server: &str, tool: &str| format!("mcp_{server}_{tool}");
        Names { shown, longest: 63, beyond: "cuts the name of such a tool in the middle" }
    }

    fn expands(&self) -> &'static [&'static str] {
        &["$"]
    }

    fn notes(&self, name: &str, _reach: &Reach, _scope: Scope) -> Vec<String> {
        let note = format!("Gemini CLI's policies take {name:?} apart at its underscore: a hyphen is safer");
        name.contains('_').then_some(note).into_iter().collect()
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "start Gemini CLI anew; /mcp shows the server"
    }
}
