//! `twodoor completions`: a script for a shell.

use std::process::ExitCode;

use clap_complete::Shell;

/// Prints the completions of a shell, to be sourced or put where it looks for them
#[derive(clap::Args)]
#[command(after_help = "Example: twodoor completions bash > ~/.local/share/bash-completion/completions/twodoor")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut command: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "twodoor", &mut script);
        super::show::out(&String::from_utf8_lossy(&script));
        ExitCode::SUCCESS
    }
}
