//! Texts against the JSON library, and where the members of a message are.

use serde_json::Value;

use super::*;

fn is_strict(text: &[u8]) -> bool {
    check(text, &JsonLimits::default()).is_ok()
}

#[test]
fn what_the_json_library_takes_is_taken_and_nothing_else() {
    let pieces: &[&[u8]] = &[
        b"0",
        b"-0",
        b"01",
        b"1.",
        b".5",
        b"1e5",
        b"1E+5",
        b"1e",
        b"-",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"9",
        b"true",
        b"tru",
        b"null",
        b"nul",
        b"falsey",
        b"\"\"",
        b"\"a",
        b"\"\\n\"",
        b"\"\\x\"",
        b"\"\\u00e9\"",
        b"\"\\u00g9\"",
        b"\"\\ud83d\\ude00\"",
        b"\"\\ud83d\"",
        b"\"\\ude00\"",
        b"\"\\ud83d\\u0041\"",
        b"\"\\ud83d\\",
        b"\"\x01\"",
        b"\"\x7f\"",
        b"\"\xc3\xa9\"",
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"",
        b" ",
        b"\x0b1",
        b"\xef\xbb\xbf1",
    ];
    let shapes: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (b" ", b"\r\n\t"),
        (b"[", b"]"),
        (b"[1,", b" ]"),
        (b"{\"k\":", b"}"),
        (b"[[", b"],[]]"),
        (b"", b","),
    ];
    for piece in pieces {
        for (before, after) in shapes {
            let text = [*before, *piece, *after].concat();
            let library = serde_json::from_slice::<Value>(&text).is_ok();
            assert_eq!(is_strict(&text), library, "{}", String::from_utf8_lossy(&text));
        }
    }
    for digits in [307, 308, 309, 310] {
        let number = "9".repeat(digits);
        assert_eq!(is_strict(number.as_bytes()), serde_json::from_str::<Value>(&number).is_ok(), "{digits}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_judged_as_the_json_library_judges_them(text in r#"[\[\]{}",:\\0-9eE.+\-u d8truefalsn\n]{0,24}"#) {
        // The library takes a key that stands twice.
        let ours = check(text.as_bytes(), &JsonLimits::default());
        if !matches!(ours, Err(JsonError::Duplicate(_))) {
            proptest::prop_assert_eq!(ours.is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }

    #[test]
    fn a_text_ends_at_the_first_byte_that_does_not_stand_for_itself(text in proptest::collection::vec(0u8..=255, 0..40)) {
        let expected = text.iter().position(|b| *b < 0x20 || *b == b'"' || *b == b'\\').unwrap_or(text.len());
        proptest::prop_assert_eq!(plain_end(&text, 0), expected);
    }
}

#[test]
fn the_members_of_a_message_are_remembered_by_the_object_they_are_of() {
    let text = br#"{"id":1,"p\u0061rams":{"_meta":{"a":[{"x":1}]},"arguments":{"b":2},"name":"n","x":{"_meta":{"no":1}}},"_meta":{"no":1}}"#;
    let found: Vec<(Role, &str, &str)> = walk(text, &JsonLimits::default(), Role::Message)
        .unwrap()
        .outline
        .iter()
        .map(|member| {
            let part = |span: Span| std::str::from_utf8(span.of(text)).unwrap();
            assert_eq!(member.escaped, part(member.key).contains('\\'));
            (member.of, part(member.key), part(member.value))
        })
        .collect();
    let expected = [
        (Role::Meta, "a", r#"[{"x":1}]"#),
        (Role::Params, "_meta", r#"{"a":[{"x":1}]}"#),
        (Role::Arguments, "b", "2"),
        (Role::Params, "arguments", r#"{"b":2}"#),
        (Role::Params, "name", r#""n""#),
        (Role::Params, "x", r#"{"_meta":{"no":1}}"#),
    ];
    assert_eq!(found, expected);
}
