//! The registry of command-line capabilities as an operator's surface: found step by step, run one action at a time.
//!
//! Promises: a name is answered with what it names or with what was probably meant; nothing is started that its manifest
//! does not describe; a program is given the arguments, the secrets and the environment that are declared, and what it
//! writes comes back as one JSON value, bounded, without a secret. Used by the router.

pub mod answer;
pub mod argv;
pub mod cut;
pub mod definition;
pub mod enrich;
pub mod listing;
pub mod normal;
pub mod operator;
pub mod places;
pub mod registry;
pub mod run;
#[cfg(test)]
mod samples;
pub mod search;
pub mod secrets;
pub mod skill;
pub mod suggest;
pub mod target;
pub mod turn;
pub mod validate;
pub mod words;

pub use registry::Registry;
