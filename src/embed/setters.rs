//! The setters that several kinds of definitions share, written once.

/// `setters!(Kind: title icon)` gives a kind that has `parts` these setters.
macro_rules! setters {
    ($kind:ty: $($what:ident)+) => {
        impl $kind {
            $(setters!(@ $what);)+
        }
    };
    (@ title) => {
        /// A name for people.
        #[must_use]
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.parts.title = Some(title.into());
            self
        }
    };
    (@ description) => {
        /// What it holds, for a model.
        #[must_use]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.parts.description = Some(description.into());
            self
        }
    };
    (@ mime_type) => {
        /// Media type; of a template, that of all that match.
        #[must_use]
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.parts.mime_type = Some(mime_type.into());
            self
        }
    };
    (@ audience) => {
        /// Whom it is for, and how much it matters.
        #[must_use]
        pub fn audience(mut self, audience: crate::protocol::Audience) -> Self {
            self.parts.audience = audience;
            self
        }
    };
    (@ icon) => {
        /// A picture for lists; one more each time.
        #[must_use]
        pub fn icon(mut self, icon: crate::protocol::Icon) -> Self {
            self.parts.icons.push(icon);
            self
        }
    };
    (@ meta) => {
        /// `_meta`, sent as it is.
        #[must_use]
        pub fn meta(mut self, meta: &serde_json::Value) -> Self {
            self.parts.meta = Some(crate::protocol::Json::from(meta));
            self
        }
    };
}

pub(super) use setters;
