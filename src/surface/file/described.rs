//! What every entry can say of itself: words for people and models, pictures, hints.

use crate::protocol::{Audience, Icon, Json, Role};
use crate::surface::fields::Fields;
use crate::surface::lint::{icon, missing_key, priority, value_kind};
use crate::surface::problem::Findings;
use crate::surface::source::At;
use crate::surface::tree::{Entry, Node};

const ICON_KEYS: &[&str] = &["src", "mime_type", "sizes", "theme"];

/// Title, description, icons and `_meta`.
#[derive(Debug, Default)]
pub(crate) struct Described<'t> {
    pub(crate) title: Option<At<String>>,
    pub(crate) description: Option<At<String>>,
    pub(crate) icons: Vec<Icon>,
    meta: Option<&'t Entry>,
}

impl Described<'_> {
    pub(crate) fn title(&self) -> Option<String> {
        self.title.as_ref().map(|at| at.value.clone())
    }

    pub(crate) fn description(&self) -> Option<String> {
        self.description.as_ref().map(|at| at.value.clone())
    }

    /// `_meta`, as written.
    pub(crate) fn meta(&self) -> Option<Json> {
        self.meta.map(|entry| entry.node.to_json())
    }
}

/// Whom a resource is for, and how much it matters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    audience: Vec<Role>,
    priority: Option<f64>,
}

impl Hints {
    pub(crate) fn audience(&self) -> Audience {
        Audience { audience: self.audience.clone(), priority: self.priority, last_modified: None }
    }
}

/// Reads what an entry says of itself.
pub(super) fn read<'t>(fields: &Fields<'t>, findings: &mut Findings) -> Described<'t> {
    Described {
        title: fields.text("title", findings),
        description: fields.text("description", findings),
        icons: icons(fields, findings),
        meta: fields.get("meta").filter(|entry| {
            let is_map = entry.node.as_map().is_some();
            if !is_map {
                value_kind::report("meta", &entry.node, "a mapping", findings);
            }
            is_map
        }),
    }
}

/// Reads `audience` and `priority`.
pub(super) fn hints(fields: &Fields<'_>, findings: &mut Findings) -> Hints {
    let said = fields.texts("audience", findings);
    let role = |said: &At<String>| role("audience", said, findings);
    let audience = said.iter().filter_map(role).collect();
    let priority = fields.get("priority").and_then(|entry| priority::read(entry, findings));
    Hints { audience, priority }
}

/// Reads `user` or `assistant`.
pub(super) fn role(key: &str, said: &At<String>, findings: &mut Findings) -> Option<Role> {
    match said.value.as_str() {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => {
            value_kind::one_of(key, said, &["user", "assistant"], findings);
            None
        }
    }
}

/// Reads `icons`.
pub(super) fn icons(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Icon> {
    let Some(entry) = fields.get("icons") else { return Vec::new() };
    let Some(items) = entry.node.as_list() else {
        value_kind::report("icons", &entry.node, "a list of icons", findings);
        return Vec::new();
    };
    items.iter().filter_map(|item| read_icon(item, findings)).collect()
}

fn read_icon(node: &Node, findings: &mut Findings) -> Option<Icon> {
    let fields = Fields::of(node, node.span, "an icon", ICON_KEYS, findings)?;
    if fields.get("src").is_none() {
        let remedy = "write its address, such as `src: https://example.com/icon.png`";
        missing_key::report(node.span, "an icon", "src", remedy, findings);
    }
    let src = fields.text("src", findings)?;
    icon::check(&src, findings);
    let theme = fields.text("theme", findings);
    if let Some(theme) = theme.as_ref().filter(|theme| !["light", "dark"].contains(&theme.value.as_str())) {
        value_kind::one_of("theme", theme, &["light", "dark"], findings);
    }
    Some(Icon {
        src: src.value,
        mime_type: fields.text("mime_type", findings).map(|at| at.value),
        sizes: fields.texts("sizes", findings).into_iter().map(|at| at.value).collect(),
        theme: theme.map(|at| at.value),
    })
}
