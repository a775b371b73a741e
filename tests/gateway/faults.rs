//! `--check` names the line and the field of each fault.

use std::path::Path;
use std::process::Output;

use tokio::process::Command;

use crate::gateway::executable;

async fn check(file: &Path) -> Output {
    Command::new(executable())
        .arg("--check")
        .arg(file)
        .env("WHATSAPP_APP_SECRET", "a")
        .env("TELEGRAM_SECRET_TOKEN", "b")
        .env("SHOP_SECRET", "c")
        .output()
        .await
        .unwrap()
}

/// What it says of a file, without the file's name.
async fn said(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, text).unwrap();
    let output = check(&file).await;
    assert!(!output.status.success(), "no fault in {text}");
    let said = String::from_utf8(output.stderr).unwrap();
    let before = format!("{}:", file.display());
    said.lines().map(|line| line.replace(&before, "")).collect()
}

#[tokio::test]
async fn the_file_of_the_example_has_none() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gateway/gateway.toml");
    let output = check(&file).await;
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("5 routes, no fault"), "{said}");
}

#[tokio::test]
async fn every_fault_of_a_file_is_told_at_once() {
    let said = said(
        r#"listen = "localhost"
[[route]]
path = "x"
upstream = "https://a"
channel = "whatsap"
mode = "ack-last"
keep = "8 dayz"
[[route]]
path = "/x"
upstream = "http://a/b"
channel = "telegram"
secret_env = "NOT_THERE"
[[route]]
path = "/x"
upstream = "http://a"
channel = "whatsapp"
[[route]]
path = "/y"
upstream = "http://a"
scope = { header = "x-user" }
"#,
    )
    .await;
    for (line, begins) in [
        "1:10: listen: is no address",
        "3:8: route.path: must begin with /",
        "4:12: route.upstream: https is not supported",
        "5:11: route.channel: \"whatsap\" is none of idempotency-key, whatsapp",
        "6:8: route.mode: \"ack-last\" is none; the modes are in-line and ack-first",
        "7:8: route.keep: is no time such as 30s or 8days",
        "8:1: route.scope: is missing",
        "10:12: route.upstream: has a path",
        "12:14: route.secret_env: the environment has no NOT_THERE",
        "13:1: route.secret_env: is missing",
        "14:8: route.path: another route has it",
        "20:9: route.scope: the route has no channel",
    ]
    .iter()
    .enumerate()
    {
        assert!(said[line].starts_with(begins), "{begins}: {said:#?}");
    }
    assert_eq!(said.len(), 12, "{said:#?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_told_with_its_line_and_field() {
    let route = "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\n";
    for (text, begins) in [
        ("listen = 5\n", "1:10: listen: invalid type"),
        ("listen = \"a\n", "1:12: listen: "),
        (
            &format!("{route}upstrem = \"http://a\"\n"),
            "4:1: upstrem: unknown field",
        ),
        (route, "2:1: [[route]]: missing field `upstream`"),
        (
            &format!("{route}upstream = \"http://a\"\nscope = {{ cookie = \"a\" }}\n"),
            "5:11: scope: unknown variant `cookie`",
        ),
    ] {
        let said = said(text).await;
        assert!(said[0].starts_with(begins), "{begins}: {said:#?}");
    }
}

#[tokio::test]
async fn a_path_into_json_is_shown_with_its_fault() {
    let said = said(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = \"http://a\"\n\
         json_path = \"$.a[?]\"\nname = \"a\"\nunverified = true\n",
    )
    .await;
    assert!(said[0].starts_with("5:13: route.json_path: "), "{said:#?}");
    assert!(said[1].ends_with("$.a[?]"), "{said:#?}");
}

#[tokio::test]
async fn a_store_that_is_not_there_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let text = "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = \"http://a\"\n";
    std::fs::write(&file, text).unwrap();
    for url in ["mysql://somewhere", "sqlite:/nowhere/at/all/keys.db"] {
        let gateway = Command::new(executable())
            .arg(&file)
            .env("DATABASE_URL", url)
            .output();
        let output = gateway.await.unwrap();
        assert!(
            !output.status.success() && !output.stderr.is_empty(),
            "{output:?}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}
