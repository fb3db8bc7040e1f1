//! `twodoor install`: every client, fresh and with a configuration of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may fail by panicking"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_twodoor");

const SURFACE: &str = "surface: hello\nversion: 1.0.0\ntools:\n  greet:\n    description: Says hello.\n    read_only: true\n    run: [echo, hello]\n";

/// A home, a project in it, and a surface in that.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        fs::write(folder.path().join("project/hello.yaml"), SURFACE).unwrap();
        Self(folder)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.arg("install").args(arguments).current_dir(self.at("project")).stdin(Stdio::null());
        command.env_clear().env("HOME", self.at("")).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn install(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.install(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    }

    fn surface(&self) -> String {
        self.at("project/hello.yaml").display().to_string()
    }

    /// Every file beneath the home, and what it holds.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.at("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((entry.path(), fs::read(entry.path()).unwrap_or_default()));
                }
            }
        }
        found.sort();
        found
    }
}

/// Each client: its name, the user's file, the project's file, the path to the entries, the entry.
fn clients(surface: &str) -> Vec<(&'static str, &'static str, Option<&'static str>, &'static str, Value)> {
    let args = json!(["serve", surface]);
    let binary = fs::canonicalize(BINARY).unwrap().display().to_string();
    let typed = json!({ "type": "stdio", "command": binary, "args": args });
    let plain = json!({ "command": binary, "args": args });
    let local = json!({ "type": "local", "command": [binary, "serve", surface], "enabled": true });
    vec![
        ("claude-code", ".claude.json", Some("project/.mcp.json"), "/mcpServers", typed.clone()),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", None, "/mcpServers", plain.clone()),
        ("cursor", ".cursor/mcp.json", Some("project/.cursor/mcp.json"), "/mcpServers", typed.clone()),
        ("vscode", ".config/Code/User/mcp.json", Some("project/.vscode/mcp.json"), "/servers", typed),
        ("opencode", ".config/opencode/opencode.json", Some("project/opencode.json"), "/mcp", local),
        ("codex", ".codex/config.toml", Some("project/.codex/config.toml"), "", plain.clone()),
        ("gemini", ".gemini/settings.json", Some("project/.gemini/settings.json"), "/mcpServers", plain),
    ]
}

fn toml(entry: &Value) -> String {
    let (command, args) = (&entry["command"], &entry["args"]);
    format!("[mcp_servers.hello]\ncommand = {command}\nargs = [{}, {}]\n", args[0], args[1])
}

#[test]
fn every_client_gets_an_entry_where_it_looks_and_a_second_time_changes_nothing() {
    let place = Place::new();
    for (client, user, project, path, entry) in clients(&place.surface()) {
        for (scope, file) in [("user", Some(user)), ("project", project)] {
            let Some(file) = file else {
                assert_eq!(place.install(&[client, "hello.yaml", "--scope", scope]).0, 2);
                continue;
            };
            let arguments = [client, "hello.yaml", "--scope", scope];
            let dry = place.good(&[&arguments[..], &["--dry-run"]].concat());
            assert!(dry.contains("nothing was written") && !place.at(file).exists(), "{client}");
            let said = place.good(&arguments);
            assert!(said.contains(file) && said.contains("\n+ ") && said.contains("next: "), "{said}");
            let text = place.text(file);
            if path.is_empty() {
                assert_eq!(text, toml(&entry));
            } else {
                let value: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(value.pointer(path).unwrap(), &json!({ "hello": entry }), "{client}");
            }
            let mode = fs::metadata(place.at(file)).unwrap().permissions().mode() & 0o077;
            assert_eq!(mode == 0, scope == "user", "{client} {scope}: {mode:o}");
            let before = place.everything();
            assert!(place.good(&arguments).starts_with("unchanged: "), "{client}");
            assert_eq!(place.everything(), before);
            assert!(place.good(&[&arguments[..], &["--remove"]].concat()).contains("\n- "), "{client}");
            assert!(!place.text(file).contains("hello"), "{client}: {}", place.text(file));
            assert!(place.good(&[&arguments[..], &["--remove"]].concat()).starts_with("unchanged: "), "{client}");
        }
    }
}

#[test]
fn what_is_there_stays_byte_for_byte() {
    let place = Place::new();
    for (client, user, _, path, entry) in clients(&place.surface()) {
        let key = path.trim_start_matches('/');
        let other =
            if key == "mcp" { "{ \"type\": \"remote\", \"url\": \"https://x\" }" } else { "{ \"command\": \"x\" }" };
        let (before, after) = if key.is_empty() {
            let before = "# mine\r\nmodel = \"o\" # why\r\n\r\n[mcp_servers.other]\r\ncommand = 'x'\r\n\r\n[tui]\r\ntheme = \"dark\"".to_owned();
            let after = format!("{before}\r\n\r\n{}", toml(&entry).replace('\n', "\r\n"));
            (before, after)
        } else {
            let around = |new: &str| {
                format!(
                    "\u{feff}{{\r\n    // mine, {{\r\n    \"theme\": 1.50,\r\n    \"{key}\": {{\r\n        \"other\": {other}, /* last */{new}\r\n    }},\r\n    \"z\": [ 1,2 ],\r\n}}\r\n"
                )
            };
            let before = around("");
            // An entry as it is written into this file.
            place.write("made.json", &before);
            place.good(&[client, "hello.yaml", "--path", "../made.json"]);
            let made = place.text("made.json");
            let new =
                made.split("/* last */").nth(1).unwrap().split("\r\n    },\r\n    \"z\"").next().unwrap().to_owned();
            assert!(
                new.starts_with("\r\n        \"hello\": {\r\n            \"") && new.ends_with("\r\n        },"),
                "{new:?}"
            );
            (before, around(&new))
        };
        place.write(user, &before);
        fs::set_permissions(place.at(user), fs::Permissions::from_mode(0o640)).unwrap();
        let (code, _, stderr) = place.install(&[client, "hello.yaml"]);
        assert_eq!(code, 0, "{client}: {stderr}");
        assert_eq!(place.text(user), after, "{client}");
        assert_eq!(fs::metadata(place.at(user)).unwrap().permissions().mode() & 0o777, 0o640);
        // A client that reads plain JSON alone has not read this file before either.
        assert_eq!(stderr.contains("does not read"), client.starts_with("claude"), "{client}: {stderr}");
        place.good(&[client, "hello.yaml", "--remove"]);
        let removed = place.text(user);
        assert_eq!(removed.trim_end(), before.trim_end(), "{client}");
    }
}

#[test]
fn an_entry_that_says_something_else_is_left_alone_unless_it_is_to_be_replaced() {
    let place = Place::new();
    for (client, user, _, path, entry) in clients(&place.surface()) {
        let before = if path.is_empty() {
            "[mcp_servers.hello]\ncommand = \"other\"\n\n[mcp_servers.hello.env]\nA = \"1\"\n\n[x]\ny = 1\n".to_owned()
        } else {
            format!("{{ \"{}\": {{ \"hello\": {{ \"command\": \"other\" }}, \"z\": {{}} }} }}", &path[1..])
        };
        place.write(user, &before);
        let (code, stdout, stderr) = place.install(&[client, "hello.yaml"]);
        assert_eq!(code, 1, "{client}: {stdout}{stderr}");
        assert!(
            stderr.contains(&format!("{user}:1:")) && stderr.contains("other") && stderr.contains("--replace"),
            "{stderr}"
        );
        assert_eq!(place.install(&[client, "hello.yaml", "--remove"]).0, 1);
        assert_eq!(place.text(user), before);
        place.good(&[client, "hello.yaml", "--replace"]);
        let text = place.text(user);
        if path.is_empty() {
            assert_eq!(text, format!("{}\n\n[x]\ny = 1\n", toml(&entry)));
        } else {
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value.pointer(path).unwrap(), &json!({ "hello": entry, "z": {} }), "{client}");
        }
        place.write(user, &before);
        place.good(&[client, "hello.yaml", "--remove", "--replace"]);
        assert!(!place.text(user).contains("hello"), "{}", place.text(user));
    }
}

#[test]
fn what_an_owner_added_to_the_entry_is_kept() {
    let place = Place::new();
    place.good(&["cursor", "hello.yaml"]);
    let with = place.text(".cursor/mcp.json").replace("\"command\"", "\"env\": { \"A\": \"1\" },\n      \"command\"");
    place.write(".cursor/mcp.json", &with);
    assert!(place.good(&["cursor", "hello.yaml"]).contains("with its own env"));
    place.good(&["cursor", "hello.yaml", "--replace"]);
    assert_eq!(place.text(".cursor/mcp.json"), with);
}

#[test]
fn a_file_that_is_broken_is_refused_with_its_place_and_left_as_it_is() {
    let place = Place::new();
    for (client, user, _, path, _) in clients(&place.surface()) {
        let key = if path.is_empty() { "mcp_servers" } else { &path[1..] };
        let broken: Vec<(Vec<u8>, &str)> = if path.is_empty() {
            vec![
                (b"a = 1\nb = \n".to_vec(), ":2:"),
                (b"a = 1\n\xff\n".to_vec(), ":2:1"),
                (format!("{key} = 1\n").into_bytes(), ":1:"),
                (format!("{key} = {{ x = {{ command = \"y\" }} }}\n").into_bytes(), ":2:1"),
            ]
        } else {
            vec![
                (b"{\n  \"a\": 1\n  \"b\": 2\n}".to_vec(), ":2:9"),
                (b"{\n\xff}".to_vec(), ":2:1"),
                (b"{\"a\": {".to_vec(), ":1:"),
                (b"[]".to_vec(), ":1:1"),
                (format!("{{\n\"{key}\": null }}").into_bytes(), ":2:"),
                (format!("{{\n\"{key}\": {{}},\n\"{key}\": {{}} }}").into_bytes(), ":3:1"),
                (vec![b'['; 100_000], ":1:"),
            ]
        };
        for (bytes, at) in broken {
            place.write(user, "");
            fs::write(place.at(user), &bytes).unwrap();
            let (code, _, stderr) = place.install(&[client, "hello.yaml"]);
            assert_eq!(code, 2, "{client}: {stderr}");
            assert!(
                stderr.contains(&format!("{user}{at}")),
                "{client} {:?}: {stderr}",
                String::from_utf8_lossy(&bytes)
            );
            assert_eq!(fs::read(place.at(user)).unwrap(), bytes);
            assert_eq!(place.install(&[client, "hello.yaml", "--print"]).0, 0);
        }
    }
}

#[test]
fn links_are_not_followed_and_nothing_is_written_beside_the_file() {
    for (client, user, project, ..) in clients("") {
        for (scope, file) in [("user", Some(user)), ("project", project)] {
            let Some(file) = file else { continue };
            // The file is a link.
            let place = Place::new();
            place.write("elsewhere/file", "{}");
            fs::create_dir_all(place.at(file).parent().unwrap()).unwrap();
            symlink(place.at("elsewhere/file"), place.at(file)).unwrap();
            let before = place.everything();
            let (code, _, stderr) = place.install(&[client, "hello.yaml", "--scope", scope]);
            assert_eq!(code, 2, "{client}: {stderr}");
            assert!(stderr.contains("is a link to") && stderr.contains("--path"), "{stderr}");
            assert_eq!(place.everything(), before);
            // Its folder leads out of where the client looks.
            let outside = tempfile::tempdir().unwrap();
            let place = Place::new();
            let folder = place.at(file).parent().unwrap().to_owned();
            if folder != place.at("") && folder != place.at("project") {
                fs::create_dir_all(folder.parent().unwrap()).unwrap();
                symlink(outside.path(), &folder).unwrap();
                let (code, _, stderr) = place.install(&[client, "hello.yaml", "--scope", scope]);
                assert_eq!(code, 2, "{client}: {stderr}");
                assert!(stderr.contains("leads to"), "{stderr}");
                assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
            }
        }
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let place = Place::new();
    fs::create_dir_all(place.at(".cursor/mcp.json")).unwrap();
    let (code, _, stderr) = place.install(&["cursor", "hello.yaml"]);
    assert_eq!((code, stderr.contains("no regular file")), (2, true), "{stderr}");
    let (code, _, stderr) = place.install(&["cursor", "hello.yaml", "--path", "/dev/null"]);
    assert_eq!((code, stderr.contains("no regular file")), (2, true), "{stderr}");
    let (code, _, stderr) = place.install(&["cursor", "hello.yaml", "--path", "hello.yaml/x"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_folder_that_cannot_be_written_is_said_to_be_so() {
    let place = Place::new();
    // A file where the folder is to be keeps everybody from writing there, whoever runs the test.
    place.write(".gemini", "");
    let (code, _, stderr) = place.install(&["gemini", "hello.yaml"]);
    assert!(code == 1 || code == 2, "{code} {stderr}");
    assert!(stderr.contains(".gemini"), "{stderr}");
    let folder = place.at("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    let (code, _, stderr) = place.install(&["cursor", "hello.yaml", "--path", "../closed/mcp.json"]);
    let is_root = fs::write(folder.join("probe"), "").is_ok();
    assert!(is_root || (code == 1 && stderr.contains("cannot be written")), "{code} {stderr}");
    assert!(is_root || fs::read_dir(&folder).unwrap().count() == 0);
}

#[test]
fn opencode_is_written_in_the_dialect_that_it_has() {
    let place = Place::new();
    let file = ".config/opencode/opencode.jsonc";
    place.write(file, "{\n  // mine\n  \"mcp\": {\n    \"servers\": {\n      \"a\": { \"type\": \"remote\", \"url\": \"https://x\" },\n    },\n  },\n}\n");
    place.good(&["opencode", "hello.yaml"]);
    let text = place.text(file);
    assert!(text.contains("// mine") && text.contains("      \"hello\": {\n        \"type\": \"local\","), "{text}");
    assert!(!text.contains("enabled"), "{text}");
    assert!(place.good(&["opencode", "hello.yaml"]).starts_with("unchanged"));
    place.write(".config/opencode/opencode.json", "{}");
    let (code, _, stderr) = place.install(&["opencode", "hello.yaml"]);
    assert_eq!((code, stderr.contains("several files")), (2, true), "{stderr}");
    place.write("mixed.json", "{\"mcp\": {\"servers\": {\"a\": {\"type\": \"local\"}}, \"b\": {\"type\": \"local\"}}}");
    let path = ["opencode", "hello.yaml", "--path", "../mixed.json"];
    let (code, _, stderr) = place.install(&path);
    assert_eq!((code, stderr.contains("--dialect")), (2, true), "{stderr}");
    place.good(&[&path[..], &["--dialect", "v2"]].concat());
    assert!(place.text("mixed.json").contains("\"hello\""));
    assert!(
        place
            .good(&["opencode", "hello.yaml", "--print", "--dialect", "v2", "--scope", "project"])
            .contains("\"servers\"")
    );
    assert_eq!(place.install(&["cursor", "hello.yaml", "--dialect", "v2"]).0, 2);
}

#[test]
fn a_server_that_runs_already_is_named_by_its_url() {
    let place = Place::new();
    let url = "http://127.0.0.1:8484/mcp";
    for (client, expected) in [
        ("claude-code", json!({ "mcpServers": { "x": { "type": "http", "url": url } } })),
        ("cursor", json!({ "mcpServers": { "x": { "url": url } } })),
        ("vscode", json!({ "servers": { "x": { "type": "http", "url": url } } })),
        ("opencode", json!({ "mcp": { "x": { "type": "remote", "url": url, "enabled": true } } })),
        ("gemini", json!({ "mcpServers": { "x": { "httpUrl": url } } })),
    ] {
        let printed = place.good(&[client, "--http", url, "--name", "x", "--print"]);
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), expected, "{client}");
    }
    let printed = place.good(&["codex", "--http", url, "--name", "x", "--print"]);
    assert_eq!(printed, format!("[mcp_servers.x]\nurl = \"{url}\"\n"));
    place.good(&["codex", "--http", url, "--name", "x"]);
    place.good(&["codex", "--http", url, "--name", "x", "--remove"]);
    for bad in ["ftp://x", "nonsense", "http://", "http://u:p@x/", "http://x/#f", "http://x y/", "http://x/${HOME}"] {
        let (code, _, stderr) = place.install(&["claude-code", "--http", bad, "--name", "x"]);
        assert_eq!(code, 2, "{bad}: {stderr}");
    }
    let (code, _, stderr) = place.install(&["claude-desktop", "--http", url, "--name", "x"]);
    assert_eq!((code, stderr.contains("commands alone")), (2, true), "{stderr}");
    assert!(!place.at(".claude.json").exists());
}

#[test]
fn names_are_held_to_what_the_client_takes() {
    let place = Place::new();
    for (client, name, said) in [
        ("cursor", "a b", "no name"),
        ("cursor", "", "no name"),
        ("cursor", "ä", "no name"),
        ("cursor", "1a", "no name"),
        ("codex", "a.b", "--name a_b"),
        ("codex", "__proto__", "no name"),
        ("cursor", "constructor", "keeps the name"),
        ("claude-code", "workspace", "keeps the name"),
        ("claude-code", "Workspace", "keeps the name"),
        ("opencode", "servers", "keeps the name"),
    ] {
        let (code, _, stderr) = place.install(&[client, "hello.yaml", "--name", name]);
        assert_eq!((code, stderr.contains(said)), (2, true), "{client} {name}: {stderr}");
    }
    let (long, tool) = ("n".repeat(60), "t".repeat(60));
    let (code, _, stderr) = place.install(&["cursor", "hello.yaml", "--name", &long]);
    assert_eq!((code, stderr.contains("at most 54 characters")), (2, true), "{stderr}");
    place.good(&["claude-code", "hello.yaml", "--name", &long]);
    place.write("project/long.yaml", &SURFACE.replace("greet", &tool));
    let (code, _, stderr) = place.install(&["claude-code", "long.yaml", "--name", &"n".repeat(64)]);
    assert_eq!((code, stderr.contains("at most 61 characters")), (2, true), "{stderr}");
    let (code, _, stderr) = place.install(&["cursor", "long.yaml"]);
    assert_eq!((code, stderr.contains("hides such a tool")), (0, true), "{stderr}");
    let (_, _, stderr) = place.install(&["gemini", "hello.yaml", "--name", "a_b"]);
    assert!(stderr.contains("hyphen"), "{stderr}");
    place.write("project/dots.yaml", &SURFACE.replace("surface: hello", "surface: my.tools"));
    let (code, _, stderr) = place.install(&["codex", "dots.yaml"]);
    assert_eq!((code, stderr.contains("--name my_tools")), (2, true), "{stderr}");
}

#[test]
fn a_path_that_a_client_would_read_otherwise_is_refused() {
    let place = Place::new();
    for (folder, clients) in [
        ("a${b}", &["claude-code", "cursor", "vscode", "gemini"][..]),
        ("{env:X}", &["opencode"]),
        ("a$b", &["gemini"]),
    ] {
        place.write(&format!("project/{folder}/hello.yaml"), SURFACE);
        for client in clients {
            let (code, _, stderr) = place.install(&[client, &format!("{folder}/hello.yaml")]);
            assert_eq!((code, stderr.contains("takes for a variable")), (2, true), "{client}: {stderr}");
        }
        place.good(&["codex", &format!("{folder}/hello.yaml"), "--replace"]);
    }
    place.write("project/a b\"\\/hello.yaml", SURFACE);
    let (code, _, stderr) = place.install(&["cursor", "a b\"\\/hello.yaml"]);
    assert_eq!((code, stderr.contains("has a space")), (0, true), "{stderr}");
    let value: Value = serde_json::from_str(&place.text(".cursor/mcp.json")).unwrap();
    let path = place.at("project/a b\"\\/hello.yaml").display().to_string();
    assert_eq!(value["mcpServers"]["hello"]["args"][1], path);
    place.good(&["codex", "a b\"\\/hello.yaml", "--replace"]);
    assert!(place.good(&["codex", "a b\"\\/hello.yaml"]).starts_with("unchanged"));
}

#[test]
fn homes_are_those_of_the_environment_and_no_others() {
    let place = Place::new();
    let output = place.command(&["vscode", "hello.yaml"]).env("XDG_CONFIG_HOME", place.at("xdg")).output().unwrap();
    assert!(output.status.success());
    assert!(place.at("xdg/Code/User/mcp.json").exists() && !place.at(".config").exists());
    for home in ["", "relative"] {
        let output = place.command(&["cursor", "hello.yaml"]).env("HOME", home).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{home}");
    }
    for (client, variable) in [("codex", "CODEX_HOME"), ("claude-code", "CLAUDE_CONFIG_DIR")] {
        let output = place.command(&[client, "hello.yaml"]).env(variable, place.at("own")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.contains("say --path")), (Some(2), true), "{stderr}");
    }
    let before = place.everything();
    for (client, ..) in clients("") {
        place.good(&[client, "hello.yaml", "--print"]);
    }
    assert_eq!(place.everything(), before);
}

#[test]
fn a_surface_that_is_refused_is_not_installed() {
    let place = Place::new();
    place.write("project/bad.yaml", "surface: bad\n");
    for surface in ["bad.yaml", "missing.yaml"] {
        assert_eq!(place.install(&["cursor", surface]).0, 3);
    }
    assert_eq!(place.install(&["cursor"]).0, 3);
    assert_eq!(place.install(&["netscape", "hello.yaml"]).0, 2);
    assert!(!Path::new(&place.at(".cursor")).exists());
}

#[test]
fn variables_that_the_server_needs_are_named_and_their_values_never() {
    let place = Place::new();
    place.write(
        "project/tools/mail/tool.yaml",
        "name: mail\ndescription: Mails.\nentrypoint: main.py\nruntime: python\n\
         secrets: [{ name: \"mail:password\" }, { name: \"mail:signature\", optional: true }]\n\
         actions: [{ name: list, description: Lists., effects: read }]\n",
    );
    place.write("project/tools/mail/main.py", "");
    let surface = "surface: hello\nversion: 1.0.0\nregistry: .\ntools:\n  \
        mails: { description: Lists., read_only: true, target: mail/list }\n  \
        page:\n    description: A page.\n    read_only: true\n    \
        http: { get: \"https://h.example/\", headers: { Authorization: \"Bearer ${PAGE_TOKEN}\" } }\n  \
        greet: { description: Says hello., read_only: true, run: [echo, hello], env: [HOME, GREETING] }\n";
    place.write("project/hello.yaml", surface);
    for (client, under) in [("claude-code", "`env`"), ("opencode", "`environment`"), ("codex", "`env_vars`")] {
        let mut command = place.command(&[client, "hello.yaml"]);
        let output = command.env("MAIL_PASSWORD", "hunter2").env("GREETING", "hunter2").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("GREETING (optional), MAIL_PASSWORD, MAIL_SIGNATURE (optional), PAGE_TOKEN; "), "{said}");
        assert!(said.contains(under) && !said.contains("HOME"), "{said}");
        assert!(!said.contains("hunter2") && !String::from_utf8(output.stdout).unwrap().contains("hunter2"));
    }
    let output = place.command(&["cursor", "--http", "http://127.0.0.1:8484/mcp", "hello.yaml"]).output();
    assert!(!String::from_utf8(output.unwrap().stderr).unwrap().contains("MAIL_PASSWORD"), "it runs elsewhere");
}
