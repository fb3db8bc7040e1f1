//! The file of who may call over HTTP: tokens by their hashes, and where others are given out.
//!
//! Promises: read as strictly as a surface file, with every problem at its place; it holds no token, so
//! whoever reads it can call nothing. Used by the command line.

use std::collections::HashSet;
use std::path::Path;

use super::fields::Fields;
use super::lint::{hidden_characters, value_kind};
use super::problem::{Findings, Problems, Rule};
use super::source::{self, At, Span};
use super::tree::{self, Node};
use crate::protocol::Digest;
use crate::protocol::catalog::is_scope;
use crate::protocol::json::shortened;

/// No name of a caller.
pub(crate) const NAME: Rule = Rule::error("caller-name", "a caller's name is 1 to 64 of A-Z a-z 0-9 _ . - @");
/// No hash of a token.
pub(crate) const HASH: Rule =
    Rule::error("token-hash", "a token's `sha256` is 64 hex digits, and each token stands once");
/// No scope.
pub(crate) const SCOPE: Rule =
    Rule::error("token-scope", "a scope is 1 to 128 visible ASCII characters, without quotes and backslashes");
/// No URI of a server.
pub(crate) const URI: Rule = Rule::error(
    "auth-uri",
    "an authorization server is an https URI, a resource an http or https URI, without query and fragment",
);

const KEYS: &[&str] = &["resource", "authorization_servers", "scopes_supported", "tokens"];
const TOKEN_KEYS: &[&str] = &["name", "sha256", "scopes"];

/// Who may call over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callers {
    /// The endpoint's URI as clients have it, if it is not that of the listener.
    pub resource: Option<String>,
    /// Where tokens are given out.
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use takes.
    pub scopes_supported: Vec<String>,
    /// The tokens.
    pub tokens: Vec<CallerToken>,
}

/// A token that a caller has. A caller may have several, so that one can be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerToken {
    /// The caller's name.
    pub name: String,
    /// The SHA-256 of the token's text.
    pub sha256: Digest,
    /// What it allows.
    pub scopes: Vec<String>,
}

impl Callers {
    /// Reads and checks a file. An error holds every problem of it.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        let opened = source::open_as(path, "make it: `twodoor token` prints a token and its line for the file");
        let mut findings = opened.map_err(Findings::into_problems)?.findings;
        match read(&mut findings) {
            Some(callers) if !findings.has_errors() => Ok(callers),
            _ => Err(findings.into_problems()),
        }
    }
}

fn read(findings: &mut Findings) -> Option<Callers> {
    if !hidden_characters::check_source(findings) {
        return None;
    }
    let root = tree::parse(findings)?;
    hidden_characters::check_tree(&root, findings);
    let fields = Fields::of(&root, Span::START, "a file of callers", KEYS, findings)?;
    fields.require("tokens", "write `tokens:` and a list; `twodoor token` prints an entry of it", findings);
    let resource = fields.text("resource", findings);
    let servers = fields.texts("authorization_servers", findings);
    let both = [("http://", "an http or https"), ("https://", "an https")];
    for (uri, schemes) in resource.iter().map(|uri| (uri, &both[..])).chain(servers.iter().map(|uri| (uri, &both[1..])))
    {
        check_uri(uri, schemes, findings);
    }
    let tokens = fields.get("tokens").map(|entry| &entry.node);
    let list = tokens.and_then(Node::as_list);
    if let (Some(node), None) = (tokens, list) {
        value_kind::report("tokens", node, "a list of tokens", findings);
    }
    let mut seen = HashSet::new();
    Some(Callers {
        resource: resource.map(|uri| uri.value),
        authorization_servers: servers.into_iter().map(|uri| uri.value).collect(),
        scopes_supported: scopes("scopes_supported", &fields, findings),
        tokens: list.unwrap_or_default().iter().filter_map(|node| token(node, &mut seen, findings)).collect(),
    })
}

fn token(node: &Node, seen: &mut HashSet<Digest>, findings: &mut Findings) -> Option<CallerToken> {
    let fields = Fields::of(node, node.span, "a token", TOKEN_KEYS, findings)?;
    fields.require("name", "write whose it is, such as `name: alice`", findings);
    fields.require("sha256", "write the hash that `twodoor token` prints", findings);
    let scopes = scopes("scopes", &fields, findings);
    let name = fields.text("name", findings);
    let hash = fields.text("sha256", findings);
    let name = name.filter(|name| {
        let fits = is_name(&name.value);
        if !fits {
            let message = format!("{:?} is no name of a caller", shortened(&name.value, 40));
            findings.report(&NAME, name.span, message, "use 1 to 64 of A-Z a-z 0-9 _ . - @");
        }
        fits
    });
    // What stands here may be a token, so it is not said again.
    let sha256 = hash.and_then(|hash| {
        let hex = hash.value.bytes().all(|b| b.is_ascii_hexdigit());
        let digest = format!("sha256:{}", hash.value).parse::<Digest>().ok().filter(|_| hex);
        match digest {
            None => {
                let remedy = "write the 64 hex digits that `twodoor token` prints beside the token, never the token";
                findings.report(&HASH, hash.span, "this is no SHA-256", remedy);
            }
            Some(digest) if !seen.insert(digest) => {
                let remedy = "make a token for each caller with `twodoor token`";
                findings.report(&HASH, hash.span, "this token stands here a second time", remedy);
            }
            Some(_) => {}
        }
        digest
    });
    Some(CallerToken { name: name?.value, sha256: sha256?, scopes })
}

/// Whether a text can be a caller's name.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-@".contains(&b))
}

fn scopes(key: &str, fields: &Fields<'_>, findings: &mut Findings) -> Vec<String> {
    let scopes = fields.texts(key, findings);
    for scope in scopes.iter().filter(|scope| !is_scope(&scope.value)) {
        let message = format!("{:?} is no scope", shortened(&scope.value, 40));
        findings.report(&SCOPE, scope.span, message, "write a list of words, such as `[read, write]`");
    }
    scopes.into_iter().map(|scope| scope.value).collect()
}

fn check_uri(uri: &At<String>, schemes: &[(&str, &str)], findings: &mut Findings) {
    let rest = schemes.iter().find_map(|(scheme, _)| uri.value.strip_prefix(scheme));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let plain = uri.value.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\?#@<>^`{|}".contains(&b));
    if !plain || host.is_none_or(|host| host.is_empty() || host.starts_with(':')) {
        let kind = schemes.first().map_or("a", |(_, kind)| kind);
        let message =
            format!("{:?} is not {kind} URI with a host, without query and fragment", shortened(&uri.value, 80));
        findings.report(&URI, uri.span, message, "write it whole, such as https://auth.example.org");
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;
    use crate::protocol::digest;

    fn read_text(text: &str) -> Result<Callers, Vec<(&'static str, usize)>> {
        let mut findings = Findings::new(Source::new("auth.yaml".into(), text.to_owned()));
        let callers = read(&mut findings).filter(|_| !findings.has_errors());
        let problems = findings.into_problems();
        assert!(problems.list().iter().all(|problem| !problem.remedy.is_empty()));
        callers.ok_or_else(|| problems.list().iter().map(|problem| (problem.rule, problem.line)).collect())
    }

    fn hash(token: &str) -> String {
        digest::of_bytes(token.as_bytes()).to_string().split_off("sha256:".len())
    }

    #[test]
    fn tokens_are_read_by_their_hashes() {
        let (a, b) = (hash("a"), hash("b").to_uppercase());
        let yaml = format!(
            "resource: https://mcp.example.org/mcp\nauthorization_servers: [https://auth.example.org/a]\n\
            scopes_supported: [read]\ntokens:\n  - {{ name: alice, sha256: {a}, scopes: [read, 'files:write'] }}\n  \
            - name: alice\n    sha256: \"{b}\"\n"
        );
        let callers = read_text(&yaml).unwrap();
        assert_eq!(callers.resource.as_deref(), Some("https://mcp.example.org/mcp"));
        assert_eq!(callers.authorization_servers, ["https://auth.example.org/a"]);
        assert_eq!(callers.scopes_supported, ["read"]);
        let token = |token: &str, scopes: &[&str]| CallerToken {
            name: "alice".to_owned(),
            sha256: digest::of_bytes(token.as_bytes()),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        };
        assert_eq!(callers.tokens, [token("a", &["read", "files:write"]), token("b", &[])]);
        let json = format!(r#"{{"authorization_servers": [], "tokens": [{{"name": "x", "sha256": "{a}"}}]}}"#);
        assert_eq!(read_text(&json).unwrap().tokens.len(), 1);
        assert_eq!(read_text("tokens: []\n").unwrap().tokens, []);
    }

    #[test]
    fn every_problem_of_a_file_of_callers_is_told_at_its_line() {
        let good = hash("a");
        let short = good.clone().split_off(1);
        let entry = |text: &str| format!("tokens:\n  - {{ {text} }}\n");
        let of = |name: &str, sha256: &str| entry(&format!("name: {name}, sha256: {sha256}"));
        for (text, expected) in [
            (String::new(), vec![("yaml-syntax", 1)]),
            ("a".to_owned(), vec![("value-kind", 1)]),
            ("{}".to_owned(), vec![("missing-key", 1)]),
            ("tokens: x".to_owned(), vec![("value-kind", 1)]),
            ("tokens: [x]".to_owned(), vec![("value-kind", 1)]),
            ("tokens: []\ntokens: []".to_owned(), vec![("yaml-duplicate-key", 2)]),
            ("tokens: []\ntoken: x".to_owned(), vec![("unknown-key", 2)]),
            (entry("scopes: []"), vec![("missing-key", 2), ("missing-key", 2)]),
            (entry(&format!("name: a, sha256: {good}, token: t")), vec![("unknown-key", 2)]),
            (of("a b", &good), vec![("caller-name", 2)]),
            (of("ä", &good), vec![("caller-name", 2)]),
            (of("\"\"", &good), vec![("caller-name", 2)]),
            (of("a", &short), vec![("token-hash", 2)]),
            (of("a", &format!("sha256:{good}")), vec![("token-hash", 2)]),
            (of("a", &format!("\"+{short}\"")), vec![("token-hash", 2)]),
            (of("a", "secret"), vec![("token-hash", 2)]),
            (entry(&format!("name: a, sha256: {good}, scopes: 'a b'")), vec![("token-scope", 2)]),
            (entry(&format!("name: a, sha256: {good}, scopes: {{a: b}}")), vec![("value-kind", 2)]),
            ("tokens: []\nscopes_supported: ['a\"']".to_owned(), vec![("token-scope", 2)]),
            ("tokens: []\nauthorization_servers: ['http://a.example']".to_owned(), vec![("auth-uri", 2)]),
            ("tokens: []\nauthorization_servers: ['https://']".to_owned(), vec![("auth-uri", 2)]),
            ("tokens: []\nresource: 'https://a.example/x?y'".to_owned(), vec![("auth-uri", 2)]),
            ("tokens: []\nresource: mcp.example.org".to_owned(), vec![("auth-uri", 2)]),
            ("tokens: []\n# \u{202e}\n".to_owned(), vec![("hidden-characters", 2)]),
        ] {
            assert_eq!(read_text(&text), Err(expected), "{text}");
        }
        let twice = format!("tokens:\n  - {{ name: a, sha256: {good} }}\n  - {{ name: b, sha256: {good} }}\n");
        assert_eq!(read_text(&twice), Err(vec![("token-hash", 3)]));
    }

    #[test]
    fn what_may_be_a_token_is_not_said_again() {
        let text = "tokens:\n  - { name: a, sha256: my-secret }\n";
        let mut findings = Findings::new(Source::new("auth.yaml".into(), text.to_owned()));
        read(&mut findings);
        let problems = findings.into_problems();
        assert!(
            !serde_json::to_string(&problems).unwrap().contains("my-secret")
                && !problems.to_string().contains("my-secret")
        );
    }
}
