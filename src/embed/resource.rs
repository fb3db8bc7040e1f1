//! Resources and resource templates: what is read, and who reads it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::Call;
use super::give::{End, Give, Reading, ToolError};
use super::prompt::{Completer, completer};
use super::setters::setters;
use super::tool::{Run, erased};
use crate::protocol::{Body, Completes, Completing, Completion, ResourceContents, ResourceParts, TemplateParts};

/// A resource: one address, and what is read there.
///
/// ```
/// use twodoor::embed::{NotFound, Resource};
///
/// let fixed = Resource::text("notes:welcome", "welcome", "Good morning.");
/// let read = Resource::new("notes:today", "today", |_call| async {
///     std::fs::read_to_string("today.txt").map_err(|_| NotFound)
/// });
/// ```
#[derive(Clone)]
pub struct Resource {
    pub(super) parts: ResourceParts,
    pub(super) read: Run<(), Reading>,
}

impl Resource {
    /// Under an absolute URI and a name, what an async function reads: a text, bytes, or a `Result` of them with
    /// [`NotFound`](super::NotFound) or any error. [`Give`] lists all.
    pub fn new<F, R, G>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Reading>,
    {
        let parts = ResourceParts { uri: uri.into(), name: name.into(), ..ResourceParts::default() };
        Self { parts, read: erased(move |(), call| read(call), |(), _| Ok(())) }
    }

    /// Always this text, `text/plain` unless said otherwise.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let size = u64::try_from(text.len()).ok();
        let mut resource = Self::fixed(uri, name, Body::Text(text)).mime_type("text/plain");
        resource.parts.size = size;
        resource
    }

    /// Always these bytes.
    pub fn bytes(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let bytes = bytes.into();
        let size = u64::try_from(bytes.len()).ok();
        let mut resource = Self::fixed(uri, name, Body::Blob(bytes)).mime_type(mime_type);
        resource.parts.size = size;
        resource
    }

    fn fixed(uri: impl Into<String>, name: impl Into<String>, body: Body) -> Self {
        let body = Arc::new(body);
        Self::new(uri, name, move |_call| {
            let body = Arc::clone(&body);
            async move { Reading::Of(Body::clone(&body)) }
        })
    }

    /// Bytes, if known.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.parts.size = Some(bytes);
        self
    }
}

setters!(Resource: title description mime_type audience icon meta);

/// The variables of a template, as they were matched in a URI.
pub(super) type Variables = Vec<(String, String)>;

/// A resource template: many addresses, and what is read at each.
///
/// ```
/// use serde::Deserialize;
/// use twodoor::embed::{NotFound, Template};
///
/// #[derive(Deserialize)]
/// struct Day {
///     day: String,
/// }
///
/// let notes = Template::new("notes:{day}", "notes", |Day { day }, _call| async move {
///     if day == "monday" { Ok("Nothing yet.") } else { Err(NotFound) }
/// })
/// .complete("day", ["monday", "tuesday"]);
/// ```
#[derive(Clone)]
pub struct Template {
    pub(super) parts: TemplateParts,
    pub(super) read: Run<Variables, Reading>,
    pub(super) completers: HashMap<String, Completer>,
}

impl Template {
    /// RFC 6570 with `{name}` (one path segment) and `{+name}` (anything), and what reads it: an async function whose
    /// first argument is read from the variables, which are texts. A URI whose variables do not make one names nothing.
    pub fn new<V, F, R, G>(uri_template: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        V: DeserializeOwned + 'static,
        F: Fn(V, Call) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Reading>,
    {
        let parts = TemplateParts { uri_template: uri_template.into(), name: name.into(), ..TemplateParts::default() };
        let read = erased(read, |variables: &Variables, _| {
            let texts = variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
            serde_json::from_value(Value::Object(texts.collect())).map_err(|_| ToolError(End::NotFound))
        });
        Self { parts, read, completers: HashMap::new() }
    }

    /// Suggests, for a variable, those of these values that begin with what was typed.
    #[must_use]
    pub fn complete(mut self, variable: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.parts.completes.push((variable.to_owned(), Completes::Of(values)));
        self
    }

    /// Suggests, for a variable, what an async function makes of what was typed.
    #[must_use]
    pub fn complete_with<F, R, G>(mut self, variable: &str, complete: F) -> Self
    where
        F: Fn(Completing) -> R + Send + Sync + 'static,
        R: Future<Output = G> + Send + 'static,
        G: Give<Completion>,
    {
        self.parts.completes.push((variable.to_owned(), Completes::Backend));
        self.completers.insert(variable.to_owned(), completer(complete));
        self
    }
}

setters!(Template: title description mime_type audience icon meta);

/// What was read, under the URI that was read.
pub(super) fn contents(reading: Reading, uri: &str, mime_type: Option<&String>) -> Vec<ResourceContents> {
    match reading {
        Reading::Contents(contents) => contents,
        Reading::Of(body) => {
            vec![ResourceContents { uri: uri.to_owned(), mime_type: mime_type.cloned(), body, meta: None }]
        }
    }
}
