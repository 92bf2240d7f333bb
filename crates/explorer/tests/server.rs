//! The HTTP interface: what it refuses, and what it survives.

use latens::corpus::Lexicon;
use latens::model::{LanguageModel, Model, ModelWriter};
use latens::prelude::*;
use latens_explorer::{Explorer, Limits, Server};
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A language model whose answers wait until they are allowed to end.
#[derive(Debug)]
struct Slow {
    model: Ngram,
    gate: Arc<Gate>,
}

/// Counts the computations that wait in it, until it opens.
#[derive(Debug, Default)]
struct Gate {
    n_waiting: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.n_waiting.fetch_add(1, Ordering::SeqCst);
        wait_until("the gate opens", || self.is_open.load(Ordering::SeqCst));
    }

    fn wait_for(&self, n: usize) {
        wait_until("computations begin", || self.n_waiting.load(Ordering::SeqCst) >= n);
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }
}

/// A test that fails here would otherwise wait for ever.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

impl Model for Slow {
    fn kind(&self) -> &'static str {
        "slow"
    }

    fn description(&self) -> &'static str {
        "a slow model"
    }

    fn lexicon(&self) -> &Lexicon {
        self.model.lexicon()
    }

    fn params_json(&self) -> Value {
        self.model.params_json()
    }

    fn facts(&self) -> &Map<String, Value> {
        self.model.facts()
    }

    fn writer(&self) -> ModelWriter<'_> {
        self.model.writer()
    }

    fn as_language_model(&self) -> Option<&dyn LanguageModel> {
        self.gate.pass();
        None
    }
}

/// A server with one small topic model, which stops when it is dropped.
struct Running {
    address: SocketAddr,
    url: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn with(host: Option<IpAddr>, limits: Limits) -> Running {
        let texts = ["goals and balls", "pans and pots", "a ball in the goal", "a pot in the pan"];
        let documents = Documents::from_texts(texts).unwrap();
        let topics = Lda::params().n_topics(2).n_iterations(20).fit(&documents).unwrap();
        Running::showing("<b>kitchen</b>", Box::new(topics), host, limits)
    }

    fn showing(name: &str, model: Box<dyn Model>, host: Option<IpAddr>, limits: Limits) -> Running {
        let mut explorer = Explorer::default();
        explorer.add_model(name, model);
        let server = Server::bind(explorer, host, 0).unwrap().limits(limits);
        let (address, url) = (server.address(), server.url());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || server.run(|| stopped.load(Ordering::Relaxed)).unwrap();
        Running { address, url, stop, thread: Some(thread::spawn(run)) }
    }

    /// A server with a model that answers when the gate opens.
    fn slow(limits: Limits) -> (Running, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let corpus = Corpus::from_lines(["a b a", "b a b"]).unwrap();
        let model = Ngram::params().order(2).fit(&corpus).unwrap();
        let slow = Slow { model, gate: Arc::clone(&gate) };
        (Running::showing("slow", Box::new(slow), None, limits), gate)
    }

    fn start() -> Running {
        Running::with(None, Limits::default())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes on a new connection, and returns everything that comes back.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that refuses early closes the connection while it is written to.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    fn get(&self, path: &str) -> String {
        let host = self.host();
        self.send(
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    }

    fn post(&self, body: &str) -> String {
        self.send(post(&self.host(), body, "Connection: close\r\n").as_bytes())
    }

    fn ask(&self, view: &str, args: Value) -> (u16, Value) {
        let answer = self.post(&json!({ "item": 0, "view": view, "args": args }).to_string());
        (status(&answer), body(&answer))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().unwrap();
        wait_until("the server stops", || thread.is_finished());
        thread.join().unwrap();
    }
}

fn post(host: &str, body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    )
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn body(answer: &str) -> Value {
    answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()).unwrap()
}

#[test]
fn the_page_and_its_answers_are_served_with_a_strict_policy() {
    let server = Running::start();
    assert_eq!(server.url, format!("http://localhost:{}/", server.address.port()));
    assert!(server.address.ip().is_loopback());
    let page = server.get("/");
    assert_eq!(status(&page), 200);
    let head = page.split_once("\r\n\r\n").unwrap().0.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header} is missing in {head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    assert!(!head.contains("unsafe-inline"), "{head}");
    for (path, kind) in [("/app.js", "text/javascript"), ("/style.css", "text/css")] {
        let answer = server.get(path);
        assert_eq!(status(&answer), 200, "{path}");
        assert!(answer.contains(kind), "{path}");
    }
    assert_eq!(body(&server.get("/api/items"))[0]["name"], "<b>kitchen</b>");
    let (status, answer) = server.ask("topics", json!({}));
    assert_eq!((status, answer["topics"].as_array().unwrap().len()), (200, 2));
}

#[test]
fn requests_of_other_sites_are_refused() {
    let server = Running::start();
    let host = server.host();
    let ask = |host: &str, more: &str| {
        let query = json!({ "item": 0, "view": "topics" }).to_string();
        status(&server.send(post(host, &query, &format!("Connection: close\r\n{more}")).as_bytes()))
    };
    assert_eq!(ask(&host, ""), 200);
    assert_eq!(ask("evil.example", ""), 403);
    assert_eq!(ask(&host, "Origin: http://evil.example\r\n"), 403);
    assert_eq!(ask(&host, "Sec-Fetch-Site: cross-site\r\n"), 403);
    // What a form of another site can send has another type.
    let form = format!(
        "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\
         Connection: close\r\n\r\n{{}}"
    );
    assert_eq!(status(&server.send(form.as_bytes())), 415);
    let preflight =
        format!("OPTIONS /api/query HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&server.send(preflight.as_bytes())), 405);
}

#[test]
fn no_path_reaches_the_file_system() {
    let server = Running::start();
    let paths = [
        "/../Cargo.toml",
        "/..%2fCargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/index.html/..",
        "/api",
        "/api/query/..",
        "/src/lib.rs",
    ];
    for path in paths {
        let answer = server.get(path);
        assert!([403, 404].contains(&status(&answer)), "{path}: {answer}");
        assert!(!answer.contains("root:"), "{path}");
    }
    assert_eq!(status(&server.get("/api/query")), 405);
}

#[test]
fn with_a_host_a_token_is_needed() {
    let server = Running::with(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), Limits::default());
    let path = server.url.strip_prefix(&format!("http://{}", server.address)).unwrap();
    assert_eq!(path.len(), 34, "{path}");
    assert_eq!(status(&server.get(path)), 200);
    assert_eq!(status(&server.get(&format!("{path}api/items"))), 200);
    for path in ["/", "/app.js", "/api/items", "/00000000000000000000000000000000/"] {
        assert_eq!(status(&server.get(path)), 403, "{path}");
    }
}

#[test]
fn malformed_requests_are_answered_or_closed_and_never_stop_the_server() {
    let server = Running::start();
    let host = server.host();
    let long = "a".repeat(100_000);
    let requests: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"\x00\xff\xfe\r\n\r\n".to_vec(),
        format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "A: b\r\n".repeat(1000)).into_bytes(),
        format!("POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n").into_bytes(),
        format!("POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}").into_bytes(),
        format!("POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n").into_bytes(),
    ];
    for request in requests {
        let mut stream = server.connect();
        let _ = stream.write_all(&request);
        // Some of these only end because this side has nothing more to say.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || status(&text) >= 400, "{text}");
    }
    assert_eq!(server.ask("topics", json!({})).0, 200);
}

#[test]
fn random_changes_of_requests_never_stop_the_server() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(300);
    limits.request_time = Duration::from_secs(2);
    let server = Running::with(None, limits);
    let host = server.host();
    let question = json!({ "item": 0, "view": "topic", "args": { "topic": 1, "lambda": 0.5 } });
    let seeds = [
        post(&host, &question.to_string(), "Connection: close\r\n"),
        format!("GET /app.js HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        format!("GET /api/items HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n\r\n"),
    ];
    let parts: [&[u8]; 12] = [
        b"\r\n",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b": ",
        b"/../",
        b"%2e%2e",
        b"{",
        b"[[[[[[[[",
        b"1e999",
        b"-1",
        b"\"args\":",
    ];
    let mut rng = latens::math::Rng::new(7);
    for round in 0..400 {
        let mut request = seeds[round % seeds.len()].clone().into_bytes();
        for _ in 0..1 + round % 4 {
            let at = (rng.uniform() * request.len() as f64) as usize;
            match (rng.uniform() * 4.0) as usize {
                0 => request[at] = (rng.uniform() * 256.0) as u8,
                1 => _ = request.remove(at),
                2 => request.truncate(at.max(1)),
                _ => {
                    let part = parts[(rng.uniform() * parts.len() as f64) as usize];
                    request.splice(at..at, part.iter().copied());
                }
            }
        }
        let mut stream = server.connect();
        let _ = stream.write_all(&request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let known = [200, 400, 403, 404, 405, 408, 413, 414, 415, 431, 505];
        assert!(text.is_empty() || known.contains(&status(&text)), "{request:?}: {text}");
    }
    assert_eq!(server.ask("topics", json!({})).0, 200);
}

#[test]
fn invalid_questions_get_a_message() {
    let server = Running::start();
    for text in
        ["", "null", "[]", "{", "{\"item\":0}", "{\"item\":-1,\"view\":\"topics\"}", "\u{0}"]
    {
        assert_eq!(status(&server.post(text)), 400, "{text:?}");
    }
    let nested = "[".repeat(100_000);
    assert_eq!(status(&server.post(&nested)), 400);
    let cases = [
        ("no-such-view", json!({}), 404),
        ("topic", json!({}), 400),
        ("topic", json!({ "topic": 2 }), 400),
        ("topic", json!({ "topic": "0" }), 400),
        ("topic", json!({ "topic": 0, "lambda": 2 }), 400),
        ("topic", json!({ "topic": 0, "more": 1 }), 400),
        ("topic", json!([1]), 400),
        ("topics", json!({ "path": "/etc/passwd" }), 400),
        ("documents", json!({ "topic": 0 }), 404),
        ("compare", json!({ "other": 5 }), 404),
        ("color", json!({ "text": "a ".repeat(30_000) }), 413),
        ("sentence", json!({ "text": "a" }), 404),
    ];
    for (view, args, expected) in cases {
        let (status, answer) = server.ask(view, args.clone());
        assert_eq!(status, expected, "{view} {args}: {answer}");
        assert!(!answer["error"].as_str().unwrap().is_empty(), "{view} {args}");
    }
    let missing = json!({ "item": 7, "view": "topics" }).to_string();
    assert_eq!(status(&server.post(&missing)), 404);
}

#[test]
fn huge_bodies_are_refused_without_being_read() {
    let server = Running::start();
    let host = server.host();
    // A length of a terabyte, of which nothing is sent.
    let head = format!(
        "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000000000000\r\nConnection: close\r\n\r\n"
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(&vec![b' '; 1 << 20]);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || status(&answer) == 413, "{answer}");
    assert_eq!(status(&server.post(&" ".repeat(300 << 10))), 413);
    assert_eq!(server.ask("topics", json!({})).0, 200);
}

#[test]
fn a_slow_request_is_closed() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(300);
    limits.request_time = Duration::from_millis(300);
    let server = Running::with(None, limits);
    let host = server.host();
    let parts = [
        "GET / HT".to_owned(),
        format!(
            "POST /api/query HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        ),
    ];
    for part in parts {
        // The rest of the request never comes: without a limit, this would wait for the time-out of `connect`.
        let answer = server.send(part.as_bytes());
        assert!(answer.is_empty() || status(&answer) >= 400, "{answer}");
    }
}

#[test]
fn the_server_stops_while_answers_are_computed() {
    let (server, gate) = Running::slow(Limits::default());
    let mut asked = [server.connect(), server.connect()];
    let host = server.host();
    asked[0]
        .write_all(format!("GET /api/items HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .unwrap();
    let query = json!({ "item": 0, "view": "text", "args": { "text": "a" } }).to_string();
    asked[1].write_all(post(&host, &query, "").as_bytes()).unwrap();
    gate.wait_for(2);
    drop(server);
    gate.open();
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    let mut limits = Limits::default();
    limits.request_time = Duration::from_millis(300);
    let (server, gate) = Running::slow(limits);
    let (status, answer) = server.ask("text", json!({ "text": "a" }));
    assert_eq!((status, &answer["error"]), (503, &json!("the request timed out")));
    gate.open();
}

#[test]
fn questions_beyond_the_limits_are_refused_and_the_others_answered() {
    let mut limits = Limits::default();
    (limits.max_work, limits.max_waiting) = (1, 3);
    let (server, gate) = Running::slow(limits);
    let ask = || server.ask("text", json!({ "text": "a" })).0;
    let mut answers = thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        // Three have a place: one is computed, two wait.
        wait_until("five are refused", || {
            asked.iter().filter(|asked| asked.is_finished()).count() == 5
        });
        gate.wait_for(1);
        assert_eq!(gate.n_waiting.load(Ordering::SeqCst), 1, "one is computed at a time");
        gate.open();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
    });
    answers.sort_unstable();
    // The model has no such view.
    assert_eq!(answers, [404, 404, 404, 503, 503, 503, 503, 503]);
}

#[test]
fn a_thousand_idle_connections_do_not_keep_others_out() {
    let mut limits = Limits::default();
    limits.max_connections = 64;
    limits.header_time = Duration::from_millis(500);
    let server = Running::with(None, limits);
    let (mut idle, mut n_closed) = (Vec::new(), 0);
    for _ in 0..1000 {
        // Some systems allow fewer open files: then the oldest connections are closed.
        let stream = TcpStream::connect(server.address).or_else(|_| {
            n_closed += idle.drain(..100).len();
            TcpStream::connect(server.address)
        });
        idle.push(stream.unwrap());
    }
    assert_eq!(idle.len() + n_closed, 1000);
    assert_eq!(server.ask("topics", json!({})).0, 200);
}

#[test]
fn many_requests_at_a_time_are_all_answered() {
    let server = Running::start();
    let host = server.host();
    let ask = || {
        let mut stream = server.connect();
        for i in 0..40 {
            let topic = i % 2;
            let query = json!({ "item": 0, "view": "topic", "args": { "topic": topic } });
            stream.write_all(post(&host, &query.to_string(), "").as_bytes()).unwrap();
            let answer = read_one(&mut stream);
            assert_eq!(status(&answer), 200, "{answer}");
            assert_eq!(body(&answer)["topic"], topic);
        }
    };
    thread::scope(|scope| (0..64).for_each(|_| _ = scope.spawn(ask)));
}

/// Reads one answer of a connection that stays open.
fn read_one(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "the connection was closed");
        answer.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if length == Some(body.len()) {
                return text.into_owned();
            }
        }
    }
}
