//! Measures the engine against the bare limit of each transport and prints ratios.

mod check;
mod client;
mod connection;
mod cores;
mod held;
mod http;
mod measure;
mod neighbours;
mod server;
mod start;
mod stdio;
mod table;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    match table::run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}
