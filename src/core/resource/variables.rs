//! A template's variables, read as what their schema says.

use std::sync::Arc;

use super::no_arguments;
use crate::protocol::json::{JsonLimits, check};
use crate::protocol::schema::Schema;
use crate::protocol::{Arguments, Json, RawJson};

/// The schema of a template's variables.
#[derive(Debug, Clone)]
pub(super) struct Variables {
    /// `None` where there is nothing to check.
    schema: Option<Arc<Schema>>,
    /// The variables that are not read as text.
    typed: Arc<[String]>,
    names: Arc<[String]>,
}

impl Variables {
    /// Those of a resource: none.
    pub(super) fn none() -> Self {
        Self { schema: None, typed: Arc::new([]), names: Arc::new([]) }
    }

    /// Those of an object's schema.
    pub(super) fn new(schema: &Json) -> Self {
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or_default();
        let is_text = |property: &Json| matches!(property.get("type").and_then(Json::as_str), None | Some("string"));
        let typed = properties.iter().filter(|(_, property)| !is_text(property)).map(|(name, _)| name.clone());
        let names = properties.iter().map(|(name, _)| name.clone());
        // Checked when the surface was loaded; without properties everything fits.
        let compiled = (!properties.is_empty()).then(|| Schema::compile(schema).ok()).flatten();
        Self { schema: compiled.map(Arc::new), typed: typed.collect(), names: names.collect() }
    }

    /// The values as arguments; `None` if they do not fit.
    pub(super) fn fit(&self, values: &[(String, String)]) -> Option<Arguments> {
        let Some(schema) = &self.schema else { return no_arguments() };
        let mut members = Vec::new();
        for (name, value) in values {
            let text = match self.typed.contains(name) {
                false => serde_json::to_string(value).ok()?,
                true => {
                    check(value.as_bytes(), &JsonLimits::default()).ok()?;
                    value.clone()
                }
            };
            members.push(format!("{}:{text}", serde_json::to_string(name).ok()?));
        }
        let text = format!("{{{}}}", members.join(","));
        let raw = RawJson::new(text.into(), &JsonLimits::default()).ok()?;
        let value = raw.parse().ok()?;
        schema.violations(&value).is_empty().then(|| Arguments::new(raw)).flatten()
    }

    /// Whether a value fits the only variable.
    pub(super) fn takes_one(&self, value: &str) -> bool {
        match &*self.names {
            [only] => self.fit(&[(only.clone(), value.to_owned())]).is_some(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_schema_or_name_nothing() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer","maximum":9},"t":{"type":"string","pattern":"^[a-z]+$"}},
            "required":["n","t"],"additionalProperties":false}"#;
        let variables = Variables::new(&Json::parse(schema.as_bytes(), &JsonLimits::default()).unwrap());
        let fit = |n: &str, t: &str| {
            let values = [("n".to_owned(), n.to_owned()), ("t".to_owned(), t.to_owned())];
            variables.fit(&values).map(|arguments| arguments.text().as_str().to_owned())
        };
        assert_eq!(fit("7", "ab").as_deref(), Some(r#"{"n":7,"t":"ab"}"#));
        for (n, t) in
            [("10", "a"), ("x", "a"), ("", "a"), ("7,\"t\":\"b\"", "a"), ("\"7\"", "a"), ("7", "A"), ("7", "a\"")]
        {
            assert_eq!(fit(n, t), None, "{n} {t}");
        }
    }
}
