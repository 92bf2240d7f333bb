use latens_model::group::{Ring, RingSeat};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Runs a function in every process of a ring, here threads.
pub fn in_ring<T: Send>(size: usize, run: impl Fn(Ring) -> T + Sync) -> Vec<T> {
    let seat = |_| RingSeat::new(Ipv4Addr::LOCALHOST.into()).expect("a port of this machine");
    let seats: Vec<RingSeat> = (0..size).map(seat).collect();
    let address = |seat: &RingSeat| seat.address().expect("the address of a port");
    let addresses: Vec<SocketAddr> = seats.iter().map(address).collect();
    std::thread::scope(|scope| {
        let (addresses, run) = (&addresses, &run);
        let spawn = |(rank, seat): (usize, RingSeat)| {
            let join = move || seat.join(rank, addresses, [1; 16], Duration::from_secs(60));
            scope.spawn(move || run(join().expect("a place in the ring")))
        };
        let threads: Vec<_> = seats.into_iter().enumerate().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
