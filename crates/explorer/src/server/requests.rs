//! One request and its answer. No part of a request names a file.

use super::access::Access;
use super::limits::Limits;
use crate::error::ViewError;
use crate::explorer::{Explorer, Query};
use crate::page::{INDEX, find};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Scripts, styles and answers come from this server only, and no data becomes a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What all requests share.
pub(crate) struct Shared {
    explorer: Arc<Explorer>,
    access: Access,
    pub(crate) limits: Limits,
    work: Arc<Semaphore>,
    n_waiting: AtomicUsize,
}

type Answer = Response<Full<Bytes>>;

impl Shared {
    pub(crate) fn new(explorer: Arc<Explorer>, access: Access, limits: Limits) -> Shared {
        let work = Arc::new(Semaphore::new(limits.max_work));
        Shared { explorer, access, limits, work, n_waiting: AtomicUsize::new(0) }
    }
}

/// Answers a request within the time limit.
pub(crate) async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Answer, Infallible> {
    let time = shared.limits.request_time;
    let answer = match tokio::time::timeout(time, route(request, &shared)).await {
        Ok(answer) => answer,
        Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "the request timed out"),
    };
    Ok(with_headers(answer))
}

async fn route(request: Request<Incoming>, shared: &Shared) -> Answer {
    let Some(path) = shared.access.path(request.headers(), request.uri().path()) else {
        return problem(StatusCode::FORBIDDEN, "not allowed");
    };
    let is_get = [Method::GET, Method::HEAD].contains(request.method());
    match (path, is_get) {
        ("api/items", true) => computed(shared, |explorer| Ok(explorer.items())).await,
        ("api/query", false) if request.method() == Method::POST => query(request, shared).await,
        ("api/query", _) => not_allowed("POST"),
        ("", true) => text_answer(INDEX.media_type, INDEX.text),
        (path, true) => match find(path) {
            Some(asset) => text_answer(asset.media_type, asset.text),
            None => problem(StatusCode::NOT_FOUND, "there is no such page"),
        },
        _ => not_allowed("GET, HEAD"),
    }
}

/// Reads a query and computes its answer.
async fn query(request: Request<Incoming>, shared: &Shared) -> Answer {
    if !is_json(request.headers()) {
        let message = "the body must be of type application/json";
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let body = Limited::new(request.into_body(), shared.limits.max_body);
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return problem(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
    };
    let query: Query = match serde_json::from_slice(&body) {
        Ok(query) => query,
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    computed(shared, move |explorer| explorer.answer(&query)).await
}

/// Computes an answer on another thread: this one accepts connections, and looks whether the server should stop.
async fn computed(
    shared: &Shared,
    compute: impl FnOnce(&Explorer) -> Result<Value, ViewError> + Send + 'static,
) -> Answer {
    let Some(_place) = Place::take(&shared.n_waiting, shared.limits.max_waiting) else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time");
    };
    let Ok(permit) = Arc::clone(&shared.work).acquire_owned().await else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
    };
    let explorer = Arc::clone(&shared.explorer);
    let work = move || {
        // Held until the work is done, even if nobody waits for it any more.
        let _permit = permit;
        compute(&explorer)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(answer)) => json_answer(StatusCode::OK, &answer),
        Ok(Err(error)) => problem(status(&error), &error.to_string()),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "internal error: the query failed"),
    }
}

/// A place among the queries that wait.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn take(n_waiting: &AtomicUsize, max: usize) -> Option<Place<'_>> {
        let place = Place(n_waiting);
        (n_waiting.fetch_add(1, Ordering::Relaxed) < max).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Pages of other sites cannot send this type without being asked for permission, which this server never gives.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn status(error: &ViewError) -> StatusCode {
    match error {
        ViewError::UnknownItem { .. } | ViewError::UnknownView { .. } => StatusCode::NOT_FOUND,
        ViewError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ViewError::NoAnswer { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        ViewError::Arguments { .. } => StatusCode::BAD_REQUEST,
    }
}

fn problem(status: StatusCode, message: &str) -> Answer {
    json_answer(status, &json!({ "error": message }))
}

fn not_allowed(methods: &'static str) -> Answer {
    let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

fn json_answer(status: StatusCode, value: &Value) -> Answer {
    let mut answer = text_answer("application/json", "");
    *answer.status_mut() = status;
    *answer.body_mut() = Full::new(Bytes::from(value.to_string()));
    answer
}

fn text_answer(media_type: &'static str, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

fn with_headers(mut answer: Answer) -> Answer {
    let headers = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in headers {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
