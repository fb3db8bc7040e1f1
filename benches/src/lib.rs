//! What the servers of a comparison share: their tools, and what the bare ones answer.
//!
//! A bare server does what no server can leave out: it reads the message, parses it once without
//! copying and sends bytes that were encoded beforehand. It validates nothing.

pub mod bare_http;
mod fixed;
mod tools;

pub use fixed::{Answer, Fixed};
pub use tools::{PROGRESS_NOTICES, TOOLS, Tool, tools, tools_wanted};
