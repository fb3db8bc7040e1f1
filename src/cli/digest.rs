//! `twodoor digest`: what the tools digest of a surface is, before anybody serves it.

use std::fs::{File, Permissions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use twodoor::protocol::digest::{self, Foreign};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{Catalog, Json, Revision, Tool};
use twodoor::surface::lock;

use super::{SurfaceFile, exit, show};

/// Prints the digest of a surface and of each of its tools
#[derive(clap::Args)]
#[command(
    after_help = "The surface's digest is the one that clients receive and can recompute: SHA-256 over the canonical\n\
    JSON of the tools array as delivered. A tool's digest is that of its definition alone.\n\n\
    With --lock it is written to NAME.lock beside NAME.yaml; where that file stands, other tools are not served.\n\
    With --list, one line for each canonical form of JSON in use, or one for both where they agree.\n\n\
    Examples:\n  twodoor digest examples/git.yaml\n  twodoor digest --list received.json"
)]
pub(crate) struct Digest {
    #[command(flatten)]
    surface: SurfaceFile,
    /// Print one JSON object; its tools are in the order of the list
    #[arg(long)]
    json: bool,
    /// Digest a tools array, or a tools/list result, from this file instead of a surface; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    list: Option<PathBuf>,
    /// Write the digest to the lock beside the surface file: `serve` then serves these tools alone
    #[arg(long, conflicts_with = "list")]
    lock: bool,
}

impl Digest {
    pub(crate) fn run(self) -> ExitCode {
        if let Some(list) = &self.list {
            return match received(list) {
                Ok(found) => self.show_received(found),
                Err(problem) => {
                    show::error(&problem, "give one tools array, or a tools/list result, as a client received it");
                    exit::usage()
                }
            };
        }
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

    fn show_received(&self, found: Foreign) -> ExitCode {
        let forms = [("sorted keys", found.sorted_keys), ("RFC 8785", found.rfc8785)];
        let known: Vec<_> = forms.iter().filter_map(|(form, digest)| Some((form, (*digest)?.to_string()))).collect();
        if self.json {
            let said = |digest: Option<digest::Digest>| digest.map(|digest| digest.to_string());
            let both = json!({ "sortedKeys": said(found.sorted_keys), "rfc8785": said(found.rfc8785) });
            show::out(&format!("{both:#}\n"));
            return ExitCode::SUCCESS;
        }
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
        ExitCode::SUCCESS
    }
}

/// Most bytes of a list that is read; clients receive no longer ones.
const LIST_BYTES: u64 = 16 * 1024 * 1024;

/// The digests of a list that a client received.
fn received(path: &Path) -> Result<Foreign, String> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let source: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| format!("{name}: {error}"))?)
    };
    let mut text = Vec::new();
    source.take(LIST_BYTES + 1).read_to_end(&mut text).map_err(|error| format!("{name}: {error}"))?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LIST_BYTES) {
        return Err(format!("{name}: more than {LIST_BYTES} bytes"));
    }
    let list = Json::parse(&text, &JsonLimits::default()).map_err(|error| format!("{name}: {error}"))?;
    let tools = list.get("tools").unwrap_or(&list);
    if !matches!(tools, Json::Array(_)) {
        return Err(format!("{name}: it is no array of tools, and has none under \"tools\""));
    }
    Ok(digest::of_foreign(tools))
}

/// Puts a file in the place of another in one step, so that whoever reads finds one of them whole.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    write_as(path, text.as_bytes(), None)
}

/// The same, with these permissions from the first byte on.
pub(super) fn write_as(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = File::create_new(&new).and_then(|mut file| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| std::fs::rename(&new, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    replaced
}
