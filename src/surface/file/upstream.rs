//! Another MCP server as written, and a tool of it.

use super::backend::BackendEntry;
use super::http::{self, HeaderEntry};
use crate::protocol::digest::Digest;
use crate::surface::arguments::Input;
use crate::surface::fields::Fields;
use crate::surface::lint::{http_url, upstream_digest, upstream_source, value_kind};
use crate::surface::outward::UpstreamEra;
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::tree::Entry;
use crate::surface::url::Url;

/// Keys of an upstream.
const KEYS: &[&str] = &["run", "url", "env", "headers", "allow_private", "digest", "era"];

/// Keys of a tool that is an upstream's, beside those of every tool.
pub(super) const TOOL_KEYS: &[&str] = &["upstream", "timeout", "cap"];

/// Another MCP server.
#[derive(Debug)]
pub(crate) struct UpstreamEntry<'t> {
    pub(crate) name: &'t At<String>,
    /// The program, if it is one.
    pub(crate) backend: BackendEntry<'t>,
    /// The address, if it has one.
    pub(crate) url: Option<At<Url>>,
    pub(crate) headers: Vec<HeaderEntry>,
    pub(crate) allow_private: bool,
    pub(crate) pin: Option<At<PinEntry>>,
    pub(crate) era: UpstreamEra,
}

/// What is said of an upstream's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinEntry {
    /// Any list is taken.
    Any,
    /// This one alone.
    One(Digest),
}

/// A tool of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamToolEntry {
    pub(crate) span: Span,
    pub(crate) upstream: String,
    pub(crate) tool: String,
}

/// Reads an upstream.
pub(super) fn read<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<UpstreamEntry<'t>> {
    upstream_source::check_name(&entry.key, findings);
    let fields = Fields::of(&entry.node, entry.key.span, "an upstream", KEYS, findings)?;
    upstream_source::check(&fields, &entry.key, findings);
    let mut backend = BackendEntry::of_command(&entry.key, Input::none(), &fields, findings);
    backend.whole = false;
    upstream_source::check_run(&backend, findings);
    let url = fields.get("url").and_then(|entry| http_url::read_fixed(&entry.node, findings));
    Some(UpstreamEntry {
        name: &entry.key,
        backend,
        url,
        headers: http::headers(&fields, findings),
        allow_private: fields.flag("allow_private", findings).is_some_and(|flag| flag.value),
        pin: upstream_digest::read(&fields, entry.key.span, findings),
        era: era(&fields, findings),
    })
}

fn era(fields: &Fields<'_>, findings: &mut Findings) -> UpstreamEra {
    let said = fields.text("era", findings);
    match said.as_ref().map(|said| said.value.as_str()) {
        Some("auto") | None => UpstreamEra::Auto,
        Some("legacy") => UpstreamEra::Legacy,
        Some("modern") => UpstreamEra::Modern,
        Some(_) => {
            said.iter().for_each(|said| value_kind::one_of("era", said, &["auto", "legacy", "modern"], findings));
            UpstreamEra::Auto
        }
    }
}

/// Reads `upstream` of a tool.
pub(super) fn read_tool(fields: &Fields<'_>, findings: &mut Findings) -> Option<UpstreamToolEntry> {
    let said = fields.text("upstream", findings)?;
    match said.value.split_once('/') {
        Some((upstream, tool)) if !upstream.is_empty() && !tool.is_empty() => {
            Some(UpstreamToolEntry { span: said.span, upstream: upstream.to_owned(), tool: tool.to_owned() })
        }
        _ => {
            upstream_source::not_a_tool(&said, findings);
            None
        }
    }
}
