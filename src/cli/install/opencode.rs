//! opencode: `opencode.json` or `opencode.jsonc`, in two dialects.
//!
//! Version 1 has servers right beneath `mcp`, with `enabled`; version 2 has them beneath `mcp.servers`, with `disabled`.
//! Version 2 reads the dialect of version 1 too, so that one is written where a file says nothing.

use serde_json::{Map, Value};
use twodoor::surface::json_text::Ordered;

use super::Dialect;
use super::client::{Client, Format, Homes, Names, Place, Reach, Scope};
use crate::cli::own_file::Problem;

pub(super) struct Opencode;

const V1: &[&str] = &["mcp"];
const V2: &[&str] = &["mcp", "servers"];

impl Client for Opencode {
    fn title(&self) -> &'static str {
        "opencode"
    }

    fn format(&self) -> Format {
        Format::Jsonc
    }

    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem> {
        let (beneath, folders) = match scope {
            Scope::User => (homes.config()?, ["opencode/", ""]),
            Scope::Project => (homes.project.clone(), ["", ".opencode/"]),
        };
        let names = ["opencode.json", "opencode.jsonc"];
        let folders = if scope == Scope::User { folders.get(..1) } else { folders.get(..) };
        let files = folders.unwrap_or_default().iter().flat_map(|folder| names.map(|name| format!("{folder}{name}")));
        Ok(Place { files: files.map(|file| beneath.join(file)).collect(), beneath })
    }

    fn keys(&self, found: &Value, dialect: Option<Dialect>) -> Result<&'static [&'static str], Problem> {
        let empty = Map::new();
        let mcp = found.get("mcp").and_then(Value::as_object).unwrap_or(&empty);
        let is_server =
            |entry: &Value| ["type", "command", "url"].iter().any(|key| entry.get(key).is_some_and(|v| !v.is_object()));
        let second = mcp.get("servers").is_some_and(|servers| servers.is_object() && !is_server(servers));
        let first = mcp.iter().any(|(name, entry)| !(name == "servers" && second) && is_server(entry));
        match (first, second, dialect) {
            (_, _, Some(Dialect::V1)) | (true, false, None) | (false, false, None) => Ok(V1),
            (_, _, Some(Dialect::V2)) | (false, true, None) => Ok(V2),
            (true, true, None) => Err((
                "the file has servers both beneath `mcp` and beneath `mcp.servers`".to_owned(),
                "say --dialect v1 or --dialect v2".to_owned(),
            )),
        }
    }

    fn entry(&self, reach: &Reach, keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem> {
        let mut members = match reach {
            Reach::Command { program, args } => {
                let command = [program].into_iter().chain(args).map(|element| element.as_str().into()).collect();
                vec![("type".to_owned(), "local".into()), ("command".to_owned(), Ordered::List(command))]
            }
            Reach::Url(url) => vec![("type".to_owned(), "remote".into()), ("url".to_owned(), url.as_str().into())],
        };
        if keys == V1 {
            members.push(("enabled".to_owned(), Ordered::Flag(true)));
        }
        Ok(members)
    }

    fn names(&self) -> Names {
        Names { shown: |server, tool| format!("{server}_{tool}"), longest: 64, beyond: "may refuse such a tool" }
    }

    fn reserved(&self) -> &'static [&'static str] {
        // In the other dialect each would be a setting.
        &["servers", "timeout"]
    }

    fn expands(&self) -> &'static [&'static str] {
        &["{env:", "{file:"]
    }

    fn environment(&self) -> &'static str {
        "`environment`"
    }

    fn then(&self, _scope: Scope) -> &'static str {
        "start opencode anew; opencode mcp list shows the server"
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_dialect_is_the_one_that_the_file_is_written_in() {
        let server = json!({ "type": "local", "command": ["x"] });
        for (found, expected) in [
            (json!(null), Some(V1)),
            (json!({}), Some(V1)),
            (json!({ "mcp": {} }), Some(V1)),
            (json!({ "mcp": { "a": server } }), Some(V1)),
            (json!({ "mcp": { "servers": server } }), Some(V1)),
            (json!({ "mcp": { "servers": {} } }), Some(V2)),
            (json!({ "mcp": { "servers": { "a": server }, "timeout": 5 } }), Some(V2)),
            (json!({ "mcp": { "servers": { "type": server } } }), Some(V2)),
            (json!({ "mcp": { "servers": { "a": server }, "b": server } }), None),
        ] {
            assert_eq!(Opencode.keys(&found, None).ok(), expected, "{found}");
            assert_eq!(Opencode.keys(&found, Some(Dialect::V1)).unwrap(), V1);
            assert_eq!(Opencode.keys(&found, Some(Dialect::V2)).unwrap(), V2);
        }
    }
}
