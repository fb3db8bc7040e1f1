//! What callgrind writes, and what of it is counted.

use std::collections::HashMap;
use std::fs;
use std::ops::Sub;
use std::path::Path;

use anyhow::{Context, Result};

/// What a process did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    pub allocations: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(earlier.instructions),
            allocations: self.allocations.saturating_sub(earlier.allocations),
        }
    }
}

impl Counts {
    pub fn read(profile: &Path) -> Result<Self> {
        let text = fs::read_to_string(profile).with_context(|| format!("cannot read {}", profile.display()))?;
        Self::parse(&text).with_context(|| format!("{} is no whole profile of callgrind", profile.display()))
    }

    /// A name stands where it is first used, `fn=(7) malloc`, and later only its number, `cfn=(7)`. `calls=3 …` follows
    /// the name of what is called.
    fn parse(profile: &str) -> Option<Self> {
        let mut allocators = HashMap::new();
        let mut allocates = |function| {
            let (number, name): (&str, &str) = str::split_once(function, ')')?;
            let known = allocators.entry(number).or_insert(false);
            if !name.is_empty() {
                *known = is_allocator(name.trim_start());
            }
            Some(*known)
        };
        let (mut instructions, mut allocations) = (None, 0);
        let (mut inside, mut called) = (false, false);
        for line in profile.lines() {
            if let Some(function) = line.strip_prefix("fn=") {
                inside = allocates(function)?;
            } else if let Some(function) = line.strip_prefix("cfn=") {
                called = allocates(function)?;
            } else if let Some(calls) = line.strip_prefix("calls=") {
                // One that calls another, as realloc of nothing calls malloc, is one allocation.
                if called && !inside {
                    allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
                }
            } else if let Some(total) = line.strip_prefix("totals: ") {
                instructions = Some(total.trim().parse().ok()?);
            }
        }
        Some(Self { instructions: instructions?, allocations })
    }
}

/// Whether it is one of the C library's; callgrind numbers the levels of a recursion, `malloc'2`.
fn is_allocator(name: &str) -> bool {
    const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"];
    let name = name.split('\'').next().unwrap_or(name);
    ALLOCATORS.contains(&name.strip_prefix("__libc_").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
events: Ir
fn=(1) main
10 5
cfn=(2) malloc
calls=3 0
10 30
cfn=(3) je_malloc
calls=9 0
10 90
cfn=(4) realloc'2
calls=2 0
10 20
fn=(4)
10 1
cfn=(2)
calls=2 0
10 20
fn=(5) other
cfn=(2)
calls=1 0
10 10
totals: 12345
";

    #[test]
    fn calls_of_allocators_are_counted_once_each() {
        assert_eq!(Counts::parse(PROFILE), Some(Counts { instructions: 12345, allocations: 6 }));
    }

    #[test]
    fn a_profile_that_was_cut_off_is_none() {
        let cut = PROFILE.split("totals").next().unwrap();
        assert_eq!(Counts::parse(cut), None);
    }
}
