//! `twodoor check`: every problem of surface files, with its place and its remedy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use twodoor::protocol::Catalog;
use twodoor::protocol::json::visible;
use twodoor::surface::{LoadedSurface, Problems, Surface, lock, render};

use super::{effects, exit, show};

/// Checks surface files and shows all their problems at once
#[derive(clap::Args)]
#[command(after_help = "Exits with 0 if every file can be served (warnings do not count), else with 3.\n\n\
    Examples:\n  twodoor check\n  twodoor check surfaces/*.yaml --json\n  twodoor check ops.yaml --effects")]
pub(crate) struct Check {
    /// The surface files
    #[arg(value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surfaces: Vec<PathBuf>,
    /// Show what each tool does, and what the gate does about it, beside the problems
    #[arg(long)]
    effects: bool,
    /// Print the problems as one JSON array; with --effects, the tools
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> ExitCode {
        let checked: Vec<_> = self.surfaces.iter().map(|path| (path, Surface::load(path))).collect();
        let locks: Vec<Vec<Problems>> = checked.iter().map(|(path, checked)| of_lock(path, checked)).collect();
        if self.json && self.effects {
            let loaded = checked.iter().filter_map(|(_, checked)| checked.as_ref().ok());
            let all: Vec<Value> = loaded.flat_map(effects::of).map(|tool| tool.json()).collect();
            show::out(&format!("{:#}\n", Value::Array(all)));
        } else if self.json {
            let of_surfaces = checked.iter().zip(&locks);
            let all = of_surfaces.flat_map(|((_, checked), locks)| std::iter::once(problems(checked)).chain(locks));
            let all: Vec<_> = all.flat_map(Problems::list).collect();
            let text = serde_json::to_string_pretty(&all).unwrap_or_else(|_| "[]".to_owned());
            show::out(&format!("{text}\n"));
        } else {
            for ((path, checked), locks) in checked.iter().zip(&locks) {
                for problems in std::iter::once(problems(checked)).chain(locks) {
                    show::out(&render(problems, show::colour_on_stdout()));
                }
                if let (Ok(surface), []) = (checked, locks.as_slice()) {
                    let (name, version) = (&surface.name, &surface.version);
                    let declared = show::declared(&surface.parts);
                    let path = visible(path.to_string_lossy().chars());
                    show::out(&format!("ok: {path}: {name} {version}, {declared}\n"));
                    show::out(&effects::lines(surface, self.effects));
                }
            }
        }
        let refused =
            checked.iter().any(|(_, checked)| checked.is_err()) || locks.iter().any(|locks| !locks.is_empty());
        if refused { exit::surface() } else { ExitCode::SUCCESS }
    }
}

/// What keeps a surface from being served under its lock, and whether its version says what changed.
fn of_lock(path: &Path, checked: &Result<LoadedSurface, Problems>) -> Vec<Problems> {
    let Ok(surface) = checked else { return Vec::new() };
    // That it can be built was checked.
    let Ok(catalog) = Catalog::build(surface.parts.clone()) else { return Vec::new() };
    let held = [lock::check_version(surface, &catalog), lock::check(path, &catalog, lock::Mode::IfThere)];
    held.into_iter().filter_map(Result::err).collect()
}

fn problems(checked: &Result<LoadedSurface, Problems>) -> &Problems {
    match checked {
        Ok(surface) => &surface.warnings,
        Err(problems) => problems,
    }
}
