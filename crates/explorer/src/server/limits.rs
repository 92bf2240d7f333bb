//! Limits of the server.

use std::time::Duration;

/// Limits on what clients may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Size of the body of a request in bytes.
    pub max_body: usize,
    /// Number of open connections. Others wait until one is closed.
    pub max_connections: usize,
    /// Number of queries that are computed at a time.
    pub max_work: usize,
    /// Number of queries that wait to be computed. Others are refused.
    pub max_waiting: usize,
    /// Time to send the header of a request; an idle connection is closed after it.
    pub header_time: Duration,
    /// Time from the header of a request to its answer.
    pub request_time: Duration,
    /// Time after which a connection is closed, even if it is active.
    pub connection_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_body: 256 << 10,
            max_connections: 512,
            max_work: std::thread::available_parallelism().map_or(2, usize::from),
            max_waiting: 256,
            header_time: Duration::from_secs(10),
            request_time: Duration::from_secs(60),
            connection_time: Duration::from_secs(600),
        }
    }
}
