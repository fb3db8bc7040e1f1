//! The registry of command-line capabilities: what there is, what it lacks, and its skills.

pub mod registry;
pub mod secrets;
pub mod skill;

pub use registry::Registry;
