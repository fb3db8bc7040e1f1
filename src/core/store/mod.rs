//! A folder of records that survive a kill and a loss of power.
//!
//! Promises: a record whose write was acknowledged is there, whole, after any crash; one whose write
//! was not is there whole or not at all. Every record has one process that may write it; what a dead
//! process held goes to the next that looks. Anything in the folder that is not ours, or of a newer
//! format, or damaged, is refused by name and never overwritten. Used by [`super::tasks`]; what
//! several processes write together stands beside these records, see [`super::gate`].

pub mod disk;
mod error;
mod files;
#[cfg(test)]
pub(crate) mod model;

pub use disk::{Disk, LocalDisk};
pub use error::{StoreError, WriteError};
pub(crate) use files::prepare;
pub use files::{Adopt, Store, Unreadable, open_shared};
