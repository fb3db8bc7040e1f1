//! `twodoor digest`: what the tools digest of a surface is, before anybody serves it.

use std::process::ExitCode;

use serde_json::json;
use twodoor::protocol::{Catalog, Revision, Tool};

use super::{SurfaceFile, exit, show};

/// Prints the digest of a surface and of each of its tools
#[derive(clap::Args)]
#[command(
    after_help = "The surface's digest is the one that clients receive and can recompute: SHA-256 over the canonical\n\
    JSON of the tools array as delivered. A tool's digest is that of its definition alone."
)]
pub(crate) struct Digest {
    #[command(flatten)]
    surface: SurfaceFile,
    /// Print one JSON object; its tools are in the order of the list
    #[arg(long)]
    json: bool,
}

impl Digest {
    pub(crate) fn run(self) -> ExitCode {
        let loaded = match show::load(&self.surface.path) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        let (name, version) = (loaded.name.clone(), loaded.version.to_string());
        let Ok(catalog) = Catalog::build(loaded.parts) else { return exit::surface() };
        let digests: Vec<_> = Revision::ALL.iter().map(|r| (r.name(), catalog.digest(*r).to_string())).collect();
        let one = digests.iter().all(|(_, digest)| Some(digest) == digests.first().map(|(_, d)| d));
        if self.json {
            let tool = |tool: &Tool| json!({ "name": tool.name.to_string(), "digest": tool.digest.to_string() });
            let tools: Vec<_> = catalog.tools().iter().map(tool).collect();
            let revisions: serde_json::Map<_, _> =
                digests.iter().map(|(r, d)| ((*r).to_owned(), d.as_str().into())).collect();
            let modern = catalog.digest(Revision::MODERN).to_string();
            let all = json!({ "surface": name, "version": version, "digest": modern, "revisions": revisions, "tools": tools });
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
        for tool in catalog.tools() {
            show::out(&format!("{}    {}\n", tool.digest, tool.name));
        }
        ExitCode::SUCCESS
    }
}
