//! `twodoor freeze`: the version of a surface that is to be served on, whatever becomes of the surface.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use twodoor::protocol::{Catalog, Revision};
use twodoor::surface::frozen::{Frozen, Label};
use twodoor::surface::{LoadedSurface, Surface, lock};
use twodoor::transport::http::is_path_safe;

use super::lock::write_as;
use super::{SurfaceFile, exit, show};

/// Keeps a surface as it is now, to be served beside what it becomes
#[derive(clap::Args)]
#[command(
    after_help = "Of NAME.yaml it writes NAME@LABEL.yaml, byte for byte, and its lock NAME@LABEL.lock. From its next start on \
    `twodoor serve NAME.yaml --http ADDR` serves both, the frozen one at /mcp/SURFACE@LABEL; it refuses to start if the file \
    is not what its lock allows. To end a frozen version remove its two files.\n\n\
    Exits with 1 if another version is frozen under this label already.\n\n\
    Examples:\n  twodoor freeze ops.yaml\n  twodoor freeze ops.yaml --as 2026-spring"
)]
pub(crate) struct Freeze {
    #[command(flatten)]
    surface: SurfaceFile,
    /// What follows the @ in its name and its path; by default the major version, and the minor one of 0
    #[arg(long = "as", value_name = "LABEL", value_parser = read_label)]
    label: Option<Label>,
    /// Print what was written as one JSON object
    #[arg(long)]
    json: bool,
}

fn read_label(text: &str) -> Result<Label, &'static str> {
    Label::new(text).ok_or("expected 1 to 64 of A-Z a-z 0-9 _ . -")
}

impl Freeze {
    pub(crate) fn run(self) -> ExitCode {
        let path = &self.surface.path;
        match Frozen::of(path) {
            Ok(None) => {}
            Ok(Some(Frozen { base, .. })) => {
                let problem = format!("{} is frozen already", path.display());
                show::error(
                    &problem,
                    &format!("to freeze another version name the surface itself, {}", base.display()),
                );
                return exit::usage();
            }
            Err(problems) => {
                show::problems_on_stderr(&problems);
                return exit::surface();
            }
        }
        let loaded = match show::load(path) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        // Only now: a surface that loads is a file that can be read without waiting.
        let (Ok(text), Ok(about)) = (std::fs::read(path), std::fs::metadata(path)) else {
            show::error(&format!("{} cannot be read", path.display()), "name a file that you can read");
            return exit::surface();
        };
        if !Surface::load(path).is_ok_and(|again| again == loaded) {
            show::error(&format!("{} was written meanwhile", path.display()), "try again");
            return exit::differs();
        }
        let LoadedSurface { name, version, parts, .. } = loaded;
        let Ok(catalog) = Catalog::build(parts) else { return exit::surface() };
        if let Err(problems) = lock::check(path, &catalog, lock::Mode::IfThere) {
            show::problems_on_stderr(&problems);
            return exit::surface();
        }
        let Some(label) = self.label.or_else(|| Label::of(&version)) else { return exit::usage() };
        let frozen = Frozen { base: path.clone(), label };
        let served = format!("{name}@{}", frozen.label);
        let file = frozen.path();
        if Frozen::of(&file).ok().flatten().as_ref() != Some(&frozen) || !is_path_safe(&served) {
            show::error(
                &format!("{} cannot have frozen versions", path.display()),
                "give it the ending .yaml or .json",
            );
            return exit::usage();
        }
        if let Err((problem, remedy)) = stands_already(&file, &catalog) {
            show::error(&problem, &remedy);
            return exit::differs();
        }
        // The lock comes first: without its file it means nothing, while a frozen file without its lock would be refused.
        let lock = lock::path_of(&file);
        let writes = [(&lock, lock::text(&catalog).into_bytes()), (&file, text)];
        for (path, bytes) in writes {
            if let Err(error) = write_as(path, &bytes, Some(about.permissions())) {
                show::error(&format!("{} cannot be written: {error}", path.display()), "freeze it where you may write");
                return exit::differs();
            }
        }
        let (digest, label) = (catalog.digest(Revision::MODERN).to_string(), frozen.label.to_string());
        if self.json {
            let line = json!({
                "surface": name, "version": version.to_string(), "label": label, "digest": digest,
                "file": file.to_string_lossy(), "lock": lock.to_string_lossy(), "path": format!("/mcp/{served}"),
            });
            show::out(&format!("{line:#}\n"));
        } else {
            let (file, lock) = (show::lines(&file.to_string_lossy()), show::lines(&lock.to_string_lossy()));
            show::out(&format!("{digest}  {name} {version}\nfrozen as {file}, with {lock}\n"));
            show::out(&format!("served at /mcp/{served} from the next start of `twodoor serve` on\n"));
        }
        ExitCode::SUCCESS
    }
}

/// What is frozen under a label stays: another text may take its place only if the tools are the same to clients.
fn stands_already(file: &Path, catalog: &Catalog) -> Result<(), (String, String)> {
    let remedy =
        |what: &str| format!("freeze this version under another label with --as; or remove {what} if nobody uses it");
    let lock = lock::path_of(file);
    if let Err(problems) = lock::check(file, catalog, lock::Mode::IfThere) {
        return Err((format!("another version is frozen already:\n{problems}"), remedy(&lock.display().to_string())));
    }
    if std::fs::symlink_metadata(file).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(());
    }
    let standing = Surface::load(file).ok().and_then(|loaded| Catalog::build(loaded.parts).ok());
    let same = |standing: &Catalog| Revision::ALL.into_iter().all(|r| standing.digest(r) == catalog.digest(r));
    if standing.as_ref().is_some_and(same) {
        return Ok(());
    }
    let digest = standing.map_or("cannot be read".to_owned(), |standing| standing.digest(Revision::MODERN).to_string());
    Err((format!("{} stands already, and is another version: {digest}", file.display()), remedy("it")))
}
