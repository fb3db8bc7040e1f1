//! Which files of a folder are resources.
//!
//! Promises: what lies beneath a name that begins with a dot is none, whatever the patterns say:
//! it was put out of sight, as `.git` and `.env` are. The same answer is given when a folder is
//! listed, read and completed.

use globset::{GlobBuilder, GlobMatcher};

/// Patterns of file names; without any, every file matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matching(Vec<Pattern>);

#[derive(Debug, Clone)]
struct Pattern {
    matcher: GlobMatcher,
    /// Whether it is about the whole path, or the last name alone.
    whole: bool,
}

/// A compiled pattern is known by its text: all are compiled alike.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.matcher.glob() == other.matcher.glob() && self.whole == other.whole
    }
}

impl Matching {
    /// Adds a pattern: of a name if it has no slash, else of the path from the folder on.
    pub(crate) fn add(&mut self, pattern: &str) -> Result<(), String> {
        if pattern.is_empty() {
            return Err("it is empty".to_owned());
        }
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err("a path is matched from the folder on".to_owned());
        }
        let glob =
            GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| error.kind().to_string())?;
        self.0.push(Pattern { matcher: glob.compile_matcher(), whole: pattern.contains('/') });
        Ok(())
    }

    /// Whether a path, relative to the folder, is one of those.
    pub fn takes(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let fits = |pattern: &Pattern| pattern.matcher.is_match(if pattern.whole { path } else { name });
        is_in_sight(path) && (self.0.is_empty() || self.0.iter().any(fits))
    }
}

/// Whether no name of a path begins with a dot.
pub fn is_in_sight(path: &str) -> bool {
    path.split('/').all(|name| !name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(patterns: &[&str], path: &str) -> bool {
        let mut matching = Matching::default();
        patterns.iter().for_each(|pattern| matching.add(pattern).unwrap());
        matching.takes(path)
    }

    #[test]
    fn a_pattern_is_of_a_name_or_of_a_path() {
        for (patterns, path, expected) in [
            (&[][..], "a/b.rs", true),
            (&["*.md"], "a.md", true),
            (&["*.md"], "deep/er/a.md", true),
            (&["*.md"], "a.txt", false),
            (&["*.md", "*.txt"], "a.txt", true),
            (&["*.{md,txt}"], "a.txt", true),
            (&["guide/*.md"], "guide/a.md", true),
            (&["guide/*.md"], "guide/deep/a.md", false),
            (&["guide/**/*.md"], "guide/deep/a.md", true),
            (&["guide/*.md"], "a.md", false),
        ] {
            assert_eq!(takes(patterns, path), expected, "{patterns:?} {path}");
        }
    }

    #[test]
    fn what_was_put_out_of_sight_is_not_taken() {
        for path in [".env", ".git/config", "a/.b", "a/.b/c", "..", "a/../b", "."] {
            assert!(!takes(&[], path) && !takes(&["*", "**/*"], path), "{path}");
        }
    }
}
