//! Expressions: what may be written, where a problem stands, and what arguments of any kind come to.

use super::*;
use crate::protocol::RawJson;

fn problem(source: &str) -> String {
    Expression::compile(source).map_or_else(|unfit| unfit.problem, |_| String::new())
}

#[test]
fn what_is_no_expression_of_ours_is_refused() {
    for good in [
        "true",
        "args.path.startsWith('a/') || tool == 'x'",
        "has(args.amount) && args.amount > 100",
        "args.to in ['a', 'b']",
        "args.all.exists(x, x.size() > 3 && x != caller)",
        "args.list.all(x, x < 3) && args.list.exists(y, y == 1)",
        "args.sure",
        "args.list.all(x, x in ['a', 'b'])",
        "args.list.exists_one(x, x == 'a')",
        "args['odd name'] == 1",
        "args.path.matches('^[a-z]+$')",
        "args.a == 1 ? true : args.b",
        "!(caller in ['ann'])",
        "size(args.list) > 3",
        "type(args.a) == string",
    ] {
        assert_eq!(problem(good), "", "{good}");
    }
    for bad in [
        "",
        "1",
        "'text'",
        "args",
        "args.a +",
        "args.a + 1",
        "size(args.a)",
        "[true]",
        "{'a': true}",
        "null",
        "arg.a == 1",
        "amount > 3",
        "args.a.startWith('x')",
        "rm('x')",
        "args.list.map(x, x)",
        "size(args.list.map(x, x)) > 1",
        "size(args.list.filter(x, x > 1)) > 1",
        "args.list.all(x, x.matches('a'))",
        "args.list.all(x, x in args.other)",
        "args.a ? 1 : 2",
        "args.all.exists(x, args.all.exists(y, x == y))",
        "args.all.exists(x, x == 1) && x == 2",
        "\u{0}",
        "args.a == 'unfinished",
        "true; false",
        "true true",
    ] {
        assert_ne!(problem(bad), "", "{bad}");
    }
}

#[test]
fn a_problem_stands_at_its_place_and_knows_what_was_meant() {
    let wrong = Expression::compile("args.a == 1 && amout > 3").unwrap_err();
    assert_eq!(wrong.part, Some(15..20), "{wrong:?}");
    let wrong = Expression::compile("arg.a == 'é'").unwrap_err();
    assert!(wrong.remedy.contains("`args`"), "{wrong:?}");
    let wrong = Expression::compile("args.a.startWith('x')").unwrap_err();
    assert!(wrong.remedy.contains("`startsWith`"), "{wrong:?}");
    let wrong = Expression::compile("args.a == ").unwrap_err();
    assert!(wrong.part.is_none_or(|part| part.end <= 10 + 1), "no place beyond it");
}

#[test]
fn what_is_huge_or_deep_is_refused_and_breaks_nothing() {
    let work = || {
        for bad in [
            "(".repeat(900),
            "[".repeat(900),
            "{".repeat(900),
            format!("{}true", "!".repeat(900)),
            format!("{}1 == 1", "-".repeat(900)),
            format!("true{}", " && true".repeat(120)),
            format!("args{}", ".a".repeat(450)),
            format!("1{} == 3", " + 1".repeat(240)),
            format!("args.a{}", "[0]".repeat(300)),
            "true ? true : ".repeat(70) + "true",
            "x".repeat(2000),
            format!("{}true{}", "(".repeat(16), ")".repeat(16)),
        ] {
            if let Ok(expression) = Expression::compile(&bad) {
                let _ = expression.matches(&given("{}"));
            }
        }
    };
    // Half of what a thread of the runtime has.
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(work).unwrap().join().unwrap();
}

fn given(arguments: &'static str) -> Given {
    let text = RawJson::new(bytes::Bytes::from(arguments), &JsonLimits::default()).unwrap();
    Given::new("tool", "ann", &Arguments::new(text).unwrap(), &Declared::default())
}

#[test]
fn arguments_of_any_kind_are_judged_or_fail() {
    let judge = |source: &str, arguments: &'static str| Expression::compile(source).unwrap().matches(&given(arguments));
    for (source, arguments, truth) in [
        ("args.a == 1", r#"{"a":1}"#, Some(true)),
        ("args.a == 1", r#"{"a":1.0}"#, Some(true)),
        ("args.a > 1", r#"{"a":18446744073709551615}"#, Some(true)),
        ("args.a > 1", r#"{"a":1e300}"#, Some(true)),
        ("args.a > 1", r#"{"a":-1e300}"#, Some(false)),
        ("args.a > 1", r#"{"a":99999999999999999999999}"#, Some(true)),
        ("args.a + 1 > 0", r#"{"a":9223372036854775807}"#, None),
        ("args.a / 0 > 0", r#"{"a":1}"#, None),
        ("args.a % 0 > 0", r#"{"a":1}"#, None),
        ("args.a[5] == 1", r#"{"a":[1]}"#, None),
        ("args.a[-1] == 1", r#"{"a":[1]}"#, None),
        ("args.a == 1", "{}", None),
        ("args.a == 1", r#"{"a":"1"}"#, Some(false)),
        ("args.a > 1", r#"{"a":"1"}"#, None),
        ("args.a", r#"{"a":"true"}"#, None),
        ("args.a", r#"{"a":true}"#, Some(true)),
        ("args.a.matches('^(a+)+$')", r#"{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#, Some(false)),
        ("'x'.matches(args.a)", r#"{"a":"("}"#, None),
        ("args.a.b.c == null", r#"{"a":{"b":{"c":null}}}"#, Some(true)),
        ("args.a.exists(x, x == 'b')", r#"{"a":["a","b"]}"#, Some(true)),
        ("args.a.exists(x, x == 'b')", r#"{"a":3}"#, None),
        ("int(args.a) == 1", r#"{"a":"x"}"#, None),
    ] {
        assert_eq!(judge(source, arguments).ok(), truth, "{source} of {arguments}");
    }
}

#[test]
fn what_failed_is_told_without_a_value() {
    let told = Expression::compile("args.a > 1").unwrap().matches(&given(r#"{"a":"hunter2"}"#)).unwrap_err();
    assert!(!told.contains("hunter2"), "{told}");
}
