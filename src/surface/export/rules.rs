//! What a registry asks of a `server.json`, so that a file is not refused only when it is published.
//!
//! Promises: every problem at once, each with its place in the file and a remedy; nothing is fetched. The shape is in
//! `rules.json` (registry, docs/reference/server-json), the rest in code, as the registry's own validators have it.

use std::sync::OnceLock;

use serde_json::Value;

use super::{PUBLISHER, Trouble};

/// Most bytes of what a publisher adds, as the registry writes it.
const PUBLISHER_BYTES: usize = 4096;

/// Keys as they were spelt before, and as they are now.
const RENAMED: [(&str, &str); 12] = [
    ("registry_type", "registryType"),
    ("registry_base_url", "registryBaseUrl"),
    ("file_sha256", "fileSha256"),
    ("runtime_hint", "runtimeHint"),
    ("runtime_arguments", "runtimeArguments"),
    ("package_arguments", "packageArguments"),
    ("environment_variables", "environmentVariables"),
    ("is_required", "isRequired"),
    ("is_secret", "isSecret"),
    ("value_hint", "valueHint"),
    ("is_repeated", "isRepeated"),
    ("website_url", "websiteUrl"),
];

fn rules() -> &'static Value {
    static RULES: OnceLock<Value> = OnceLock::new();
    RULES.get_or_init(|| serde_json::from_str(include_str!("rules.json")).unwrap_or(Value::Null))
}

/// The URL of the schema that is current.
pub(super) fn schema() -> &'static str {
    rules().pointer("/properties/$schema/const").and_then(Value::as_str).unwrap_or_default()
}

/// Everything that keeps a registry from taking the file.
pub(super) fn check(file: &Value) -> Vec<Trouble> {
    let mut found = Vec::new();
    shape(file, &mut found);
    renamed(file, String::new(), &mut found);
    if found.is_empty() {
        meaning(file, &mut found);
    }
    found
}

fn shape(file: &Value, found: &mut Vec<Trouble>) {
    let Ok(validator) = jsonschema::draft202012::new(rules()) else {
        found.push(trouble("", "the rules cannot be read", "report it: this is a fault of the program"));
        return;
    };
    for error in validator.iter_errors(file) {
        let schema = error.schema_path().to_string();
        let mut rule = schema.as_str();
        let mut remedy = None;
        while let (None, Some((parent, _))) = (remedy, rule.rsplit_once('/')) {
            remedy = rules().pointer(parent).and_then(|rule| rule.get("remedy")).and_then(Value::as_str);
            rule = parent;
        }
        let text = error.to_string();
        let text = if text.chars().count() > 300 {
            format!("{}…", text.chars().take(300).collect::<String>())
        } else {
            text
        };
        found.push(trouble(
            error.instance_path().to_string(),
            text,
            remedy.unwrap_or("see the registry's documentation"),
        ));
    }
}

fn renamed(value: &Value, at: String, found: &mut Vec<Trouble>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                if place.starts_with("/_meta/") {
                    continue;
                }
                if let Some((_, now)) = RENAMED.iter().find(|(before, _)| before == key) {
                    found.push(trouble(&place, format!("{key} is the old spelling"), format!("write {now}")));
                }
                renamed(value, place, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                renamed(item, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// What the shape alone does not say; the shape is right.
fn meaning(file: &Value, found: &mut Vec<Trouble>) {
    let version = text(file, "version");
    if let Some(problem) = inexact(version) {
        found.push(trouble("/version", problem, "a version is one exact version, such as 1.2.0"));
    }
    if let Some(repository) = file.get("repository") {
        let (url, source) = (text(repository, "url"), text(repository, "source"));
        if !is_repository(url, source) {
            let problem = format!("{url:?} is no repository of {source}");
            let remedy = format!("write https://{source}.com/OWNER/NAME, and the rest into subfolder");
            found.push(trouble("/repository/url", problem, remedy));
        }
    }
    for (index, package) in list(file, "packages").iter().enumerate() {
        package_meaning(package, version, &format!("/packages/{index}"), found);
    }
    for (index, remote) in list(file, "remotes").iter().enumerate() {
        let (at, url) = (format!("/remotes/{index}/url"), text(remote, "url"));
        let known: Vec<&str> =
            remote.get("variables").and_then(Value::as_object).into_iter().flatten().map(|(k, _)| k.as_str()).collect();
        if let Some(problem) = not_web(url, &["https://"]).or_else(|| undeclared(url, &known)) {
            found.push(trouble(at, problem, "a remote is an https URL, its {variables} are declared beside it"));
        } else if is_local(url) {
            found.push(trouble(at, format!("{url:?} is on this machine"), "name the address that others reach"));
        }
    }
    if let Some(added) = file.pointer(&format!("/_meta/{}", PUBLISHER.replace('/', "~1"))) {
        let bytes = written(added);
        if bytes > PUBLISHER_BYTES {
            let problem = format!("what the publisher adds has {bytes} bytes: at most {PUBLISHER_BYTES} are taken");
            found.push(trouble(format!("/_meta/{}", PUBLISHER.replace('/', "~1")), problem, "leave some of it out"));
        }
    }
}

fn package_meaning(package: &Value, version: &str, at: &str, found: &mut Vec<Trouble>) {
    let (kind, identifier) = (text(package, "registryType"), text(package, "identifier"));
    let own = package.get("version").and_then(Value::as_str);
    if let Some(own) = own {
        if let Some(problem) = inexact(own) {
            found.push(trouble(format!("{at}/version"), problem, "a version is one exact version, such as 1.2.0"));
        } else if own != version {
            let problem = format!("the package's version is {own}, the server's {version}");
            found.push(trouble(format!("{at}/version"), problem, "both are the surface's version"));
        }
    }
    match kind {
        "oci" => {
            for key in ["version", "registryBaseUrl"] {
                if package.get(key).is_some() {
                    let problem = format!("an image has no {key}");
                    found.push(trouble(format!("{at}/{key}"), problem, "leave it out: the identifier says it"));
                }
            }
            let name = identifier.rsplit('/').next().unwrap_or_default();
            if !name.contains(':') || name.ends_with(":latest") {
                let problem = format!("{identifier:?} names no version of the image");
                found.push(trouble(format!("{at}/identifier"), problem, "end it in :VERSION, or in @sha256:DIGEST"));
            }
        }
        "mcpb" => {
            if package.get("fileSha256").is_none() {
                found.push(trouble(at, "a bundle has a fileSha256", "say --package mcpb:URL#SHA256"));
            }
            if let Some(problem) = not_web(identifier, &["https://"]) {
                found.push(trouble(format!("{at}/identifier"), problem, "a bundle is named by its https URL"));
            } else if !identifier.to_lowercase().contains("mcp") {
                let problem = format!("{identifier:?} does not have \"mcp\" in it");
                found.push(trouble(format!("{at}/identifier"), problem, "call the file NAME.mcpb"));
            }
        }
        "npm" | "pypi" | "nuget" | "cargo" if own.is_none() => {
            found.push(trouble(
                at,
                format!("a package of {kind} has a version"),
                "export writes the surface's version",
            ));
        }
        _ => {}
    }
    let mut known = Vec::new();
    for key in ["runtimeArguments", "packageArguments", "environmentVariables"] {
        for (index, argument) in list(package, key).iter().enumerate() {
            known.extend(
                ["name", "valueHint"].map(|key| text(argument, key)).into_iter().filter(|name| !name.is_empty()),
            );
            let name = text(argument, "name");
            for part in ["value", "default"] {
                if key != "environmentVariables" && !name.is_empty() && text(argument, part).starts_with(name) {
                    let problem = format!("the {part} repeats the name of its argument");
                    found.push(trouble(format!("{at}/{key}/{index}/{part}"), problem, "write the value alone"));
                }
            }
        }
    }
    if let Some(url) = package.pointer("/transport/url").and_then(Value::as_str).filter(|url| !url.is_empty())
        && let Some(problem) = not_web(url, &["https://", "http://"]).or_else(|| undeclared(url, &known))
    {
        let remedy = "its {variables} are names of arguments or environment variables of the package";
        found.push(trouble(format!("{at}/transport/url"), problem, remedy));
    }
}

fn trouble(place: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Trouble {
    Trouble { place: place.into(), problem: problem.into(), remedy: remedy.into() }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A range, a wildcard or a moving name where one version is asked for.
fn inexact(version: &str) -> Option<String> {
    let trimmed = version.trim();
    let number = |part: &str| part.trim_start_matches('v').chars().next().is_some_and(|c| c.is_ascii_digit());
    let compared = trimmed.starts_with(['^', '~', '>', '<', '=']);
    let parts: Vec<_> = trimmed.split('-').next().unwrap_or_default().split('.').collect();
    let wild = parts.len() > 1 && parts.iter().any(|part| ["x", "X", "*"].contains(part));
    let joined =
        trimmed.contains("||") || trimmed.split_once(" - ").is_some_and(|(from, to)| number(from) && number(to));
    (trimmed == "latest" || compared || wild || joined).then(|| format!("{version:?} is no exact version"))
}

fn is_repository(url: &str, source: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else { return false };
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    let Some(path) = rest.strip_prefix(&format!("{source}.com/")) else { return false };
    let parts: Vec<_> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let word = |part: &&str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-')
    };
    let count = if source == "github" { parts.len() == 2 } else { parts.len() >= 2 };
    count && parts.iter().all(word)
}

fn not_web(url: &str, schemes: &[&str]) -> Option<String> {
    let rest = schemes.iter().find_map(|scheme| url.strip_prefix(scheme));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let good =
        host.is_some_and(|host| !host.is_empty()) && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    (!good).then(|| format!("{url:?} is no such URL"))
}

fn is_local(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default().split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().to_lowercase();
    let host = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or_default().to_owned() };
    host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host.starts_with("[::1]")
}

fn undeclared(url: &str, known: &[&str]) -> Option<String> {
    let names = url.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name));
    let unknown = names.into_iter().find(|name| !known.contains(name))?;
    Some(format!("{{{unknown}}} is declared nowhere"))
}

/// The bytes of a value as the registry writes it, which escapes what HTML would take for its own.
fn written(value: &Value) -> usize {
    let text = value.to_string();
    let escaped = text.chars().map(|c| match c {
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => "\\u0000".len(),
        other => other.len_utf8(),
    });
    escaped.sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        json!({
            "$schema": schema(),
            "name": "io.github.you/tools",
            "title": "Tools",
            "description": "Looks at a folder.",
            "version": "1.2.0",
            "websiteUrl": "https://example.com/tools",
            "repository": { "url": "https://github.com/you/tools", "source": "github", "subfolder": "a/b" },
            "icons": [{ "src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark" }],
            "packages": [
                {
                    "registryType": "npm", "identifier": "@you/tools", "version": "1.2.0",
                    "transport": { "type": "streamable-http", "url": "http://127.0.0.1:{port}/mcp" },
                    "packageArguments": [
                        { "type": "positional", "value": "serve" },
                        { "type": "positional", "valueHint": "port", "isRepeated": true },
                        { "type": "named", "name": "--root", "value": "{root}", "variables": { "root": { "format": "filepath" } } }
                    ],
                    "environmentVariables": [{ "name": "TOKEN", "isRequired": true, "isSecret": true }]
                },
                { "registryType": "oci", "identifier": "ghcr.io/you/tools:1.2.0", "transport": { "type": "stdio" } },
                {
                    "registryType": "mcpb", "identifier": "https://example.com/tools.mcpb", "fileSha256": "a".repeat(64),
                    "transport": { "type": "stdio" }
                }
            ],
            "remotes": [
                { "type": "streamable-http", "url": "https://{tenant}.example.com/mcp", "variables": { "tenant": { "isRequired": true } } },
                { "type": "sse", "url": "https://example.com/sse", "headers": [{ "name": "X-Key", "isSecret": true }] }
            ],
            "_meta": { PUBLISHER: { "dev.twodoor/toolsDigest": "sha256:0" }, "other": {} }
        })
    }

    #[test]
    fn a_file_of_every_part_is_taken() {
        assert_eq!(check(&good()), []);
        assert!(schema().ends_with("/server.schema.json"));
        let least = json!({ "$schema": schema(), "name": "a.b/cd", "description": "x", "version": "1.0.0" });
        assert_eq!(check(&least), []);
    }

    #[test]
    fn what_a_registry_refuses_is_found_with_its_place_and_remedy() {
        let long = "x".repeat(101);
        let fat = json!({ "x": "<".repeat(683) });
        let added = format!("/_meta/{}", PUBLISHER.replace('/', "~1"));
        for (place, value, at) in [
            ("/$schema", json!("https://example.com/old"), ""),
            ("/name", json!("tools"), ""),
            ("/name", json!("a.b/c/d"), ""),
            ("/name", json!("-a.b/cd"), ""),
            ("/name", json!("a.b/c d"), ""),
            ("/title", json!(" "), ""),
            ("/title", json!(long), ""),
            ("/description", json!(""), ""),
            ("/description", json!(long), ""),
            ("/description", json!(7), ""),
            ("/version", json!("latest"), ""),
            ("/version", json!("^1.2.0"), ""),
            ("/version", json!("1.x"), ""),
            ("/version", json!("1.2.0 - 2.0.0"), ""),
            ("/version", json!("1.2 || 1.3"), ""),
            ("/websiteUrl", json!("http://example.com"), ""),
            ("/repository/url", json!("https://github.com/you"), ""),
            ("/repository/url", json!("https://gitlab.com/you/tools"), ""),
            ("/repository/source", json!("elsewhere"), ""),
            ("/repository/subfolder", json!("../up"), ""),
            ("/repository/subfolder", json!("/a"), ""),
            ("/icons/0/src", json!("data:image/png;base64,"), ""),
            ("/icons/0/sizes/0", json!("big"), ""),
            ("/packages", json!({}), ""),
            ("/packages/0/version", json!("1.1.0"), ""),
            ("/packages/0/version", json!("latest"), ""),
            ("/packages/0/identifier", json!("a b"), ""),
            ("/packages/0/transport/type", json!("pigeon"), ""),
            ("/packages/0/transport/url", json!("http://127.0.0.1:{prot}/mcp"), ""),
            ("/packages/0/packageArguments/0", json!({ "type": "positional" }), ""),
            ("/packages/0/packageArguments/2/name", json!("--root DIR"), ""),
            ("/packages/0/packageArguments/2/value", json!("--root=/x"), ""),
            ("/packages/0/environmentVariables/0", json!({ "isSecret": true }), ""),
            ("/packages/0/environmentVariables/0/isSecret", json!("yes"), ""),
            ("/packages/1/identifier", json!("ghcr.io/you/tools"), ""),
            ("/packages/1/identifier", json!("ghcr.io/you/tools:latest"), ""),
            ("/packages/2/fileSha256", json!("ABC"), ""),
            ("/packages/2/identifier", json!("http://example.com/tools.mcpb"), ""),
            ("/packages/2/identifier", json!("https://example.com/tools.zip"), ""),
            ("/packages/1/transport", json!({ "type": "stdio", "url": "http://x" }), "/packages/1/transport/url"),
            ("/remotes/0/type", json!("stdio"), ""),
            ("/remotes/0/url", json!("https://{other}.example.com/mcp"), ""),
            ("/remotes/1/url", json!("http://example.com/sse"), ""),
            ("/remotes/1/url", json!("https://localhost:1/sse"), ""),
            ("/remotes/1/url", json!("https://127.0.0.1/sse"), ""),
            (added.as_str(), fat, ""),
            (added.as_str(), json!([]), ""),
        ] {
            let mut file = good();
            *file.pointer_mut(place).expect(place) = value.clone();
            let found = check(&file);
            let at = if at.is_empty() { place } else { at };
            assert!(found.iter().any(|trouble| trouble.place == at), "{place} {value}: {found:?}");
            assert!(
                found.iter().all(|trouble| !trouble.problem.is_empty() && !trouble.remedy.contains("documentation")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_spelt_as_before_is_found() {
        for (parent, key) in [
            ("", "name"),
            ("", "description"),
            ("", "version"),
            ("/repository", "source"),
            ("/packages/0", "transport"),
            ("/packages/0", "version"),
            ("/packages/2", "fileSha256"),
            ("/remotes/0", "url"),
            ("/icons/0", "src"),
        ] {
            let mut file = good();
            file.pointer_mut(parent).and_then(Value::as_object_mut).expect(parent).remove(key);
            let found = check(&file);
            assert!(found.iter().any(|trouble| trouble.place == parent), "{parent} {key}: {found:?}");
        }
        let mut file = good();
        file["packages"][0]["environmentVariables"][0]["is_secret"] = json!(true);
        file["_meta"]["registry_type"] = json!(1);
        let found = check(&file);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].place.as_str(), found[0].remedy.as_str()),
            ("/packages/0/environmentVariables/0/is_secret", "write isSecret")
        );
        let mut file = good();
        file["packages"][1]["version"] = json!("1.2.0");
        assert_eq!(check(&file)[0].place, "/packages/1/version");
    }

    #[test]
    fn no_value_makes_the_check_fail_otherwise_than_by_a_list() {
        for value in [
            json!(null),
            json!([]),
            json!(1),
            json!("x"),
            json!({ "packages": [null, [], {}], "remotes": [1], "_meta": 1 }),
        ] {
            assert!(!check(&value).is_empty());
        }
    }
}
