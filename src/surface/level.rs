//! How much of what cannot be undone a surface lets through unasked.
//!
//! Promises: where nothing is said, a person is asked about all of it; a level that is not known is an error of the
//! file, never another level. Used by the gate and by `check`.

/// How much runs without a question, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// What only reads; all else is refused.
    L0,
    /// What can be undone; a person is asked about all else.
    #[default]
    L1,
    /// What can be undone, and what is named; a person is asked about all else.
    L2,
    /// Everything.
    L3,
}

impl Level {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 4] = [Self::L0, Self::L1, Self::L2, Self::L3];

    /// The word for it in files and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::L0 => "L0",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
        }
    }

    /// The level of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == text)
    }
}

/// What `gate` of a surface file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latitude {
    /// The level.
    pub level: Level,
    /// What L2 lets through: the name of a tool or capability, `NAME:ACTION`, an action, or a verb.
    pub allow: Vec<String>,
}
