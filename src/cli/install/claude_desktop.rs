//! Claude Desktop: `claude_desktop_config.json`, which takes commands alone.

use twodoor::surface::json_text::Ordered;

use super::client::{Client, Homes, Names, Place, Reach, Scope, double, plain};
use crate::cli::own_file::Problem;

pub(super) struct ClaudeDesktop;

impl Client for ClaudeDesktop {
    fn title(&self) -> &'static str {
        "Claude Desktop"
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::User => Ok(Place::new(&homes.desktop()?, "Claude/claude_desktop_config.json")),
            Scope::Project => Err((
                "Claude Desktop knows no projects".to_owned(),
                "leave --scope out, or say --scope user".to_owned(),
            )),
        }
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        match reach {
            Reach::Command { .. } => Ok(plain(reach, None, "url")),
            Reach::Url(_) => Err((
                "Claude Desktop's file takes commands alone".to_owned(),
                "leave --http out; or add the URL as a connector in the client's settings".to_owned(),
            )),
        }
    }

    fn names(&self) -> Names {
        Names { shown: double, longest: 64, beyond: "refuses conversations with such a tool" }
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "quit Claude Desktop and start it anew"
    }
}
