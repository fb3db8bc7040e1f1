//! What a change keeps, and what is refused.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn entry() -> Ordered {
    Ordered::map([("command", "/bin/x".into()), ("args", Ordered::List(vec!["serve".into(), "/s.yaml".into()]))])
}

fn added(text: &str) -> String {
    let mut json = JsonText::read(text.as_bytes()).unwrap();
    json.set(&[Step::Key("mcpServers"), Step::Key("new")], &entry()).unwrap();
    String::from_utf8(json.bytes()).unwrap()
}

fn removed(text: &str) -> String {
    let mut json = JsonText::read(text.as_bytes()).unwrap();
    json.remove(&["mcpServers"], "new").unwrap();
    String::from_utf8(json.bytes()).unwrap()
}

#[test]
fn an_entry_is_put_behind_the_others_and_nothing_else_is_touched() {
    let new = "\"new\": {\n      \"command\": \"/bin/x\",\n      \"args\": [\"serve\", \"/s.yaml\"]\n    }";
    let fresh = format!("{{\n  \"mcpServers\": {{\n    {new}\n  }}\n}}\n");
    for (before, after) in [
        ("", fresh.clone()),
        (" \n\n", fresh.clone()),
        ("{}", format!("{{\n  \"mcpServers\": {{\n    {new}\n  }}\n}}")),
        ("{}\n", fresh.clone()),
        ("{\n}\n", fresh.clone()),
        ("// mine\n", format!("// mine\n{fresh}")),
        ("{\n  \"mcpServers\": {}\n}\n", fresh),
        (
            "{\n  // top\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"old\": {}\n  }\n}",
            format!("{{\n  // top\n  \"a\": 1, // one\n  \"mcpServers\": {{\n    \"old\": {{}},\n    {new}\n  }}\n}}"),
        ),
        (
            "{\n  \"mcpServers\": {\n    \"old\": {}, // last\n    /* end */\n  },\n}\n",
            format!("{{\n  \"mcpServers\": {{\n    \"old\": {{}}, // last\n    /* end */\n    {new},\n  }},\n}}\n"),
        ),
        (
            "{\n  \"mcpServers\": {\n    \"old\": {} // last, not\n  }\n}\n",
            format!("{{\n  \"mcpServers\": {{\n    \"old\": {{}}, // last, not\n    {new}\n  }}\n}}\n"),
        ),
        (
            "{\"mcpServers\":{\"old\":{}},\"z\":[ 1 ,2]}",
            "{\"mcpServers\":{\"old\":{}, \"new\": { \"command\": \"/bin/x\", \"args\": [\"serve\", \"/s.yaml\"] }},\"z\":[ 1 ,2]}"
                .to_owned(),
        ),
    ] {
        assert_eq!(added(before), after, "{before}");
    }
}

#[test]
fn line_ends_tabs_and_a_mark_are_kept() {
    let after = added("\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"old\": {}\r\n\t}\r\n}\r\n");
    let expected = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"old\": {},\r\n\t\t\"new\": {\r\n\t\t\t\"command\": \"/bin/x\",\
                    \r\n\t\t\t\"args\": [\"serve\", \"/s.yaml\"]\r\n\t\t}\r\n\t}\r\n}\r\n";
    assert_eq!(after, expected);
}

#[test]
fn what_was_added_is_removed_again_without_a_trace() {
    for before in [
        "{\n  \"mcpServers\": {\n    \"old\": {}\n  }\n}\n",
        "{\n  \"mcpServers\": {\n    \"old\": {}, // last\n  },\n}\n",
        "{\"mcpServers\":{\"old\":{},},\"z\":[ 1 ,2]}",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"old\": {}\r\n\t}\r\n}\r\n",
        "{\n  \"mcpServers\": {\n    \"old\": {} /* , */ // x\n  }\n}\n",
    ] {
        assert_eq!(removed(&added(before)).replace("},  },", "},},").replace("{}, }", "{},}"), before, "{before}");
    }
}

#[test]
fn an_entry_in_the_middle_is_removed_and_comments_stay() {
    let text = "{\n  \"mcpServers\": {\n    // ours\n    \"new\": { \"a\": 1 }, // why\n    \"z\": 1\n  }\n}";
    let expected = "{\n  \"mcpServers\": {\n    // ours\n    // why\n    \"z\": 1\n  }\n}";
    assert_eq!(removed(text), expected);
    assert_eq!(removed("{\"mcpServers\":{\"new\":1, \"z\":2}}"), "{\"mcpServers\":{\"z\":2}}");
    assert_eq!(removed("{\"mcpServers\":{\"z\":2, \"new\":1}}"), "{\"mcpServers\":{\"z\":2 }}");
    assert_eq!(removed("{\"mcpServers\":{\"new\":1}}"), "{\"mcpServers\":{}}");
}

#[test]
fn what_is_no_json_or_ambiguous_is_refused_with_its_place() {
    for (text, line, column, said) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", 2, 9, "expected comma"),
        ("{ a: 1 }", 1, 3, "string for object property"),
        ("{ 'a': 1 }", 1, 3, "single-quoted"),
        ("{ \"a\": 0x1 }", 1, 8, "hexadecimal"),
        ("{", 1, 1, "unterminated object"),
        ("{} {}", 1, 4, "more than one"),
    ] {
        let flaw = JsonText::read(text.as_bytes()).unwrap_err();
        assert_eq!((flaw.line, flaw.column), (line, column), "{text}: {flaw:?}");
        assert!(flaw.problem.to_lowercase().contains(said), "{text}: {flaw:?}");
    }
    assert!(JsonText::read(b"{\n\xff}").unwrap_err().line == 2);
    assert!(JsonText::read("[".repeat(100_000).as_bytes()).is_err());
    for (text, line, column, said) in [
        ("[]", 1, 1, "a list: expected an object"),
        ("{\"mcpServers\":\n null}", 2, 2, "null: expected an object"),
        ("{\"mcpServers\":{},\n\"mcpServers\":{}}", 2, 1, "twice"),
        ("{\"mcpServers\":{\"new\":1,\n  \"ne\\u0077\":2}}", 2, 3, "twice"),
    ] {
        let mut json = JsonText::read(text.as_bytes()).unwrap();
        let flaw = json.set(&[Step::Key("mcpServers"), Step::Key("new")], &entry()).unwrap_err();
        assert_eq!((flaw.line, flaw.column), (line, column), "{text}: {flaw:?}");
        assert!(flaw.problem.contains(said), "{text}: {flaw:?}");
        assert_eq!(json.bytes(), text.as_bytes());
    }
}

#[test]
fn what_plain_json_has_not_is_found() {
    let place =
        |text: &str| JsonText::read(text.as_bytes()).unwrap().beyond_plain().map(|flaw| (flaw.line, flaw.column));
    assert_eq!(place("{\n\"a\": 1 // x\n}"), Some((2, 8)));
    assert_eq!(place("{\n\"a\": [1,]\n}").map(|(line, _)| line), Some(2));
    assert_eq!(place("{\"a\": \"// no\"}"), None);
}

#[test]
fn a_value_is_replaced_and_a_list_grows() {
    let mut json = JsonText::read(b"{ \"v\": \"1\", \"l\": [ {\"v\": \"1\"} ] }").unwrap();
    json.set(&[Step::Key("v")], &"2".into()).unwrap();
    json.set(&[Step::Key("l"), Step::Item(0), Step::Key("v")], &"2".into()).unwrap();
    json.push(&[Step::Key("l")], &"x".into()).unwrap();
    assert_eq!(String::from_utf8(json.bytes()).unwrap(), "{ \"v\": \"2\", \"l\": [ {\"v\": \"2\"}, \"x\" ] }");
    assert_eq!(json.value(), json!({ "v": "2", "l": [{ "v": "2" }, "x"] }));
    assert_eq!(json.place(&[Step::Key("l"), Step::Item(0)]), Some((1, 20)));
}

/// Trivia of every kind, and members around the place.
fn texts() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n", "\r\n", "\t", "/* , } */", "// \" {\n", "\n\n  "]);
    let blanks = prop::collection::vec(blank, 12);
    let member = prop::sample::select(vec!["", "\"a\":1", "\"ü\":[{}]", "\"b\":{\"c\":\"}\"}"]);
    (blanks, prop::collection::vec(member, 4), any::<[bool; 3]>()).prop_map(|(b, m, commas)| {
        let row = |members: [&str; 2], gaps: [&str; 3], trailing: bool| {
            let some: Vec<_> = members.into_iter().filter(|member| !member.is_empty()).collect();
            let comma = if trailing && !some.is_empty() { "," } else { "" };
            format!("{}{}{}{comma}{}", gaps[0], some.join(&format!("{},", gaps[1])), gaps[1], gaps[2])
        };
        let servers = row([m[0], if m[1] == m[0] { "" } else { m[1] }], [b[0], b[1], b[2]], commas[0]);
        let servers = format!("\"mcpServers\"{}:{}{{{servers}}}", b[3], b[4]);
        let other = if m[2] == "\"a\":1" { "\"x\":0" } else { "" };
        format!("{}{{{}}}{}", b[5], row([other, &servers], [b[6], b[7], b[8]], commas[1]), b[9])
    })
}

proptest! {
    #[test]
    fn whatever_the_file_looks_like_its_own_text_stays(text in texts()) {
        let Ok(mut json) = JsonText::read(text.as_bytes()) else { return Ok(()) };
        let before = json.value();
        json.set(&[Step::Key("mcpServers"), Step::Key("new")], &entry()).unwrap();
        let after = String::from_utf8(json.bytes()).unwrap();
        // Every character is still there, in its order.
        let mut rest = after.chars();
        prop_assert!(text.chars().filter(|c| !c.is_whitespace()).all(|c| rest.any(|other| other == c)), "{after}");
        json.remove(&["mcpServers"], "new").unwrap();
        prop_assert_eq!(json.value(), before);
    }

    #[test]
    fn no_text_makes_the_reader_fail_otherwise_than_by_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(mut json) = JsonText::read(&bytes) {
            prop_assert_eq!(json.bytes(), bytes);
            let _ = json.set(&[Step::Key("mcpServers"), Step::Key("new")], &entry());
        }
    }
}
