//! `twodoor lock`: writes down the tools that were reviewed, so that no others are served.
//!
//! Promises: what was locked before is replaced in one step or not at all, and only under a version that says what
//! changed.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use twodoor::protocol::{Catalog, Comparison, Revision};
use twodoor::surface::lock::{self, Lock};
use twodoor::surface::{LoadedSurface, version};

use super::place::Beside;
use super::{diff, exit, show};

/// Writes the tools of surfaces and their digest to the locks beside them: `serve` then serves these tools alone
#[derive(clap::Args)]
#[command(
    after_help = "For NAME.yaml the lock is NAME.lock in the same folder. What changed since it was last written is shown. \
    A lock is not replaced where the tools changed and the surface's version did not go up by what the change demands \
    (breaking: major, additive: minor, anything else: patch).\n\n\
    Exits with 0 if all locks are written, 1 if one is not, 2 if the old lock cannot be read, 3 if a surface is refused.\n\n\
    Examples:\n  twodoor lock\n  twodoor diff ops.yaml && twodoor lock ops.yaml"
)]
pub(crate) struct WriteLock {
    /// The surface files
    #[arg(value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surfaces: Vec<PathBuf>,
    /// Replace a lock even if it cannot be read, or if the version did not go up as the change demands
    #[arg(long)]
    unbumped: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

impl WriteLock {
    pub(crate) fn run(self) -> ExitCode {
        let mut written = Vec::new();
        let mut failed = None;
        for path in &self.surfaces {
            let done = show::load(path).and_then(|loaded| {
                let catalog = Catalog::build(loaded.parts.clone()).map_err(|_| exit::surface())?;
                write(&loaded, &catalog, self.unbumped)
            });
            match done {
                Ok(done) if self.json => written.push(done.json()),
                Ok(done) => show::out(&done.text()),
                Err(code) => failed = failed.or(Some(code)),
            }
        }
        if self.json {
            show::out(&format!("{:#}\n", Value::Array(written)));
        }
        failed.unwrap_or(ExitCode::SUCCESS)
    }
}

/// A lock that was written.
pub(crate) struct Written {
    path: PathBuf,
    name: String,
    version: String,
    tools: usize,
    digest: String,
    changes: Option<Comparison>,
}

impl Written {
    fn json(&self) -> Value {
        json!({
            "lock": self.path.display().to_string(), "surface": self.name, "version": self.version, "tools": self.tools,
            "digest": self.digest, "changes": self.changes.as_ref().map(diff::changes_as_json).unwrap_or_default(),
        })
    }

    fn text(&self) -> String {
        let changes = self.changes.as_ref().map(|changes| diff::changes_as_text(changes, show::colour_on_stdout()));
        let Self { path, name, version, tools, digest, .. } = self;
        let tools = show::count(*tools, "tool");
        format!("{}locked: {}: {name} {version}, {tools}, {digest}\n", changes.unwrap_or_default(), path.display())
    }
}

/// Writes the lock of a surface; says why not, and gives the code to end with.
pub(crate) fn write(loaded: &LoadedSurface, catalog: &Catalog, unbumped: bool) -> Result<Written, ExitCode> {
    let path = lock::path_of(&loaded.path);
    let mut changes = None;
    if lock::stands(&loaded.path) {
        match Lock::read(&path) {
            Ok(old) => {
                changes = old.changes(catalog);
                let bump = changes.as_ref().and_then(Comparison::bump);
                if let (false, Some(before), Some(bump)) = (unbumped, &old.version, bump)
                    && !version::satisfies(before, &loaded.version, bump)
                {
                    show::err(
                        &changes.as_ref().map(|changes| diff::changes_as_text(changes, false)).unwrap_or_default(),
                    );
                    let problem = format!(
                        "{} is not written: the tools changed and the version of {} is {}, {before} in the lock",
                        path.display(),
                        loaded.path.display(),
                        loaded.version
                    );
                    let demanded = version::demanded(before, bump);
                    show::error(
                        &problem,
                        &format!("raise the version to {demanded} or above; --unbumped locks it nevertheless"),
                    );
                    return Err(exit::differs());
                }
            }
            Err(_) if unbumped => {}
            Err(problems) => {
                show::problems_on_stderr(&problems);
                let problem = format!("{} is not replaced, since it cannot be read", path.display());
                show::error(&problem, "mend or remove it; --unbumped replaces it");
                return Err(exit::usage());
            }
        }
    }
    if let Err(error) =
        Beside::write(&path, lock::text(catalog).as_bytes(), 0o666, |_| Ok(())).and_then(Beside::replace)
    {
        show::error(&format!("{} cannot be written: {error}", path.display()), "write it where you may");
        return Err(exit::differs());
    }
    Ok(Written {
        path,
        name: loaded.name.clone(),
        version: loaded.version.to_string(),
        tools: catalog.tools().len(),
        digest: catalog.digest(Revision::MODERN).to_string(),
        changes,
    })
}
