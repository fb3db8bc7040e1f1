//! Carrying out what is asked for: commands, resources and prompts as a surface declares them, behind one router.
//!
//! Promises: no shell, no argument that becomes two, no inherited environment, nothing left running
//! when a call is over; a failure is told so that the model, or the operator, knows what to change.
//! Knows no transport and no wire. Used by the command line, which builds the [`Router`], and by
//! whoever embeds the engine.

pub mod backend;
mod blocking;
pub mod capability;
pub mod command;
pub mod confine;
mod fill;
mod form;
pub mod gate;
mod given;
pub mod http;
pub mod outgoing;
pub mod process;
pub mod prompt;
pub mod redact;
pub mod resource;
pub mod store;
pub mod tasks;
pub mod upstream;

pub use backend::{ByCatalog, Router};
pub use tasks::Tasks;
