//! A declared request and a call's arguments made into what goes on the wire.
//!
//! Promises: a value is percent-encoded and stays in its segment, its query value, its header: it can
//! neither end a line nor begin another part; who is asked is as declared, whatever the values are.

use std::fmt::Write as _;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request};

use crate::core::given::Given;
use crate::core::redact::Secrets;
use crate::protocol::Arguments;
use crate::protocol::RawJson;
use crate::surface::declaration::{Output, Piece, Template};
use crate::surface::outward::{DeclaredHeader, HeaderPiece, HttpBody, HttpRequest, JsonTemplate};

/// Longest path and query, bytes.
const TARGET_BYTES: usize = 16 * 1024;

/// Longest value of one header, bytes.
const HEADER_BYTES: usize = 8 * 1024;

/// A request that is ready to be sent: what a dry run shows.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The method.
    pub method: &'static str,
    /// The whole URL.
    pub url: String,
    /// Names and values of the headers; a secret is shown by the name of its variable.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    target: String,
    values: Vec<(String, Vec<HeaderPiece>)>,
}

/// Why a request is not sent. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A segment of the path would be none.
    #[error("argument {0:?} stands in the path of a request: it must not be empty")]
    Empty(String),
    /// A segment of the path would lead elsewhere.
    #[error("argument {0:?} stands in the path of a request: it must not be \".\" or \"..\"")]
    Dots(String),
    /// A value cannot stand in a header.
    #[error("argument {0:?} goes into a header: visible ASCII on one line is expected, of at most 8 KiB")]
    Header(String),
    /// The path and the query would be too long.
    #[error("the request would be longer than {TARGET_BYTES} bytes without its body: give shorter values")]
    TooLong,
    /// A variable of the server is not set, or can be no header.
    #[error("this tool needs a credential that the server was started without: the operator has to set it")]
    Secret(String),
    /// The declaration is not one that `load` lets pass.
    #[error("the declaration is defective")]
    Declaration,
}

/// Renders a call.
pub(super) fn prepare(request: &HttpRequest, arguments: &Arguments) -> Result<Prepared, Refusal> {
    let given = Given::new(arguments, &request.arguments);
    let mut target = String::new();
    for segment in &request.segments {
        target.push('/');
        write_segment(segment, given, &mut target)?;
    }
    write_query(request, given, &mut target);
    if target.len() > TARGET_BYTES {
        return Err(Refusal::TooLong);
    }
    let body = request.body.as_ref().and_then(|body| match body {
        HttpBody::Json(json) => write_json(json, given),
        HttpBody::Text(text) => fill(text, given),
    });
    let mut values = Vec::new();
    for DeclaredHeader { name, value } in &request.headers {
        if let Some(value) = header(value, given)? {
            values.push((name.clone(), value));
        }
    }
    let accepted = if request.output == Output::Json { "application/json" } else { "*/*" };
    let media_type = body.as_ref().and(request.body.as_ref()).map(|body| match body {
        HttpBody::Json(_) => "application/json",
        HttpBody::Text(_) => "text/plain; charset=utf-8",
    });
    let agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
    let usual = [(ACCEPT, Some(accepted)), (CONTENT_TYPE, media_type), (USER_AGENT, Some(agent))];
    for (name, value) in usual {
        if let Some(value) = value.filter(|_| values.iter().all(|(said, _)| *said != name.as_str())) {
            values.push((name.as_str().to_owned(), vec![HeaderPiece::Literal(value.to_owned())]));
        }
    }
    let shown = values.iter().map(|(name, value)| (name.clone(), shown(value)));
    Ok(Prepared {
        method: request.verb.name(),
        url: format!("{}{target}", request.origin),
        headers: shown.collect(),
        body,
        target,
        values,
    })
}

impl Prepared {
    /// What is sent, its secrets filled in; and these.
    pub(super) fn into_request(self, authority: &str) -> Result<(Request<Full<Bytes>>, Secrets), Refusal> {
        let secrets = secrets(self.values.iter().map(|(_, value)| value.as_slice()));
        let method = Method::from_bytes(self.method.as_bytes()).map_err(|_| Refusal::Declaration)?;
        let body = Full::new(Bytes::from(self.body.unwrap_or_default()));
        let built = Request::builder().method(method).uri(&self.target).body(body);
        let mut request = built.map_err(|_| Refusal::Declaration)?;
        let headers = request.headers_mut();
        headers.insert(HOST, authority.parse().map_err(|_| Refusal::Declaration)?);
        for (name, value) in self.values {
            let (name, value) = with_secrets(&name, &value)?;
            headers.insert(name, value);
        }
        Ok((request, secrets))
    }
}

/// The secrets of headers' values that are set.
pub(in crate::core) fn secrets<'v>(values: impl Iterator<Item = &'v [HeaderPiece]>) -> Secrets {
    let set = values.flatten().filter_map(|piece| match piece {
        HeaderPiece::Secret(variable) => std::env::var(variable).ok(),
        HeaderPiece::Literal(_) | HeaderPiece::Argument(_) => None,
    });
    let set: Vec<String> = set.collect();
    Secrets::new(set.iter().map(String::as_str))
}

/// A header's name and value, its secrets taken from our environment.
pub(in crate::core) fn with_secrets(name: &str, value: &[HeaderPiece]) -> Result<(HeaderName, HeaderValue), Refusal> {
    let mut text = String::new();
    let mut last = String::new();
    for piece in value {
        match piece {
            HeaderPiece::Literal(literal) => text.push_str(literal),
            HeaderPiece::Secret(variable) => {
                let secret = std::env::var(variable).map_err(|_| Refusal::Secret(variable.clone()))?;
                if secret.is_empty() {
                    return Err(Refusal::Secret(variable.clone()));
                }
                text.push_str(&secret);
                last.clone_from(variable);
            }
            HeaderPiece::Argument(_) => return Err(Refusal::Declaration),
        }
    }
    let mut value: HeaderValue = text.parse().map_err(|_| Refusal::Secret(last))?;
    value.set_sensitive(true);
    Ok((name.parse().map_err(|_| Refusal::Declaration)?, value))
}

/// The value with its arguments filled in; `None` where one of them has no value.
fn header(value: &[HeaderPiece], given: Given<'_>) -> Result<Option<Vec<HeaderPiece>>, Refusal> {
    let mut pieces = Vec::new();
    for piece in value {
        pieces.push(match piece {
            HeaderPiece::Argument(name) => {
                let Some(text) = given.text(name) else { return Ok(None) };
                if text.len() > HEADER_BYTES || text.bytes().any(|b| !matches!(b, b' '..=b'\x7e')) {
                    return Err(Refusal::Header(name.clone()));
                }
                HeaderPiece::Literal(text)
            }
            other => other.clone(),
        });
    }
    Ok(Some(pieces))
}

fn shown(value: &[HeaderPiece]) -> String {
    let piece = |piece: &HeaderPiece| match piece {
        HeaderPiece::Literal(text) => text.clone(),
        HeaderPiece::Argument(name) => format!("{{{name}}}"),
        HeaderPiece::Secret(name) => format!("${{{name}}}"),
    };
    value.iter().map(piece).collect()
}

fn write_segment(segment: &Template, given: Given<'_>, out: &mut String) -> Result<(), Refusal> {
    let from = out.len();
    let mut named = None;
    for piece in &segment.0 {
        match piece {
            // Percent-encoded in the file.
            Piece::Literal(text) => out.push_str(text),
            Piece::Argument(name) => {
                encode(&given.text(name).unwrap_or_default(), out);
                named = Some(name);
            }
        }
    }
    let Some(name) = named else { return Ok(()) };
    match out.get(from..) {
        Some("") => Err(Refusal::Empty(name.clone())),
        Some("." | "..") => Err(Refusal::Dots(name.clone())),
        _ => Ok(()),
    }
}

fn write_query(request: &HttpRequest, given: Given<'_>, out: &mut String) {
    let mut separator = '?';
    if let Some(fixed) = &request.fixed_query {
        out.push(separator);
        out.push_str(fixed);
        separator = '&';
    }
    for (name, value) in &request.query {
        let values = match value.0.as_slice() {
            [Piece::Argument(argument)] => given.texts(argument),
            _ => fill(value, given).into_iter().collect(),
        };
        for value in values {
            out.push(separator);
            separator = '&';
            encode(name, out);
            out.push('=');
            encode(&value, out);
        }
    }
}

/// The text with its arguments filled in; `None` where one of them has no value.
fn fill(template: &Template, given: Given<'_>) -> Option<String> {
    let mut out = String::new();
    for piece in &template.0 {
        match piece {
            Piece::Literal(text) => out.push_str(text),
            Piece::Argument(name) => out.push_str(&given.text(name)?),
        }
    }
    Some(out)
}

/// The value's text; `None` where an argument that it is made of has no value.
fn write_json(json: &JsonTemplate, given: Given<'_>) -> Option<String> {
    Some(match json {
        JsonTemplate::Literal(value) => value.to_text(),
        JsonTemplate::Arguments => given.object(),
        JsonTemplate::Text(template) => match template.0.as_slice() {
            [Piece::Argument(name)] => given.json(name)?,
            _ => RawJson::encode(&fill(template, given)?).as_str().to_owned(),
        },
        JsonTemplate::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(|item| write_json(item, given)).collect();
            format!("[{}]", items.join(","))
        }
        JsonTemplate::Object(members) => {
            let member = |(name, value): &(String, JsonTemplate)| {
                Some(format!("{}:{}", RawJson::encode(name).as_str(), write_json(value, given)?))
            };
            let members: Vec<String> = members.iter().filter_map(member).collect();
            format!("{{{}}}", members.join(","))
        }
    })
}

/// Percent-encodes all but what is unreserved (RFC 3986, 2.3).
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::{Json, RawJson};
    use crate::surface::declaration::Argument;
    use crate::surface::outward::{HttpOrigin, HttpVerb};

    fn declared(segments: &[&str], query: &[(&str, &str)]) -> HttpRequest {
        HttpRequest {
            verb: HttpVerb::Post,
            origin: HttpOrigin { tls: true, host: "h".to_owned(), port: 443 },
            segments: segments.iter().map(|s| Template::parse(s).unwrap()).collect(),
            fixed_query: None,
            query: query.iter().map(|(n, v)| ((*n).to_owned(), Template::parse(v).unwrap())).collect(),
            headers: Vec::new(),
            body: None,
            arguments: vec![Argument {
                name: "d".to_owned(),
                kind: Default::default(),
                default: Some(Json::Number("7".into())),
            }],
            allow_private: false,
            output: Output::Text,
            cap: 100,
            timeout: None,
        }
    }

    fn arguments(text: &str) -> Arguments {
        Arguments::new(RawJson::new(Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default()).unwrap()).unwrap()
    }

    fn url(request: &HttpRequest, given: &str) -> String {
        prepare(request, &arguments(given)).map_or_else(|refused| refused.to_string(), |prepared| prepared.url)
    }

    #[test]
    fn a_value_stays_in_its_segment() {
        let request = declared(&["v1", "{a}", "x-{b}.json"], &[]);
        for (a, b, expected) in [
            (r#""Bern""#, "1.0", "https://h/v1/Bern/x-1.json"),
            (r#""a/b?c#d&e=f%2F..\\""#, "1", "https://h/v1/a%2Fb%3Fc%23d%26e%3Df%252F..%5C/x-1.json"),
            (r#""é\r\nX: y\u0000""#, "1", "https://h/v1/%C3%A9%0D%0AX%3A%20y%00/x-1.json"),
            (r#""@evil.example/""#, "1", "https://h/v1/%40evil.example%2F/x-1.json"),
            (r#""..""#, "1", "argument \"a\" stands in the path of a request: it must not be \".\" or \"..\""),
            (r#"".""#, "1", "argument \"a\" stands in the path of a request: it must not be \".\" or \"..\""),
            (r#""""#, "1", "argument \"a\" stands in the path of a request: it must not be empty"),
            (r#""...""#, "1", "https://h/v1/.../x-1.json"),
        ] {
            assert_eq!(url(&request, &format!("{{\"a\":{a},\"b\":{b}}}")), expected);
        }
        // Two values that are dots only together.
        assert!(url(&declared(&["{a}{b}"], &[]), r#"{"a":".","b":"."}"#).contains("must not be"));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(TARGET_BYTES));
        assert!(url(&declared(&["{a}"], &[]), &long).contains("shorter values"));
    }

    #[test]
    fn a_query_value_is_encoded_repeated_for_a_list_and_left_out_where_there_is_none() {
        let query = [("units", "metric"), ("q", "{a}"), ("tag", "{t}"), ("m", "x{b}"), ("d", "{d}")];
        let mut request = declared(&["s"], &query);
        assert_eq!(
            url(&request, r#"{"a":"a b&c","t":["x","y z",3]}"#),
            "https://h/s?units=metric&q=a%20b%26c&tag=x&tag=y%20z&tag=3&d=7"
        );
        request.fixed_query = Some("k=v".to_owned());
        assert_eq!(url(&request, r#"{"a":null,"b":true,"d":[]}"#), "https://h/s?k=v&units=metric&m=xtrue");
    }

    #[test]
    fn a_body_keeps_the_types_and_digits_of_what_was_sent() {
        let body = |json: JsonTemplate, given: &str| {
            let request = HttpRequest { body: Some(HttpBody::Json(json)), ..declared(&[""], &[]) };
            prepare(&request, &arguments(given)).unwrap().body.unwrap()
        };
        let text = |text: &str| JsonTemplate::Text(Template::parse(text).unwrap());
        let object = JsonTemplate::Object(vec![
            ("name".to_owned(), text("{a}")),
            ("said".to_owned(), text("<{a}>")),
            ("absent".to_owned(), text("{x}")),
            ("list".to_owned(), JsonTemplate::Array(vec![text("{x}"), JsonTemplate::Literal(Json::Null), text("{d}")])),
        ]);
        assert_eq!(body(object, r#"{"a":1.50}"#), r#"{"name":1.50,"said":"<1.5>","list":[null,7]}"#);
        assert_eq!(body(JsonTemplate::Arguments, r#"{"a":"\u0041","n":1e2}"#), r#"{"a":"\u0041","n":1e2,"d":7}"#);
        assert_eq!(body(text("{a}"), r#"{"a":"x\"},{\"y"}"#), r#""x\"},{\"y""#);
    }

    #[test]
    fn a_header_takes_no_line_and_a_secret_is_not_shown() {
        let header = |value: Vec<HeaderPiece>| HttpRequest {
            headers: vec![DeclaredHeader { name: "x-a".to_owned(), value }],
            ..declared(&[""], &[])
        };
        let argument = header(vec![HeaderPiece::Literal("v=".to_owned()), HeaderPiece::Argument("a".to_owned())]);
        for bad in [r#""a\r\nB: c""#, r#""a\nb""#, r#""é""#, r#""\u0000""#] {
            let refused = prepare(&argument, &arguments(&format!("{{\"a\":{bad}}}"))).unwrap_err();
            assert!(matches!(refused, Refusal::Header(_)), "{bad}");
        }
        let first =
            |request: &HttpRequest, given: &str| prepare(request, &arguments(given)).unwrap().headers[0].clone();
        assert_eq!(first(&argument, r#"{"a":"b c"}"#).1, "v=b c");
        assert_ne!(first(&argument, "{}").0, "x-a", "left out without its argument");
        let secret =
            header(vec![HeaderPiece::Literal("Bearer ".to_owned()), HeaderPiece::Secret("TWODOOR_NOT_SET".to_owned())]);
        let prepared = prepare(&secret, &arguments("{}")).unwrap();
        assert_eq!(prepared.headers[0].1, "Bearer ${TWODOOR_NOT_SET}");
        let refused = prepared.into_request("h").unwrap_err();
        assert!(!refused.to_string().contains("TWODOOR_NOT_SET"), "{refused}");
    }
}
