//! `twodoor check`: every problem of surface files, with its place and its remedy.
//!
//! Promises: what `serve` would refuse of a surface, its lock and the frozen versions beside it is refused here.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use twodoor::protocol::Catalog;
use twodoor::protocol::json::visible;
use twodoor::surface::frozen::{self, Frozen, place_of};
use twodoor::surface::{LoadedSurface, Problems, Surface, lock};

use super::{effects, exit, show};

/// Checks surface files, and the frozen versions beside them, and shows all their problems at once
#[derive(clap::Args)]
#[command(
    after_help = "Of NAME.yaml the frozen versions NAME@LABEL.yaml are checked too: what they lead to may have changed since.\n\n\
    Exits with 0 if every file can be served (warnings do not count), else with 3.\n\n\
    Examples:\n  twodoor check\n  twodoor check surfaces/*.yaml --json\n  twodoor check ops.yaml --effects"
)]
pub(crate) struct Check {
    /// The surface files
    #[arg(value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surfaces: Vec<PathBuf>,
    /// Show what each tool does, and what the gate does about it, beside the problems
    #[arg(long)]
    effects: bool,
    /// Leave out the frozen versions that stand beside the files
    #[arg(long)]
    no_frozen: bool,
    /// Print the problems as one JSON array; with --effects, the tools
    #[arg(long)]
    json: bool,
}

/// A file that was checked.
struct Checked {
    path: PathBuf,
    frozen: Option<Frozen>,
    /// Whether it was named, and not only found beside one that was.
    named: bool,
    loaded: Option<LoadedSurface>,
    /// Those of the file first.
    problems: Vec<Problems>,
}

impl Check {
    pub(crate) fn run(self) -> ExitCode {
        let all = self.all();
        let refused = all.iter().any(Checked::is_refused);
        if self.json && self.effects {
            let loaded = all.iter().filter(|checked| checked.named).filter_map(|checked| checked.loaded.as_ref());
            let all: Vec<Value> = loaded.flat_map(effects::of).map(|tool| tool.json()).collect();
            show::out(&format!("{:#}\n", Value::Array(all)));
        } else if self.json {
            show::out(&format!("{:#}\n", Value::Array(all.iter().flat_map(Checked::json).collect())));
        } else {
            all.iter().for_each(|checked| show::out(&checked.text(self.effects)));
        }
        if refused { exit::surface() } else { ExitCode::SUCCESS }
    }

    fn all(&self) -> Vec<Checked> {
        let named: Vec<PathBuf> = self.surfaces.iter().map(|path| place_of(path)).collect();
        let mut all: Vec<Checked> = Vec::new();
        for file in frozen::with_versions(&self.surfaces, !self.no_frozen) {
            all.push(match file {
                Ok((path, frozen)) => {
                    let named = named.contains(&place_of(&path));
                    Checked::of(path, frozen, named, &all)
                }
                Err(problems) => {
                    let path = problems.list().first().map(|problem| problem.file.clone()).unwrap_or_default();
                    Checked { path, frozen: None, named: true, loaded: None, problems: vec![problems] }
                }
            });
        }
        all
    }
}

impl Checked {
    fn of(path: PathBuf, frozen: Option<Frozen>, named: bool, before: &[Self]) -> Self {
        let loaded = match Surface::load(&path) {
            Ok(loaded) => loaded,
            Err(problems) => return Self { path, frozen, named, loaded: None, problems: vec![problems] },
        };
        let mut problems = vec![loaded.warnings.clone()];
        // That it can be built was checked.
        if let Ok(catalog) = Catalog::build(loaded.parts.clone()) {
            let mut hold = |held: Result<(), Problems>| problems.extend(held.err());
            match &frozen {
                Some(frozen) => {
                    hold(lock::check(&path, &catalog, lock::Mode::Required));
                    let base = place_of(&frozen.base);
                    let known = before.iter().find(|checked| place_of(&checked.path) == base);
                    let of_base = match known {
                        Some(known) => known.loaded.as_ref().map(|base| base.name.clone()),
                        // One that cannot be read now says nothing against its versions.
                        None => Surface::load(&frozen.base).ok().map(|base| base.name),
                    };
                    hold(of_base.map_or(Ok(()), |of_base| frozen.check_name(&loaded.name, &of_base)));
                }
                None => match lock::check_version(&loaded, &catalog) {
                    // What the lock says too: one matter, told where it is mended first.
                    Err(problems) => hold(Err(problems)),
                    Ok(()) => hold(lock::check(&path, &catalog, lock::Mode::IfThere)),
                },
            }
        }
        Self { path, frozen, named, loaded: Some(loaded), problems }
    }

    fn is_refused(&self) -> bool {
        self.loaded.is_none() || self.problems.iter().any(Problems::has_errors)
    }

    /// What is told: of a frozen version that nobody named, only why it cannot be served.
    fn told(&self) -> Vec<&Problems> {
        self.problems.iter().filter(|_| self.named || self.is_refused()).collect()
    }

    fn json(&self) -> Vec<Value> {
        let told = self.told();
        let problems = told.iter().flat_map(|problems| problems.list());
        let problems = problems.map(|problem| {
            let mut problem = serde_json::to_value(problem).unwrap_or_default();
            if let (Some(members), Some(frozen)) = (problem.as_object_mut(), &self.frozen) {
                members.insert("label".to_owned(), frozen.label.to_string().into());
            }
            problem
        });
        problems.collect()
    }

    fn text(&self, with_effects: bool) -> String {
        let told = show::refusal(&self.told(), self.frozen.as_ref(), show::colour_on_stdout());
        let Some(surface) = self.loaded.as_ref().filter(|_| !self.is_refused()) else { return told };
        let LoadedSurface { name, version, parts, .. } = surface;
        let label = self.frozen.as_ref().map(|frozen| format!("@{}", frozen.label)).unwrap_or_default();
        let path = visible(self.path.to_string_lossy().chars());
        let effects = if self.named { effects::lines(surface, with_effects) } else { String::new() };
        format!("{told}ok: {path}: {name}{label} {version}, {}\n{effects}", show::declared(parts))
    }
}
