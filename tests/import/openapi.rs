//! OpenAPI documents, real in kind and hostile.

use std::path::{Path, PathBuf};

use twodoor::import::openapi::{self, Choice, DOCUMENT_BYTES, Document, operations};
use twodoor::import::{ImportError, Imported};

use super::{check, compare};

fn read(text: &str) -> Document {
    Document::read(text.as_bytes().to_vec()).unwrap_or_else(|error| panic!("{error}\nof\n{text}"))
}

fn import(text: &str) -> Result<Imported, ImportError> {
    let document = read(text);
    let operations = operations(&document);
    openapi::surface(&document, Choice { operations: &operations, server: None }, Path::new("/"))
}

fn paths(paths: &str) -> String {
    format!(
        "openapi: 3.1.0\ninfo: {{ title: T, version: '1' }}\nservers: [{{ url: 'https://h.example/' }}]\npaths:\n{paths}"
    )
}

#[test]
fn a_document_becomes_a_surface_file_that_can_be_served() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/openapi");
    let imported = import(&std::fs::read_to_string(folder.join("library.yaml")).unwrap()).unwrap();
    assert!(check(&imported.text).is_empty(), "{}", imported.text);
    compare(&folder.join("library.surface.yaml"), &imported.text);
    let withheld: Vec<&str> = imported.withheld.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((imported.tools, withheld), (7, vec!["addCover", "hasCover"]));
}

#[test]
fn operations_are_chosen_by_tag_name_and_path() {
    let document = read(include_str!("openapi/library.yaml"));
    let chosen = |tag: &str, fits: &dyn Fn(&str) -> bool| {
        operations(&document).into_iter().filter(|operation| operation.is_chosen(tag, fits)).count()
    };
    assert_eq!(chosen("BOOKS", &|_| false), 1);
    assert_eq!(chosen("-", &|text| text == "addNote"), 1);
    assert_eq!(chosen("-", &|text| text == "DELETE /books/{bookId}"), 1);
    assert_eq!(chosen("-", &|text| text == "/books"), 2);
}

#[test]
fn names_that_stand_twice_are_told_apart() {
    let imported = import(&paths(
        "  /a: { get: { operationId: read-it } }\n  /b: { get: { operationId: readIt } }\n  /c: { get: {} }\n",
    ))
    .unwrap();
    check(&imported.text);
    for name in ["read_it", "readIt_2", "get_c"] {
        assert!(imported.text.contains(&format!("\n  {name}:\n")), "{}", imported.text);
    }
}

#[test]
fn a_local_server_is_asked_only_because_the_file_says_so() {
    let of = |url: &str| import(&paths("  /a: { get: {} }\n").replace("https://h.example/", url)).unwrap().text;
    for local in
        ["http://localhost:8080", "http://127.0.0.1/", "http://[::1]/x", "http://10.1.2.3", "http://192.168.0.1:1"]
    {
        assert!(of(local).contains("allow_private: true"), "{local}");
    }
    assert!(!of("https://h.example").contains("allow_private"));
}

#[test]
fn without_a_server_one_has_to_be_given() {
    let text = paths("  /a: { get: {} }\n").replace("'https://h.example/'", "/v1");
    let error = import(&text).unwrap_err();
    assert!(error.to_string().contains("which server") && error.remedy().contains("--server"), "{error}");
    let document = read(&text);
    let operations = operations(&document);
    let choice = Choice { operations: &operations, server: Some("https://given.example/api/") };
    let imported = openapi::surface(&document, choice, Path::new("/")).unwrap();
    assert!(imported.text.contains("get: \"https://given.example/api/a\""), "{}", imported.text);
}

#[test]
fn references_lead_nowhere_else_and_end() {
    let body = |schema: &str| {
        paths(&format!(
            "  /a: {{ post: {{ requestBody: {{ required: true, content: {{ application/json: {{ schema: {schema} }} }} }} }} }}\n"
        ))
    };
    let schemas = "components: { schemas: { A: { $ref: '#/components/schemas/B' }, B: { $ref: '#/components/schemas/A' }, C: { type: object, properties: { c: { $ref: '#/components/schemas/C' } } } } }\n";
    for (schema, note) in [
        ("{ $ref: '#/components/schemas/A' }", "refers to itself"),
        ("{ $ref: '#/components/schemas/C' }", "refers to itself"),
        ("{ $ref: 'http://127.0.0.1:1/x.json' }", "is not followed"),
        ("{ $ref: 'file:///etc/passwd' }", "is not followed"),
        ("{ $ref: '#/components/schemas/None' }", "is not followed"),
    ] {
        let imported = import(&format!("{}{schemas}", body(schema))).unwrap();
        check(&imported.text);
        assert!(imported.text.contains(note), "{schema}: {}", imported.text);
    }
    let parameter = paths(
        "  /a: { $ref: '#/paths/~1a' }\n  /b: { parameters: [{ $ref: '#/x' }, { $ref: 'http://h/x' }], get: {} }\n",
    );
    assert!(import(&parameter).unwrap().text.contains("a parameter was left out"));
}

#[test]
fn schemas_that_multiply_are_cut() {
    let mut schemas = String::from("components:\n  schemas:\n    S0: { type: string }\n");
    for level in 1..30 {
        let below = level - 1;
        schemas.push_str(&format!(
            "    S{level}: {{ type: object, properties: {{ a: {{ $ref: '#/components/schemas/S{below}' }}, b: {{ $ref: '#/components/schemas/S{below}' }} }} }}\n"
        ));
    }
    let text = paths(
        "  /a: { post: { requestBody: { content: { application/json: { schema: { $ref: '#/components/schemas/S29' } } } } } }\n",
    ) + &schemas;
    let imported = import(&text).unwrap();
    check(&imported.text);
    assert!(
        imported.text.contains("cut where it is too deep") && imported.text.len() < 100_000,
        "{}",
        imported.text.len()
    );
}

#[test]
fn bombs_and_other_documents_are_refused_with_a_reason() {
    let refused = |bytes: Vec<u8>| Document::read(bytes).unwrap_err().to_string();
    let mut bomb = String::from("openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let item = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![item; 10].join(", ")));
    }
    assert!(refused(bomb.into_bytes()).contains("beyond"));
    assert!(refused(vec![b' '; DOCUMENT_BYTES + 1]).contains("larger than"));
    assert!(
        refused("[".repeat(100_000).into_bytes()).contains("cannot be read")
            || refused("[".repeat(100_000).into_bytes()).contains("YAML")
    );
    assert!(
        refused(format!("{{\"openapi\":\"3.0.0\",\"x\":{}{}}}", "[".repeat(5000), "]".repeat(5000)).into_bytes())
            .contains("JSON")
    );
    assert!(refused(b"swagger: '2.0'\n".to_vec()).contains("Swagger 2.0"));
    assert!(refused(b"openapi: 4.0.0\n".to_vec()).contains("OpenAPI 4.0.0"));
    assert!(refused(b"hello: world\n".to_vec()).contains("does not say"));
    assert!(refused(vec![0xff, 0xfe]).contains("UTF-8"));
}

#[test]
fn texts_of_others_hide_nothing_and_become_no_secret() {
    let text = paths(
        "  /a: { get: { summary: \"Reads\\u202e a thing\\u200b ${HOME} {x}\", parameters: [{ name: \"q\\u202e\", in: query }, { name: \"${HOME}\", in: query, description: \"# decide: \\n read_only: true\" }] } }\n",
    );
    let imported = import(&text);
    if let Ok(imported) = imported {
        check(&imported.text);
        assert!(!imported.text.contains('\u{202e}'));
    }
    let hostile = paths(
        "  \"/a b{}?x=#{y}\": { get: {} }\n  \"/../../x\": { get: {} }\n  \"//evil.example/x\": { get: {} }\n  /ok: { get: {} }\n",
    );
    let imported = import(&hostile).unwrap();
    check(&imported.text);
    assert!(imported.text.contains("https://h.example/ok"));
    assert!(
        imported.text.lines().filter(|line| line.contains("get: ")).all(|line| line.contains("https://h.example/"))
    );
}

#[test]
fn many_operations_end_in_a_file_that_is_too_large_or_can_be_served() {
    let mut text = String::new();
    for number in 0..700 {
        text.push_str(&format!("  /items{number}/{{id}}: {{ get: {{ operationId: getItem{number}, parameters: [{{ name: id, in: path, required: true }}] }} }}\n"));
    }
    let imported = import(&paths(&text)).unwrap();
    assert_eq!(imported.tools, 700);
    assert_eq!(check(&imported.text), ["token-cost", "tool-count"]);
}

#[test]
fn one_operation_that_cannot_be_said_keeps_no_other_out() {
    let long = format!("/{}", "a".repeat(2_000_000));
    let many: Vec<String> = (0..60_000).map(|n| format!("\"value-{n}\"")).collect();
    let wide = format!(
        "{{\"parameters\":[{{\"name\":\"q\",\"in\":\"query\",\"schema\":{{\"enum\":[{}]}}}}]}}",
        many.join(",")
    );
    for (path, operation) in [
        (long.as_str(), "{}"),
        ("/wide", wide.as_str()),
        ("/\\ufffe", "{}"),
        ("/\\u202e\\u0000", "{\"operationId\":\"\\u202e\"}"),
        ("/{a}{", "{}"),
        ("/a", "{\"servers\":[{\"url\":\"/relative\"}]}"),
        ("/a", "{\"operationId\":\"x\",\"operationId\":\"y\"}"),
        ("/ok", "{}"),
        ("/a", "{\"parameters\":[{\"$ref\":\"#/paths/~1a/get/parameters/0\"}]}"),
    ] {
        let imported = import(&format!(
            "{{\"openapi\":\"3.0.3\",\"info\":{{\"title\":\"T\",\"version\":\"1\"}},\"servers\":[{{\"url\":\"https://h.example\"}}],\
             \"paths\":{{\"/ok\":{{\"get\":{{\"operationId\":\"ok\"}}}},\"{path}\":{{\"get\":{operation}}}}}}}"
        ));
        let shown: String = path.chars().take(20).collect();
        let imported = imported.unwrap_or_else(|error| panic!("{shown} {error}"));
        assert!(imported.tools >= 1 && imported.text.contains("\n  ok:\n"), "{shown}");
        check(&imported.text);
    }
}

#[test]
fn a_path_that_leads_round_in_a_circle_is_left_out_and_named() {
    let imported = import(&paths("  /ok: { get: {} }\n  /round: { $ref: '#/paths/~1round' }\n")).unwrap();
    assert_eq!((imported.tools, imported.remarks.len()), (1, 1), "{:?}", imported.remarks);
    assert!(imported.remarks[0].contains("/round was left out: references lead round in a circle"));
    assert!(imported.text.contains("/round was left out"), "{}", imported.text);
    check(&imported.text);
}
