//! Measures the engine against the bare limit of each transport.
//!
//! `load gates` counts what cannot be disturbed and holds it to ceilings; anything else measures and prints ratios.

mod check;
mod client;
mod connection;
mod cores;
mod gates;
mod held;
mod http;
mod measure;
mod neighbours;
mod said;
mod server;
mod start;
mod stdio;
mod table;
mod wire;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let ended = match words.next_if(|word| word == "gates") {
        Some(_) => gates::run(words),
        None => table::run(words),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}
