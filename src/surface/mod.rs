//! Surfaces: what is declared in files, checked before anything is served.

pub mod declaration;
mod problem;
mod scalar;
mod source;
mod tree;

pub use problem::{Problem, Problems, Rule, Severity};
