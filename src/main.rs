//! The twodoor command. See `twodoor --help`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
