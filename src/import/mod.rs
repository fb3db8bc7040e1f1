//! From what others have, a program's help, an OpenAPI document, an MCP server's list, to a surface file for a person to review.
//!
//! Promises: pure but for the check of what was made, which looks for programs as any check does. No text of
//! others is taken for more than text: it ends as a description, a schema or a comment, never as what runs. What cannot be
//! told is a comment that begins with `decide:`, and the cautious choice stands. Used by `twodoor import`.

mod effect;
pub mod help;
mod name;
pub mod openapi;
mod sheet;
mod text;
pub mod upstream;
mod yaml;

pub use sheet::{ImportError, Imported};
