//! Where a surface file goes that was made: a new file in one step, or standard output.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use twodoor::import::Imported;

use crate::cli::place::Beside;
use crate::cli::{exit, show};

/// Where to write.
#[derive(clap::Args)]
pub(super) struct Out {
    /// The file to write; standard output if absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "out")]
    force: bool,
}

impl Out {
    /// Refuses a file that is there, before any work is done for it.
    pub(super) fn check(&self) -> Result<(), ExitCode> {
        match &self.out {
            Some(path) if !self.force && fs::symlink_metadata(path).is_ok() => Err(taken(path)),
            _ => Ok(()),
        }
    }

    /// The folder in which the file will stand.
    pub(super) fn folder(&self) -> PathBuf {
        let parent = self.out.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.map_or_else(|| PathBuf::from("."), Path::to_owned);
        fs::canonicalize(&folder).unwrap_or(folder)
    }

    /// A program as `run` names it: as it was typed if that is a bare name, beneath the file's folder if it is there.
    pub(super) fn declared(&self, typed: &OsStr, path: &Path) -> Option<String> {
        if typed.to_str().is_some_and(|typed| !typed.contains('/')) {
            return typed.to_str().map(str::to_owned);
        }
        let parent = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        let path = parent.map_or_else(|| path.to_owned(), |parent| parent.join(path.file_name().unwrap_or_default()));
        match path.strip_prefix(self.folder()) {
            Ok(beneath) => Path::new(".").join(beneath).to_str().map(str::to_owned),
            Err(_) => path.to_str().map(str::to_owned),
        }
    }

    /// Writes what was made, and says what is left to decide.
    pub(super) fn write(&self, imported: &Imported) -> ExitCode {
        let Imported { text, tools, withheld, remarks } = imported;
        match &self.out {
            None => show::out(text),
            Some(path) => {
                let written = put(path, text, self.force);
                if let Err(error) = written {
                    if error.kind() == io::ErrorKind::AlreadyExists {
                        return taken(path);
                    }
                    show::error(&format!("{} cannot be written: {error}", path.display()), "write it where you may");
                    return exit::differs();
                }
            }
        }
        let decide = text.matches("decide:").count().saturating_sub(1);
        let mut said = format!("{}, {} to decide", show::count(*tools, "tool"), decide);
        if !withheld.is_empty() {
            said.push_str(&format!(", {} left out", withheld.len()));
        }
        show::err(&format!("{said}\n"));
        for (name, why) in withheld.iter().take(10) {
            show::err(&format!("  left out: {}: {}\n", show::lines(name), show::lines(why)));
        }
        for remark in remarks.iter().take(10) {
            show::err(&format!("  note: {}\n", show::lines(remark)));
        }
        if let Some(path) = &self.out {
            let path = show::quoted(&[path.display().to_string()]);
            show::err(&format!("next: read {path}, then twodoor check {path}\n"));
        }
        ExitCode::SUCCESS
    }
}

fn taken(path: &Path) -> ExitCode {
    show::error(&format!("{} is there already", path.display()), "name another file, or replace it with --force");
    exit::usage()
}

/// Puts the text into a file in one step. Without `force` a file that came meanwhile stays.
fn put(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let beside = Beside::write(path, text.as_bytes(), 0o666, |_| Ok(()))?;
    if force { beside.replace() } else { beside.place() }
}
