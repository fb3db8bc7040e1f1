//! What an unquoted YAML scalar stands for: the core schema of YAML 1.2, narrowed to what every
//! reader agrees on.
//!
//! Promises: a number is one only where its text is a JSON number, and keeps that text. What other
//! readers would take for another number is named, not guessed at.

/// What a plain scalar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    /// Its text is a JSON number.
    Number,
    /// A number to some readers, another number or text to others.
    Disputed,
    Text,
}

/// Decides what a plain scalar is.
pub(crate) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" => Plain::Bool(true),
        "false" | "False" | "FALSE" => Plain::Bool(false),
        _ if is_json_number(text) => Plain::Number,
        _ if is_disputed(text) => Plain::Disputed,
        _ => Plain::Text,
    }
}

/// RFC 8259, section 6.
fn is_json_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return false;
    }
    let rest = match rest.strip_prefix('.').map(digits) {
        Some(("", _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    is_exponent_or_empty(rest)
}

fn is_exponent_or_empty(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return text.is_empty() };
    let (power, rest) = digits(rest.strip_prefix(['+', '-']).unwrap_or(rest));
    !power.is_empty() && rest.is_empty()
}

/// The numbers of the core schema that JSON writes otherwise: `+1`, `012`, `0o14`, `0x1F`, `.5`, `1.`, `.inf`, `.nan`.
fn is_disputed(text: &str) -> bool {
    let radix = |prefix: &str, is: fn(&char) -> bool| {
        text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| is(&c)))
    };
    if radix("0o", |c| c.is_digit(8)) || radix("0x", char::is_ascii_hexdigit) {
        return true;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (whole, rest) = digits(unsigned);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    !(whole.is_empty() && fraction.is_empty()) && is_exponent_or_empty(rest)
}

/// The leading digits and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_every_reader_takes_them_for_or_disputed() {
        let table = [
            (Plain::Null, &["", "~", "null", "NULL"][..]),
            (Plain::Bool(true), &["true", "TRUE"]),
            (Plain::Bool(false), &["false", "False"]),
            (Plain::Number, &["0", "-0", "20", "-7", "1.50", "1e5", "0.1E-2", "18446744073709551616"]),
            (
                Plain::Disputed,
                &["+1", "012", "-012", "0o14", "0x1F", ".5", "1.", "1.e3", "+.5", ".inf", "-.INF", ".nan", "00"],
            ),
            (
                Plain::Text,
                &[
                    "1.2.0",
                    "yes",
                    "no",
                    "on",
                    "10s",
                    "-",
                    "--",
                    "-n",
                    ".",
                    "..",
                    "1:30",
                    "2026-01-31",
                    "0o8",
                    "0x",
                    "e5",
                    "+",
                    "nUll",
                    "1_000",
                    "- 1",
                ],
            ),
        ];
        for (plain, texts) in table {
            for text in texts {
                assert_eq!(resolve(text), plain, "{text:?}");
            }
        }
    }
}
