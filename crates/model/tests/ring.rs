//! Sums over the processes of a ring.

use latens_math::Rng;
use latens_model::group::{Group, is_same};
use latens_testkit::in_ring;

fn values(rank: usize, n: usize) -> Vec<f32> {
    let mut rng = Rng::stream(1, rank as u64);
    (0..n).map(|_| rng.uniform() as f32).collect()
}

#[test]
fn every_process_gets_the_sums_over_all() {
    for size in [1, 2, 3, 5] {
        // Fewer values than processes, none, and more than the buffers of a connection hold.
        for n in [0, 2, 17, 1 << 21] {
            let sums = in_ring(size, |ring| {
                let mut values = values(ring.rank(), n);
                ring.sum(&mut values).unwrap();
                values
            });
            let mut expected = vec![0.0; n];
            for rank in 0..size {
                values(rank, n).iter().zip(&mut expected).for_each(|(v, e)| *e += f64::from(*v));
            }
            let is_close = |(sum, e): (&f32, &f64)| (f64::from(*sum) - e).abs() < 1e-5;
            assert!(sums[0].iter().zip(&expected).all(is_close), "{size} processes");
            assert!(sums.iter().all(|other| *other == sums[0]), "{size} processes");
        }
    }
}

#[test]
fn a_process_that_ends_is_noticed_by_its_neighbors() {
    let errors = in_ring(3, |ring| {
        if ring.rank() == 1 {
            return None;
        }
        let mut values = vec![1.0; 1 << 20];
        // The first process may have sent all before it notices.
        (0..3).find_map(|_| ring.sum(&mut values).err())
    });
    assert!(errors[1].is_none());
    for error in [&errors[0], &errors[2]] {
        let error = error.as_ref().expect("an error").to_string();
        assert_eq!(error, "another process of the ring has ended");
    }
}

#[test]
fn processes_notice_that_one_has_another_number() {
    for (size, other) in [(2, None), (3, None), (2, Some(1)), (3, Some(0)), (3, Some(2))] {
        let same = in_ring(size, |ring| {
            let is_other = other == Some(ring.rank());
            is_same(&ring, if is_other { 1 << 40 } else { 2 << 40 }).unwrap()
        });
        assert_eq!(same, vec![other.is_none(); size]);
    }
}
