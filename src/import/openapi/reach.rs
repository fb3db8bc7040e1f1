//! How the server of an operation is reached: its address, and what authorizes a call.
//!
//! Promises: a secret is named as a variable of the server's environment, in a header alone; an address without a
//! host is refused, not guessed.

use super::Tool;
use super::document::Document;
use super::operation::Operation;
use crate::import::name;
use crate::import::sheet::ImportError;
use crate::protocol::Json;
use crate::protocol::json::shortened;

impl Tool {
    pub(super) fn secure(&mut self, document: &Document, operation: &Operation, surface: &str) {
        let Some(Json::Array(ways)) = &operation.security else { return };
        let schemes = document.get("components").and_then(|components| components.get("securitySchemes"));
        let is_open = ways.is_empty() || ways.iter().any(|way| way.as_object().is_some_and(<[_]>::is_empty));
        let way = ways.iter().find(|way| way.as_object().is_some_and(|names| !names.is_empty()));
        let Some(way) = way.and_then(Json::as_object) else { return };
        if is_open {
            self.notes.push("decide: it can be called without the secret below.".to_owned());
        }
        for (scheme, scopes) in way {
            let found = schemes.and_then(|schemes| schemes.get(scheme)).map(|found| document.resolve(found));
            let Some(Ok(found)) = found else {
                self.notes
                    .push(format!("decide: how it is authorized ({}) is not in the document.", shortened(scheme, 60)));
                continue;
            };
            let told = |key: &str| found.get(key).and_then(Json::as_str).unwrap_or_default();
            let variable = |what: &str| name::of_variable(&[surface, what]);
            let (header, value, note) = match (told("type"), told("scheme").to_ascii_lowercase().as_str(), told("in")) {
                ("http", "basic", _) => (
                    "Authorization".to_owned(),
                    format!("Basic ${{{}}}", variable("basic")),
                    Some("base64 of user:password".to_owned()),
                ),
                ("http", "bearer", _) => {
                    ("Authorization".to_owned(), format!("Bearer ${{{}}}", variable("token")), None)
                }
                ("oauth2" | "openIdConnect", _, _) => {
                    let scopes: Vec<&str> = match scopes {
                        Json::Array(scopes) => scopes.iter().filter_map(Json::as_str).take(10).collect(),
                        _ => Vec::new(),
                    };
                    let scopes = if scopes.is_empty() { String::new() } else { format!(" with {}", scopes.join(", ")) };
                    let note = format!("an access token{scopes}; it is not fetched or renewed here");
                    ("Authorization".to_owned(), format!("Bearer ${{{}}}", variable("token")), Some(note))
                }
                ("apiKey", _, "header") if !told("name").is_empty() => {
                    (told("name").to_owned(), format!("${{{}}}", variable("key")), None)
                }
                (kind, _, place) => {
                    let shown = format!("{kind} {place}");
                    self.notes.push(format!(
                        "decide: it is authorized by {} ({}), which a surface cannot send: secrets stand in headers alone.",
                        shortened(scheme, 60),
                        shortened(shown.trim(), 60)
                    ));
                    continue;
                }
            };
            if let Some(note) = note {
                self.notes.push(format!("The secret in {header}: {note}."));
            }
            if !self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(&header)) {
                self.headers.push((header, value));
            }
        }
    }

    /// Finds where the request goes.
    pub(super) fn place(
        &mut self,
        document: &Document,
        operation: &Operation,
        given: Option<&str>,
    ) -> Result<(), ImportError> {
        let of_document = match document.get("servers") {
            Some(Json::Array(servers)) => servers.first(),
            _ => None,
        };
        let declared = operation.server.as_ref().or(of_document);
        let server = match (given, declared) {
            (Some(given), _) => given.to_owned(),
            (None, Some(declared)) => filled(declared),
            (None, None) => "/".to_owned(),
        };
        let is_whole = |server: &str| server.starts_with("https://") || server.starts_with("http://");
        if !is_whole(&server) {
            let shown = shortened(&server, 80);
            // The others have a server: this one alone is left out.
            if of_document.is_some_and(|declared| is_whole(&filled(declared))) {
                self.refused.get_or_insert(format!("its server is no http or https address: {shown}"));
                return Ok(());
            }
            let problem = format!("the document does not say which server: {shown}");
            return Err(ImportError::unreadable(problem, "say it with --server https://HOST"));
        }
        self.allow_private = is_private(&server);
        if server.contains(['{', '}']) {
            self.refused.get_or_insert("the server's address has a variable without a value: give --server".to_owned());
        }
        let mut path = self.path.replace('{', "%7B").replace('}', "%7D").replace(' ', "%20");
        if path.contains("%7B") {
            self.refused.get_or_insert("its path has a variable that no parameter names".to_owned());
        }
        if let Some((before, _)) = path.split_once(['?', '#']) {
            self.notes.push("decide: what stood behind ? or # in its path is left out.".to_owned());
            path = before.to_owned();
        }
        let path = path.replace('\u{1}', "{").replace('\u{2}', "}");
        self.url = format!("{}/{}", server.trim_end_matches('/'), path.trim_start_matches('/'));
        Ok(())
    }
}

/// A server's address with the defaults of its variables.
fn filled(server: &Json) -> String {
    let mut url = server.get("url").and_then(Json::as_str).unwrap_or("/").to_owned();
    for (name, variable) in server.get("variables").and_then(Json::as_object).unwrap_or_default() {
        if let Some(default) = variable.get("default").and_then(Json::as_str) {
            url = url.replace(&format!("{{{name}}}"), default);
        }
    }
    url
}

/// Whether an address is one that is refused without `allow_private`, as far as its text tells.
pub(in crate::import) fn is_private(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, _)) => inside,
        None => host.split(':').next().unwrap_or_default(),
    };
    let lower = host.to_ascii_lowercase();
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(v4)) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(v6)) => {
            v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified()
        }
        Err(_) => lower == "localhost" || lower.ends_with(".localhost"),
    }
}
