//! Cursor: `.cursor/mcp.json`, of a project and of a user.

use twodoor::surface::json_text::Ordered;

use super::client::{Client, Format, Homes, Names, Place, Reach, Scope, plain};
use crate::cli::own_file::Problem;

pub(super) struct Cursor;

impl Client for Cursor {
    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn format(&self) -> Format {
        Format::Jsonc
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        match scope {
            Scope::User => Ok(Place::new(&homes.home()?, ".cursor/mcp.json")),
            Scope::Project => Ok(Place::new(&homes.project, ".cursor/mcp.json")),
        }
    }

    fn entry(&self, reach: &Reach, _keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        // A URL says by itself what it is.
        let kinds = matches!(reach, Reach::Command { .. }).then_some(["stdio", ""]);
        Ok(plain(reach, kinds, "url"))
    }

    fn names(&self) -> Names {
        Names { shown: |server, tool| format!("{server}:{tool}"), longest: 60, beyond: "hides such a tool" }
    }

    fn expands(&self) -> &'static [&'static str] {
        &["${"]
    }

    fn notes(&self, _name: &str, reach: &Reach, _scope: Scope) -> Vec<String> {
        let Reach::Command { program, args } = reach else { return Vec::new() };
        let spaced = args.iter().chain([program]).find(|text| text.contains(' '));
        let note = |text: &String| format!("{text:?} has a space, at which some versions of Cursor cut");
        spaced.map(note).into_iter().collect()
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "turn the server on in Cursor's settings, under MCP"
    }
}
