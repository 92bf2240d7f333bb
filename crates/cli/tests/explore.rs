//! `latens explore` and `latens report` with the real program.
#![cfg(unix)]

mod common;

use common::Folder;
use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A folder with a small topic model, documents with years, a log, and a text that is neither.
fn folder() -> Folder {
    let folder = Folder::new();
    let rows = (0..40).map(|i| match i % 2 {
        0 => format!("{i},19{:02},the goal and the ball of the team\n", 60 + i),
        _ => format!("{i},19{:02},the pan and the pot of the cook\n", 60 + i),
    });
    folder.write("documents.csv", format!("id,year,text\n{}", rows.collect::<String>()));
    folder.write("notes.txt", "neither a model nor a log\n");
    folder.json("train lda documents.csv --text-column text --n-topics 2 --n-iterations 20 --log run.jsonl -o m.lda");
    folder
}

fn start(folder: &Folder, args: &str) -> (Child, String) {
    let mut command = folder.interruptible(SigHandler::SigDfl);
    command.args(args.split(' ')).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (child, url.trim_end().to_owned())
}

fn get(url: &str, path: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let (host, base) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request =
        format!("GET /{base}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn stop(mut child: Child) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert!(child.wait().unwrap().success(), "Ctrl-C is how the explorer ends");
}

#[test]
fn the_address_comes_first_and_ctrl_c_ends_it() {
    let folder = folder();
    let (child, url) = start(&folder, "explore m.lda run.jsonl notes.txt --no-browser");
    assert!(url.starts_with("http://localhost:"), "{url}");
    let items = get(&url, "api/items");
    let items: Value = serde_json::from_str(items.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(items[0]["kind"], "lda");
    assert_eq!(items[1]["kind"], "log");
    assert_eq!(items.as_array().unwrap().len(), 2);
    stop(child);
}

#[test]
fn a_host_needs_the_token_of_the_address() {
    let folder = folder();
    let (child, url) = start(&folder, "explore m.lda --host 127.0.0.1 --no-browser");
    assert!(get(&url, "").starts_with("HTTP/1.1 200"));
    let root =
        url[.."http://".len()].to_owned() + url["http://".len()..].split('/').next().unwrap() + "/";
    assert!(get(&root, "").starts_with("HTTP/1.1 403"), "{root}");
    stop(child);
}

#[test]
fn a_report_is_one_file_with_the_numbers_of_topics_show() {
    let folder = folder();
    let written = folder.json(
        "report m.lda --documents documents.csv --by year --bin decade --title Kitchen -o r.html",
    );
    assert_eq!(written["items"], 1);
    let page = fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert_eq!(written["bytes"], page.len());
    let begin = page.split_once("id=\"data\">").unwrap().1;
    let data: Value = serde_json::from_str(begin.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["title"], "Kitchen");
    let shown = folder.json("topics show m.lda");
    let found = data["answers"]["0 topics "]["topics"].as_array().unwrap();
    for (found, topic) in found.iter().zip(shown["topics"].as_array().unwrap()) {
        assert_eq!(found["prevalence"], topic["prevalence"]);
        let first = &topic["words"][0];
        assert_eq!(found["words"][0], first["word"]);
        let words = &data["answers"][format!("0 topic lambda=1&topic={}", topic["topic"])]["words"];
        assert_eq!(words[0]["weight"], first["weight"]);
    }
    let trend = folder.json("topics trend m.lda documents.csv --by year --bin decade");
    let groups = data["answers"]["0 trend "]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 4);
    assert_eq!(groups[0]["topics"][0]["mean"], trend["rows"][0]["prevalence"]);
}

#[test]
fn files_that_are_not_shown_are_named_in_one_line() {
    let folder = folder();
    let one = folder.run("report m.lda notes.txt -o r.html");
    let notes: Vec<&str> = one.stderr.lines().filter(|line| line.contains("skipped")).collect();
    assert_eq!(notes, ["skipped `notes.txt`: not a model or a training log"]);
    for i in 0..4 {
        folder.write(&format!("{i}.txt"), "a text\n");
    }
    let many = folder.run("report 0.txt m.lda 1.txt run.jsonl 2.txt 3.txt notes.txt -o r.html");
    let notes: Vec<&str> = many.stderr.lines().filter(|line| line.contains("skipped")).collect();
    let expected = "skipped 5 files that are not models or training logs: `0.txt`, `1.txt`, `2.txt` and 2 more";
    assert_eq!(notes, [expected]);
}

#[test]
fn what_cannot_be_shown_is_refused_with_a_hint() {
    let folder = folder();
    folder.run("explore notes.txt --no-browser").assert_refused("none of the files is a model");
    folder.run("report missing.lda -o r.html").assert_refused("cannot read `missing.lda`");
    folder.json("train ngram notes.txt -o m.ngram");
    let refused = folder.run("report m.ngram --documents documents.csv -o r.html");
    refused.assert_refused("`--documents` needs a topic model");
    let bytes = fs::read(folder.path().join("m.lda")).unwrap();
    folder.write("damaged.lda", &bytes[..bytes.len() - 9]);
    assert_eq!(folder.run("report damaged.lda -o r.html").code, Some(2));
}
