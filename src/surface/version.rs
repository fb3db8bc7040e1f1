//! What version a surface must have after its tools changed.
//!
//! Promises: semantic versioning and no more (semver.org 2.0.0): a breaking change makes the first number go up, an
//! addition the second, anything else the last; below 1.0.0 everything moves one place down, as is the custom. What is
//! after `+` does not count. Used by the lock, `check`, `lock` and `diff`.

use semver::{Prerelease, Version};

use crate::protocol::Bump;

/// What a change counts for in versions like this one: below 1.0.0 a breaking change moves the second number.
fn counted(old: &Version, bump: Bump) -> Bump {
    match bump {
        _ if old.major > 0 => bump,
        Bump::Major => Bump::Minor,
        Bump::Minor | Bump::Patch => Bump::Patch,
    }
}

/// The lowest version without a pre-release that a change demands.
pub fn demanded(old: &Version, bump: Bump) -> Version {
    let next = |number: u64| number.saturating_add(1);
    match counted(old, bump) {
        _ if covers(old, bump) => Version::new(old.major, old.minor, old.patch),
        Bump::Major => Version::new(next(old.major), 0, 0),
        Bump::Minor => Version::new(old.major, next(old.minor), 0),
        Bump::Patch => Version::new(old.major, old.minor, next(old.patch)),
    }
}

/// Whether a version went up by as much as a change demands.
pub fn satisfies(old: &Version, new: &Version, bump: Bump) -> bool {
    if new.cmp_precedence(old).is_le() {
        return false;
    }
    let (before, after) = ((old.major, old.minor), (new.major, new.minor));
    match counted(old, bump) {
        _ if covers(old, bump) => true,
        Bump::Major => after.0 > before.0,
        Bump::Minor => after > before,
        Bump::Patch => true,
    }
}

/// Whether a pre-release is already one of a version that a change as large as this leads to.
fn covers(old: &Version, bump: Bump) -> bool {
    let led_to_by = match (old.minor, old.patch) {
        (0, 0) => Bump::Major,
        (_, 0) => Bump::Minor,
        _ => Bump::Patch,
    };
    old.pre != Prerelease::EMPTY && led_to_by >= counted(old, bump)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_goes_up_by_what_its_change_demands() {
        use Bump::{Major, Minor, Patch};
        for (old, bump, least, enough, too_little) in [
            (
                "1.2.3",
                Patch,
                "1.2.4",
                &["1.2.4", "1.3.0", "2.0.0", "1.2.4-rc.1"][..],
                &["1.2.3", "1.2.2", "1.2.3+new", "1.2.3-rc.1"][..],
            ),
            ("1.2.3", Minor, "1.3.0", &["1.3.0", "1.4.0-rc.1", "2.0.0"], &["1.2.4", "1.2.3", "0.9.0"]),
            ("1.2.3", Major, "2.0.0", &["2.0.0", "2.0.0-rc.1", "3.1.4"], &["1.3.0", "1.99.99", "0.1.0"]),
            ("0.2.3", Patch, "0.2.4", &["0.2.4", "0.3.0", "1.0.0"], &["0.2.3", "0.1.9"]),
            ("0.2.3", Minor, "0.2.4", &["0.2.4", "0.3.0"], &["0.2.3"]),
            ("0.2.3", Major, "0.3.0", &["0.3.0", "1.0.0"], &["0.2.4", "0.2.3"]),
            ("2.0.0-rc.1", Major, "2.0.0", &["2.0.0-rc.2", "2.0.0"], &["2.0.0-rc.1", "1.9.9"]),
            ("1.3.0-rc.1", Minor, "1.3.0", &["1.3.0-rc.2", "1.3.0"], &["1.3.0-beta"]),
            ("1.3.0-rc.1", Major, "2.0.0", &["2.0.0"], &["1.3.0", "1.3.0-rc.2"]),
            ("1.2.4-rc.1", Minor, "1.3.0", &["1.3.0"], &["1.2.4"]),
            ("0.3.0-rc.1", Major, "0.3.0", &["0.3.0", "0.3.0-rc.2"], &["0.2.9"]),
            ("18446744073709551615.0.0", Major, "18446744073709551615.0.0", &[], &["18446744073709551615.1.0"]),
        ] {
            let version = |text: &str| Version::parse(text).unwrap();
            assert_eq!(demanded(&version(old), bump), version(least), "{old} {bump:?}");
            for new in enough {
                assert!(satisfies(&version(old), &version(new), bump), "{old} {bump:?} {new}");
            }
            for new in too_little {
                assert!(!satisfies(&version(old), &version(new), bump), "{old} {bump:?} {new}");
            }
        }
    }
}
