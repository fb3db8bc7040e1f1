//! `twodoor freeze`: the version of a surface that is to be served on, whatever becomes of the surface.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use twodoor::protocol::{Catalog, Revision};
use twodoor::surface::frozen::{Frozen, Label};
use twodoor::surface::lock::Lock;
use twodoor::surface::{LoadedSurface, Surface, lock};
use twodoor::transport::http::is_path_safe;

use super::place::Beside;
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
        let Ok(catalog) = Catalog::build(loaded.parts.clone()) else { return exit::surface() };
        if let Err(problems) = lock::check(path, &catalog, lock::Mode::IfThere) {
            show::problems_on_stderr(&problems);
            return exit::surface();
        }
        let LoadedSurface { name, version, .. } = &loaded;
        let Some(label) = self.label.or_else(|| Label::of(version)) else { return exit::usage() };
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
        if let Err((problem, remedy)) = stands_already(&frozen, &loaded, &catalog) {
            show::error(&problem, &remedy);
            return exit::differs();
        }
        // The lock comes first: without its file it means nothing, while a frozen file without its lock would be refused.
        let lock = lock::path_of(&file);
        let writes = [(&lock, lock::text(&catalog).into_bytes()), (&file, text)];
        for (path, bytes) in writes {
            let same_mode = |file: &File| file.set_permissions(about.permissions());
            if let Err(error) = Beside::write(path, &bytes, 0o600, same_mode).and_then(Beside::replace) {
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
fn stands_already(frozen: &Frozen, wanted: &LoadedSurface, catalog: &Catalog) -> Result<(), (String, String)> {
    let file = frozen.path();
    let lock = lock::path_of(&file);
    let has_file = !std::fs::symlink_metadata(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let holds = match (lock::stands(&file), has_file) {
        (false, false) => return Ok(()),
        (true, _) if lock::check(&file, catalog, lock::Mode::IfThere).is_err() => of_lock(&lock, catalog),
        (_, true) => match Surface::load(&file) {
            Ok(standing) => match Catalog::build(standing.parts) {
                Ok(there) if Revision::ALL.into_iter().all(|r| there.digest(r) == catalog.digest(r)) => return Ok(()),
                Ok(there) => {
                    held(&standing.name, &standing.version.to_string(), there.tools().len(), &digest_of(&there))
                }
                Err(_) => "a surface that cannot be published".to_owned(),
            },
            Err(problems) => format!("what cannot be read ({problems})"),
        },
        (true, false) => return Ok(()),
    };
    let LoadedSurface { name, version, .. } = wanted;
    let Frozen { base, label } = frozen;
    let problem = format!(
        "the label {label} is taken: {} holds {holds}; {} is now {}",
        file.display(),
        base.display(),
        held(name, &version.to_string(), catalog.tools().len(), &digest_of(catalog))
    );
    let remedy = format!(
        "choose another label, such as `twodoor freeze {} --as {}`; or, if no client uses {name}@{label} any more, remove {} \
         and {} and freeze again",
        base.display(),
        free_label(frozen, version),
        file.display(),
        lock.display()
    );
    Err((problem, remedy))
}

/// What a lock was written for, and what changed since.
fn of_lock(path: &Path, catalog: &Catalog) -> String {
    let lock = match Lock::read(path) {
        Ok(lock) => lock,
        Err(problems) => return format!("what cannot be told, since {} cannot be read ({problems})", path.display()),
    };
    let digest = lock.digest(Revision::MODERN).to_string();
    let changed =
        lock.changes(catalog).map(|changes| format!(", from which this differs by {}", lock::summary(&changes)));
    let changed = changed.unwrap_or_default();
    match (&lock.surface, &lock.version, &lock.tools) {
        (Some(name), Some(version), Some(tools)) => {
            format!("{}{changed}", held(name, &version.to_string(), tools.len(), &digest))
        }
        _ => digest,
    }
}

fn held(name: &str, version: &str, tools: usize, digest: &str) -> String {
    format!("{name} {version}, {}, {digest}", show::count(tools, "tool"))
}

fn digest_of(catalog: &Catalog) -> String {
    catalog.digest(Revision::MODERN).to_string()
}

/// A label under which nothing is frozen yet, said by the version.
fn free_label(taken: &Frozen, version: &semver::Version) -> String {
    let said = [format!("{}.{}", version.major, version.minor), version.to_string()];
    let is_free = |label: &String| {
        Label::new(label).is_some_and(|label| {
            let file = Frozen { base: taken.base.clone(), label }.path();
            std::fs::symlink_metadata(&file).is_err() && !lock::stands(&file)
        })
    };
    said.into_iter().find(is_free).unwrap_or_else(|| "LABEL".to_owned())
}
