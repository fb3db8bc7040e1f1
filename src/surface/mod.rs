//! Surfaces: what is declared in files, checked before anything is served.

pub mod declaration;
