//! Resource templates: literals, `{name}` for one path segment and `{+name}` for anything (RFC 6570, levels 1 and 2).
//!
//! Promises: matching takes time linear in the URI, whatever the template; a value that comes out
//! is decoded once, is UTF-8 and holds no NUL.

use regex::Regex;

/// Longest URI that is matched, bytes: longer ones name nothing here.
pub const URI_BYTES: usize = 8 * 1024;

/// A template, compiled.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    text: String,
    variables: Vec<String>,
    regex: Regex,
}

/// Why a text is no template that can be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A brace is not closed, or closed without being opened.
    #[error("a brace stands alone")]
    Brace,
    /// An expression that cannot be matched.
    #[error("{{{0}}} is not supported: write {{name}} for one path segment or {{+name}} for anything")]
    Expression(String),
    /// A variable twice.
    #[error("the variable {0} stands twice")]
    Twice(String),
    /// Two variables without a literal between them, which could be split anywhere.
    #[error("two variables touch: put a literal between them")]
    Touching,
    /// No variable at all.
    #[error("there is no variable: declare a resource instead")]
    NoVariable,
    /// Larger than can be compiled.
    #[error("the template is too large")]
    TooLarge,
}

impl UriTemplate {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let mut pattern = String::from("^");
        let mut variables: Vec<String> = Vec::new();
        let mut rest = text;
        let mut after_variable = false;
        while !rest.is_empty() {
            let (literal, tail) = rest.split_at(rest.find(['{', '}']).unwrap_or(rest.len()));
            if !literal.is_empty() {
                pattern.push_str(&regex::escape(literal));
                after_variable = false;
            }
            rest = tail;
            if rest.is_empty() {
                break;
            }
            let expression = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).ok_or(BadTemplate::Brace)?;
            let (inside, tail) = expression;
            rest = tail;
            let (anything, name) = inside.strip_prefix('+').map_or((false, inside), |name| (true, name));
            let fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if !fits {
                return Err(BadTemplate::Expression(inside.to_owned()));
            }
            if variables.iter().any(|known| known == name) {
                return Err(BadTemplate::Twice(name.to_owned()));
            }
            if std::mem::replace(&mut after_variable, true) {
                return Err(BadTemplate::Touching);
            }
            pattern.push_str(if anything { "(.+)" } else { "([^/?#]+)" });
            variables.push(name.to_owned());
        }
        if variables.is_empty() {
            return Err(BadTemplate::NoVariable);
        }
        pattern.push('$');
        let regex = Regex::new(&pattern).map_err(|_| BadTemplate::TooLarge)?;
        Ok(Self { text: text.to_owned(), variables, regex })
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its variables, in order.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The variables' values in a URI; `None` if it does not match.
    pub fn matched(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if uri.len() > URI_BYTES {
            return None;
        }
        let captures = self.regex.captures(uri)?;
        let values = self.variables.iter().zip(captures.iter().skip(1));
        values.map(|(name, value)| Some((name.clone(), decoded(value?.as_str())?))).collect()
    }

    /// The URI of these values; `None` if one is missing.
    pub fn expand(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut out = String::new();
        let mut rest = self.text.as_str();
        while let Some((literal, tail)) = rest.split_once('{') {
            out.push_str(literal);
            let (name, tail) = tail.split_once('}')?;
            rest = tail;
            let (anything, name) = name.strip_prefix('+').map_or((false, name), |name| (true, name));
            let plain: &[u8] = if anything { b"/:?#[]@!$&'()*+,;=" } else { b"" };
            out.push_str(&percent_encoded(&value(name)?, plain));
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, 2.3) and these.
pub fn percent_encoded(text: &str, plain: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Percent-decodes once.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit()? * 16 + digit()?);
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, uri: &str) -> Option<Vec<String>> {
        let matched = UriTemplate::parse(template).unwrap().matched(uri)?;
        Some(matched.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn a_variable_is_one_segment_unless_it_says_otherwise() {
        let one = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(values("a://{x}/data", "a://123/data"), one("123"));
        assert_eq!(values("a://{x}/data", "a://1/2/data"), None);
        assert_eq!(values("a://{+x}", "a://1/2/data"), one("1/2/data"));
        assert_eq!(values("a://{x}", "a://"), None);
        assert_eq!(values("a://{x}", "a://caf%C3%A9%20b"), one("café b"));
        for bad in ["a://%", "a://%4", "a://%zz", "a://%ff", "a://a%00b", "b://x", "a://x?y", "xa://x"] {
            assert_eq!(values("a://{x}", bad), None, "{bad}");
        }
        assert_eq!(values("a.b/{x}", "aXb/y"), None, "a literal is a literal");
        assert_eq!(values("a:{x}-{y}", "a:1-2-3").unwrap(), ["1-2", "3"]);
    }

    #[test]
    fn what_cannot_be_matched_is_refused() {
        let refused = |text: &str| UriTemplate::parse(text).unwrap_err();
        assert_eq!(refused("a:{x"), BadTemplate::Brace);
        assert_eq!(refused("a:x}"), BadTemplate::Brace);
        assert_eq!(refused("a:{?x}"), BadTemplate::Expression("?x".into()));
        assert_eq!(refused("a:{x*}"), BadTemplate::Expression("x*".into()));
        assert_eq!(refused("a:{x}/{x}"), BadTemplate::Twice("x".into()));
        assert_eq!(refused("a:{x}{y}"), BadTemplate::Touching);
        assert_eq!(refused("a:x"), BadTemplate::NoVariable);
    }

    #[test]
    fn a_hostile_uri_takes_linear_time() {
        let template = "a:{+a}/{+b}/{+c}/{+d}/{+e}/x";
        let uri = format!("a:{}", "/".repeat(URI_BYTES - 2));
        assert_eq!(values(template, &uri), None);
    }

    #[test]
    fn what_was_expanded_matches_again() {
        let template = UriTemplate::parse("a://{x}/{+y}").unwrap();
        let value = |name: &str| Some(if name == "x" { "a/b é" } else { "c/d%" }.to_owned());
        let uri = template.expand(value).unwrap();
        assert_eq!(uri, "a://a%2Fb%20%C3%A9/c/d%25");
        assert_eq!(template.matched(&uri).unwrap()[1].1, "c/d%");
        assert_eq!(template.expand(|_| None), None);
    }
}
