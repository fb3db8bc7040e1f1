//! `twodoor token`: a new token, and its line for the file of callers.

use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use twodoor::protocol::catalog::is_scope;
use twodoor::protocol::digest;
use twodoor::surface::callers::is_name;

use super::{exit, show};

/// Makes a token for `serve --auth`, shown this once, and the line that stands for it in the file
#[derive(clap::Args)]
#[command(
    after_help = "The file holds the token's SHA-256, from which nobody gets the token back: keep the token where its caller keeps secrets.\n\n\
    Example:\n  twodoor token alice --scope read --scope write"
)]
pub(crate) struct Token {
    /// Whose it is: what the caller keeps on the server belongs to this name
    #[arg(value_name = "NAME", default_value = "somebody", value_parser = read_name)]
    name: String,
    /// A scope that it has (repeatable)
    #[arg(long, value_name = "SCOPE", value_parser = read_scope)]
    scope: Vec<String>,
}

fn read_name(text: &str) -> Result<String, &'static str> {
    is_name(text).then(|| text.to_owned()).ok_or("expected 1 to 64 of A-Z a-z 0-9 _ . - @")
}

fn read_scope(text: &str) -> Result<String, &'static str> {
    is_scope(text).then(|| text.to_owned()).ok_or("expected visible ASCII without spaces, quotes and backslashes")
}

impl Token {
    pub(crate) fn run(self) -> ExitCode {
        let mut bytes = [0; 32];
        if getrandom::fill(&mut bytes).is_err() {
            show::error("the system gives no randomness", "try again once it does");
            return exit::usage();
        }
        let token = format!("td_{}", URL_SAFE_NO_PAD.encode(bytes));
        let hash = digest::of_bytes(token.as_bytes()).to_string();
        let hash = hash.strip_prefix("sha256:").unwrap_or(&hash);
        let scopes: Vec<String> = self.scope.iter().map(|scope| format!("\"{scope}\"")).collect();
        show::out(&format!(
            "{token}\n  - {{ name: \"{}\", sha256: \"{hash}\", scopes: [{}] }}\n",
            self.name,
            scopes.join(", ")
        ));
        ExitCode::SUCCESS
    }
}
