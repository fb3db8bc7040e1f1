//! `twodoor check`: every problem of surface files, with its place and its remedy.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use super::{effects, exit, show};
use twodoor::protocol::json::visible;
use twodoor::surface::{LoadedSurface, Problems, Surface, render};

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
        if self.json && self.effects {
            let loaded = checked.iter().filter_map(|(_, checked)| checked.as_ref().ok());
            let all: Vec<Value> = loaded.flat_map(effects::of).map(|tool| tool.json()).collect();
            show::out(&format!("{:#}\n", Value::Array(all)));
        } else if self.json {
            let all: Vec<_> = checked.iter().flat_map(|(_, checked)| problems(checked).list()).collect();
            let text = serde_json::to_string_pretty(&all).unwrap_or_else(|_| "[]".to_owned());
            show::out(&format!("{text}\n"));
        } else {
            for (path, checked) in &checked {
                show::out(&render(problems(checked), show::colour_on_stdout()));
                if let Ok(surface) = checked {
                    let (name, version) = (&surface.name, &surface.version);
                    let declared = show::declared(&surface.parts);
                    let path = visible(path.to_string_lossy().chars());
                    show::out(&format!("ok: {path}: {name} {version}, {declared}\n"));
                    show::out(&effects::lines(surface, self.effects));
                }
            }
        }
        if checked.iter().any(|(_, checked)| checked.is_err()) { exit::surface() } else { ExitCode::SUCCESS }
    }
}

fn problems(checked: &Result<LoadedSurface, Problems>) -> &Problems {
    match checked {
        Ok(surface) => &surface.warnings,
        Err(problems) => problems,
    }
}
