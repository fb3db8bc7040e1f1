//! What is asked of servers that others run.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{DEFAULT_CAP, declare_argument, run};
use crate::surface::declaration::{Element, Output};
use crate::surface::file::{
    BackendEntry, HeaderEntry, HttpEntry, PinEntry, SurfaceFile, UpstreamEntry, UpstreamToolEntry,
};
use crate::surface::outward::{DeclaredHeader, DeclaredUpstream, HttpRequest, UpstreamTool, UpstreamWay};
use crate::surface::resolve::ResolvedBackend;
use crate::surface::template;

/// The upstreams of a file, by name; `resolved` are their paths.
pub(super) fn upstreams(
    file: &SurfaceFile<'_>,
    resolved: Vec<ResolvedBackend>,
    root: &Path,
) -> Option<HashMap<String, Arc<DeclaredUpstream>>> {
    let declared = file.upstreams.iter().zip(resolved).map(|(entry, paths)| {
        let declared = upstream(entry, paths, root)?;
        Some((declared.name.clone(), Arc::new(declared)))
    });
    declared.collect()
}

fn upstream(entry: &UpstreamEntry<'_>, paths: ResolvedBackend, root: &Path) -> Option<DeclaredUpstream> {
    let way = match &entry.url {
        Some(url) => {
            let url = &url.value;
            let segments: Option<Vec<&str>> = url.segments.iter().map(template::literal).collect();
            let query = url.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
            UpstreamWay::Url {
                origin: url.origin.clone(),
                path: format!("/{}{query}", segments?.join("/")),
                headers: headers(&entry.headers),
                allow_private: entry.allow_private,
            }
        }
        None => {
            let run = run(&entry.backend, paths, root)?;
            let mut words = run.argv.iter().map(|element| match element {
                Element::One(word) => template::literal(word).map(str::to_owned),
                Element::Group(_) => None,
            });
            UpstreamWay::Program {
                program: words.next()??.into(),
                arguments: words.collect::<Option<_>>()?,
                env: run.env,
                cwd: run.cwd,
            }
        }
    };
    let pin = match entry.pin.as_ref()?.value {
        PinEntry::Any => None,
        PinEntry::One(digest) => Some(digest),
    };
    Some(DeclaredUpstream { name: entry.name.value.clone(), way, pin, era: entry.era })
}

pub(super) fn upstream_tool(
    backend: &BackendEntry<'_>,
    entry: &UpstreamToolEntry,
    upstreams: &HashMap<String, Arc<DeclaredUpstream>>,
) -> Option<UpstreamTool> {
    Some(UpstreamTool {
        upstream: Arc::clone(upstreams.get(&entry.upstream)?),
        tool: entry.tool.clone(),
        arguments: backend.input.arguments.iter().map(declare_argument).collect(),
        cap: backend.cap.unwrap_or(DEFAULT_CAP),
        timeout: backend.timeout,
    })
}

pub(super) fn request(backend: &BackendEntry<'_>, entry: &HttpEntry) -> HttpRequest {
    let url = &entry.url.value;
    HttpRequest {
        verb: entry.verb.value,
        origin: url.origin.clone(),
        segments: url.segments.clone(),
        fixed_query: url.query.clone(),
        query: entry.query.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect(),
        headers: headers(&entry.headers),
        body: entry.body.clone(),
        arguments: backend.input.arguments.iter().map(declare_argument).collect(),
        allow_private: entry.allow_private,
        output: backend.output.as_ref().map_or(Output::Text, |output| output.value),
        cap: backend.cap.unwrap_or(DEFAULT_CAP),
        timeout: backend.timeout,
    }
}

fn headers(entries: &[HeaderEntry]) -> Vec<DeclaredHeader> {
    let header =
        |entry: &HeaderEntry| DeclaredHeader { name: entry.name.value.clone(), value: entry.value.value.clone() };
    entries.iter().map(header).collect()
}
