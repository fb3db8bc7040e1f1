//! `twodoor digest`: what the tools digest of a surface is, before anybody serves it.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use twodoor::protocol::digest::tool::{OfTool, of_surface, of_tool};
use twodoor::protocol::digest::{self, Foreign};
use twodoor::protocol::json::{shortened, visible};
use twodoor::protocol::{Catalog, Json, Revision};

use super::{SurfaceFile, exit, listed, lock, show};

/// Prints the digest of a surface and of each of its tools
#[derive(clap::Args)]
#[command(
    after_help = "The surface's digest is the one that clients receive and can recompute: SHA-256 over the canonical \
    JSON of the tools array as delivered. A tool's digest is that of what its callers rely on; --tools shows all of its \
    digests: of its words, of its shape, in the form that MCP Hangar pins, and of the definition as delivered.\n\n\
    With --list, one line for each canonical form of JSON in use, or one for both where they agree.\n\n\
    Examples:\n  twodoor digest examples/git.yaml\n  twodoor digest --list received.json --tools"
)]
pub(crate) struct Digest {
    #[command(flatten)]
    surface: SurfaceFile,
    /// Print one JSON object; its tools are in the order of the list
    #[arg(long)]
    json: bool,
    /// Print every digest of each tool
    #[arg(long)]
    tools: bool,
    /// Digest a tools array, or a tools/list result, from this file instead of a surface; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    list: Option<PathBuf>,
    /// Write the lock beside the surface file first, as `twodoor lock` does
    #[arg(long, conflicts_with = "list")]
    lock: bool,
}

impl Digest {
    pub(crate) fn run(self) -> ExitCode {
        if let Some(list) = &self.list {
            return match listed::received(list) {
                Ok(found) => self.show_received(found.digest, &found.tools.unwrap_or_default()),
                Err(stop) => {
                    stop.show();
                    exit::usage()
                }
            };
        }
        let loaded = match show::load(&self.surface.path) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        let (name, version) = (loaded.name.clone(), loaded.version.to_string());
        let Ok(catalog) = Catalog::build(loaded.parts.clone()) else { return exit::surface() };
        if self.lock
            && let Err(code) = lock::write(&loaded, &catalog, false)
        {
            return code;
        }
        let digests: Vec<_> = Revision::ALL.iter().map(|r| (r.name(), catalog.digest(*r).to_string())).collect();
        let one = digests.iter().all(|(_, digest)| Some(digest) == digests.first().map(|(_, d)| d));
        let tools = catalog.definitions(Revision::MODERN);
        if self.json {
            let revisions: serde_json::Map<_, _> =
                digests.iter().map(|(r, d)| ((*r).to_owned(), d.as_str().into())).collect();
            let contract = of_surface(&name, &version, loaded.parts.instructions.as_deref(), &tools);
            let all = json!({
                "surface": name, "version": version, "digest": catalog.digest(Revision::MODERN).to_string(),
                "revisions": revisions, "contract": said(contract), "tools": as_json(&tools),
            });
            show::out(&format!("{all:#}\n"));
            return ExitCode::SUCCESS;
        }
        match digests.first() {
            Some((_, digest)) if one => show::out(&format!("{digest}  {name} {version}\n")),
            _ => {
                for (revision, digest) in &digests {
                    show::out(&format!("{digest}  {name} {version} for {revision}\n"));
                }
            }
        }
        self.show_tools(&tools, true);
        ExitCode::SUCCESS
    }

    /// Every digest of each tool if that was asked for; else one of each, if `each`.
    fn show_tools(&self, tools: &[Json], each: bool) {
        if !self.tools && !each {
            return;
        }
        for (tool, name) in tools.iter().zip(names(tools)) {
            let of = of_tool(tool);
            let text = |digest: Option<digest::Digest>| digest.map_or_else(|| "none".to_owned(), |d| d.to_string());
            if self.tools {
                show::out(&format!("{name}\n"));
                for (what, digest) in parts(&of) {
                    show::out(&format!("  {what:<11}{}\n", text(digest)));
                }
                show::out(&format!("  {:<11}{}\n", "definition", listed::shown(of.definition)));
            } else {
                show::out(&format!("{}    {name}\n", text(of.tool)));
            }
        }
    }

    fn show_received(&self, found: Foreign, tools: &[Json]) -> ExitCode {
        if self.json {
            let both = json!({ "sortedKeys": said(found.sorted_keys), "rfc8785": said(found.rfc8785), "tools": as_json(tools) });
            show::out(&format!("{both:#}\n"));
            return ExitCode::SUCCESS;
        }
        let forms = [("sorted keys", found.sorted_keys), ("RFC 8785", found.rfc8785)];
        let known: Vec<_> = forms.iter().filter_map(|(form, digest)| Some((form, (*digest)?.to_string()))).collect();
        match known.as_slice() {
            [(_, one), (_, other)] if one == other => show::out(&format!("{one}\n")),
            [] => {
                show::error(
                    "the list holds a number that no canonical form can write",
                    "write numbers within ±1.8e308",
                );
                return exit::usage();
            }
            known => known.iter().for_each(|(form, digest)| show::out(&format!("{digest}  {form}\n"))),
        }
        self.show_tools(tools, false);
        ExitCode::SUCCESS
    }
}

fn names(tools: &[Json]) -> Vec<String> {
    let name = |name: String| visible(shortened(&name, 128).chars());
    twodoor::protocol::compare::names(tools).into_iter().map(name).collect()
}

fn parts(of: &OfTool) -> [(&'static str, Option<digest::Digest>); 4] {
    [("tool", of.tool), ("wording", of.wording), ("shape", of.shape), ("gateway", of.gateway)]
}

fn said(digest: Option<digest::Digest>) -> Option<String> {
    digest.map(|digest| digest.to_string())
}

fn as_json(tools: &[Json]) -> Vec<Value> {
    let one = |(tool, name): (&Json, String)| {
        let of = of_tool(tool);
        json!({
            "name": name, "digest": said(of.tool), "wording": said(of.wording), "shape": said(of.shape), "gateway": said(of.gateway),
            "definition": { "sortedKeys": said(of.definition.sorted_keys), "rfc8785": said(of.definition.rfc8785) },
        })
    };
    tools.iter().zip(names(tools)).map(one).collect()
}
