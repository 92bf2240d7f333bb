use super::members::Group;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A secret that all processes of a ring know, so that no one else can join.
pub type RingToken = [u8; 16];

/// A hello begins like this, followed by a number in the byte order of the machine, the token, the rank and the size.
const MAGIC: [u8; 8] = *b"latens02";
const HELLO: usize = MAGIC.len() + 4 + 16 + 8 + 8;
/// The answer to a hello.
const WELCOME: [u8; 1] = [1];
/// Seconds after which a process that reads nothing is given up.
const UNREAD: Duration = Duration::from_secs(600);

/// A place in a ring that others can connect to.
#[derive(Debug)]
pub struct RingSeat {
    listener: TcpListener,
}

impl RingSeat {
    /// Listens on a free port of an address of this machine.
    pub fn new(address: IpAddr) -> io::Result<RingSeat> {
        Ok(RingSeat { listener: TcpListener::bind((address, 0))? })
    }

    /// The address that the process before this one must connect to.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Joins the ring as number `rank` of the processes with these addresses. Waits until both neighbors have joined, at
    /// most for `patience`.
    pub fn join(
        self,
        rank: usize,
        addresses: &[SocketAddr],
        token: RingToken,
        patience: Duration,
    ) -> io::Result<Ring> {
        let size = addresses.len();
        if rank >= size {
            let problem = format!("a ring of {size} processes has no rank {rank}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if size == 1 {
            return Ok(Ring { rank, size, lines: Mutex::new(None) });
        }
        let until = Instant::now() + patience;
        let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
        let mut to = connect(addresses[next], until)?;
        to.write_all(&hello(&token, rank, size))?;
        let from = self.accept(&hello(&token, before, size), until)?;
        to.set_read_timeout(Some(until.saturating_duration_since(Instant::now()).max(TICK)))?;
        to.read_exact(&mut [0; WELCOME.len()]).map_err(|_| late())?;
        to.set_write_timeout(Some(UNREAD))?;
        Ok(Ring { rank, size, lines: Mutex::new(Some(Lines::new(from, to)?)) })
    }

    /// Waits for the process that says `expected`, and hangs up on all others.
    fn accept(&self, expected: &[u8; HELLO], until: Instant) -> io::Result<TcpStream> {
        self.listener.set_nonblocking(true)?;
        loop {
            check_time(until)?;
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                    let mut said = [0; HELLO];
                    if stream.read_exact(&mut said).is_ok() && said == *expected {
                        stream.write_all(&WELCOME)?;
                        stream.set_read_timeout(None)?;
                        stream.set_nodelay(true)?;
                        return Ok(stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(TICK),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Connects to an address, which may not be ready yet.
fn connect(address: SocketAddr, until: Instant) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(_) => {
                check_time(until)?;
                std::thread::sleep(TICK);
            }
        }
    }
}

/// The time between two attempts.
const TICK: Duration = Duration::from_millis(20);

fn check_time(until: Instant) -> io::Result<()> {
    if Instant::now() < until { Ok(()) } else { Err(late()) }
}

fn late() -> io::Error {
    let problem = "another process of the ring has not joined in time";
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

fn hello(token: &RingToken, rank: usize, size: usize) -> [u8; HELLO] {
    let numbers = [(rank as u64).to_le_bytes(), (size as u64).to_le_bytes()];
    let order = 1.0f32.to_ne_bytes();
    let bytes = [&MAGIC[..], &order, token, &numbers[0], &numbers[1]].concat();
    bytes.try_into().expect("a hello has a fixed length")
}

/// Processes in a circle, each of which is connected to the next one by TCP.
///
/// Sums go around twice: in the first turn every process completes the sums of one part of the values, in the second all
/// get them. Each sends 2 (n − 1) / n times the bytes of the values. The order of additions depends on the number of
/// processes only, so that the same run has the same result.
pub struct Ring {
    rank: usize,
    size: usize,
    /// `None` in a ring of one process.
    lines: Mutex<Option<Lines>>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({} of {})", self.rank, self.size)
    }
}

/// The connections to both neighbors.
struct Lines {
    from: TcpStream,
    /// Buffers for the next process. A thread writes them, because all processes send before they receive.
    to: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    /// The connection of the writer.
    line: TcpStream,
    received: Vec<f32>,
}

impl Lines {
    fn new(from: TcpStream, mut to: TcpStream) -> io::Result<Lines> {
        let line = to.try_clone()?;
        let (sender, buffers) = channel::<Vec<u8>>();
        let write = move || buffers.iter().try_for_each(|buffer| to.write_all(&buffer));
        let writer = Some(std::thread::spawn(write));
        Ok(Lines { from, to: Some(sender), writer, line, received: Vec::new() })
    }

    fn send(&mut self, values: &[f32]) -> io::Result<()> {
        // All machines have the same byte order, as their hello tells.
        let bytes = bytemuck::cast_slice(values).to_vec();
        let sent = self.to.as_ref().is_some_and(|to| to.send(bytes).is_ok());
        if sent { Ok(()) } else { Err(self.lost()) }
    }

    /// Receives values and combines them with those here.
    fn receive(&mut self, values: &mut [f32], combine: impl Fn(f32, f32) -> f32) -> io::Result<()> {
        self.received.resize(values.len(), 0.0);
        let bytes = bytemuck::cast_slice_mut(&mut self.received);
        if let Err(error) = self.from.read_exact(bytes) {
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => self.lost(),
                _ => error,
            });
        }
        for (value, &received) in values.iter_mut().zip(&self.received) {
            *value = combine(*value, received);
        }
        Ok(())
    }

    fn lost(&self) -> io::Error {
        let problem = "another process of the ring has ended";
        io::Error::new(io::ErrorKind::ConnectionAborted, problem)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The writer ends when all buffers are written, or at once if the next process has ended.
        self.to = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Ring {
    /// The part of `n` values whose sums number `part` completes.
    fn part(&self, n: usize, part: usize) -> Range<usize> {
        let part = part % self.size;
        n * part / self.size..n * (part + 1) / self.size
    }
}

impl Group for Ring {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, values: &mut [f32]) -> io::Result<()> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = lines.as_mut() else { return Ok(()) };
        let summed = self.sum_over(lines, values);
        if summed.is_err() {
            // The other neighbor must not wait, and nothing more is written.
            let _ = lines.from.shutdown(Shutdown::Both);
            let _ = lines.line.shutdown(Shutdown::Both);
        }
        summed
    }
}

impl Ring {
    fn sum_over(&self, lines: &mut Lines, values: &mut [f32]) -> io::Result<()> {
        let (n, size, rank) = (values.len(), self.size, self.rank);
        for turn in 0..size - 1 {
            lines.send(&values[self.part(n, rank + size - turn)])?;
            let part = self.part(n, rank + 2 * size - turn - 1);
            lines.receive(&mut values[part], |here, there| here + there)?;
        }
        for turn in 0..size - 1 {
            lines.send(&values[self.part(n, rank + size - turn + 1)])?;
            let part = self.part(n, rank + size - turn);
            lines.receive(&mut values[part], |_, there| there)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PATIENCE: Duration = Duration::from_secs(60);
    const TOKEN: RingToken = [7; 16];

    #[test]
    fn strangers_cannot_join() {
        let seats: Vec<_> =
            (0..2).map(|_| RingSeat::new(Ipv4Addr::LOCALHOST.into()).unwrap()).collect();
        let addresses: Vec<SocketAddr> = seats.iter().map(|seat| seat.address().unwrap()).collect();
        let strangers: Vec<TcpStream> =
            [&[0; HELLO][..], &hello(&[8; 16], 1, 2), b"GET / HTTP/1.1"]
                .iter()
                .map(|said| {
                    let mut stream = TcpStream::connect(addresses[0]).unwrap();
                    stream.write_all(said).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    stream
                })
                .collect();
        let mut seats = seats.into_iter();
        let (first, second) = (seats.next().unwrap(), seats.next().unwrap());
        let sums: Vec<f32> = std::thread::scope(|scope| {
            let threads = [(0, first), (1, second)].map(|(rank, seat)| {
                let addresses = &addresses;
                scope.spawn(move || {
                    let ring = seat.join(rank, addresses, TOKEN, PATIENCE).unwrap();
                    let mut values = [1.0 + rank as f32];
                    ring.sum(&mut values).unwrap();
                    values[0]
                })
            });
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(sums, [3.0, 3.0]);
        drop(strangers);
    }

    #[test]
    fn a_process_does_not_wait_forever() {
        let seat = RingSeat::new(Ipv4Addr::LOCALHOST.into()).unwrap();
        // No one listens there any more.
        let gone = RingSeat::new(Ipv4Addr::LOCALHOST.into()).unwrap().address().unwrap();
        let addresses = [seat.address().unwrap(), gone];
        let error = seat.join(0, &addresses, TOKEN, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let seat = RingSeat::new(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert!(seat.join(2, &addresses, TOKEN, PATIENCE).is_err());
    }
}
