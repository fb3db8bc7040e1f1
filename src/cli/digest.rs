//! `twodoor digest`: what the tools digest of a surface is, before anybody serves it.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use twodoor::protocol::{Catalog, Revision, Tool};
use twodoor::surface::lock;

use super::{SurfaceFile, exit, show};

/// Prints the digest of a surface and of each of its tools
#[derive(clap::Args)]
#[command(
    after_help = "The surface's digest is the one that clients receive and can recompute: SHA-256 over the canonical\n\
    JSON of the tools array as delivered. A tool's digest is that of its definition alone.\n\n\
    With --lock it is written to NAME.lock beside NAME.yaml; where that file stands, other tools are not served."
)]
pub(crate) struct Digest {
    #[command(flatten)]
    surface: SurfaceFile,
    /// Print one JSON object; its tools are in the order of the list
    #[arg(long)]
    json: bool,
    /// Write the digest to the lock beside the surface file: `serve` then serves these tools alone
    #[arg(long)]
    lock: bool,
}

impl Digest {
    pub(crate) fn run(self) -> ExitCode {
        let loaded = match show::load(&self.surface.path) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        let (name, version) = (loaded.name.clone(), loaded.version.to_string());
        let Ok(catalog) = Catalog::build(loaded.parts) else { return exit::surface() };
        if self.lock
            && let Err(error) = write(&lock::path_of(&self.surface.path), &lock::text(&catalog))
        {
            let path = lock::path_of(&self.surface.path);
            show::error(&format!("{} cannot be written: {error}", path.display()), "write it where you may");
            return exit::differs();
        }
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

/// Puts a file in the place of another in one step, so that whoever reads finds one of them whole.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = File::create_new(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| std::fs::rename(&new, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    replaced
}
