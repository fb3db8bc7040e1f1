//! A skill as written.

use crate::surface::fields::Fields;
use crate::surface::problem::Findings;
use crate::surface::source::At;
use crate::surface::tree::Entry;

/// Keys of a skill.
const KEYS: &[&str] = &["folder", "prefix"];

/// A skill.
#[derive(Debug)]
pub(crate) struct SkillEntry<'t> {
    pub(crate) name: &'t At<String>,
    pub(crate) folder: Option<At<String>>,
    pub(crate) prefix: Option<At<String>>,
}

impl SkillEntry<'_> {
    /// The address of its folder.
    pub(crate) fn uri(&self) -> String {
        let prefix =
            self.prefix.as_ref().map(|prefix| format!("{}/", prefix.value.trim_matches('/'))).unwrap_or_default();
        format!("skill://{prefix}{}", self.name.value)
    }
}

/// Reads a skill.
pub(super) fn read<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<SkillEntry<'t>> {
    let fields = Fields::of(&entry.node, entry.key.span, "a skill", KEYS, findings)?;
    fields.require("folder", "write the folder that has its SKILL.md, such as `folder: skills/refunds`", findings);
    Some(SkillEntry {
        name: &entry.key,
        folder: fields.text("folder", findings),
        prefix: fields.text("prefix", findings),
    })
}
