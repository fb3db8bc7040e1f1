//! What runs unasked, as written.

use crate::surface::fields::Fields;
use crate::surface::level::Latitude;
use crate::surface::lint::gate_level;
use crate::surface::problem::Findings;
use crate::surface::source::At;

/// Keys of `gate`.
const KEYS: &[&str] = &["level", "allow"];

/// Reads `gate`; `None` if there is no such key, or it cannot be read, which was reported.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Latitude> {
    let entry = fields.get("gate")?;
    let fields = Fields::of(&entry.node, entry.key.span, "`gate`", KEYS, findings)?;
    fields.require("level", "write one of L0, L1, L2 and L3, or leave `gate` out for L1", findings);
    let level = fields.text("level", findings);
    let allow: Vec<At<String>> = fields.texts("allow", findings);
    gate_level::settle(&level?, &allow, fields.get("allow").map(|entry| entry.key.span), findings)
}
