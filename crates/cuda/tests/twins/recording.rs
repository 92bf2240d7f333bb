//! Recorded work.

use crate::kit::{Done, Rng, device};
use latens_cuda::{Array, Device, Precision, ProductShape, Recordings, Transposed};

const N: usize = 33;

/// Six products that depend on each other; the first row goes through a softmax after each.
fn steps(device: &Device, recordings: &mut Recordings, a: &Array<f32>, x: &mut [Array<f32>; 2]) {
    let work = || {
        for step in 0..6 {
            let (first, second) = x.split_at_mut(1);
            let (from, to) = match step % 2 {
                0 => (&first[0], &mut second[0]),
                _ => (&second[0], &mut first[0]),
            };
            let all = 0..N * N;
            let factors = ((from, all.clone(), Transposed::No), (a, all.clone(), Transposed::Yes));
            let shape = ProductShape { n: N, m: N, k: N };
            device.multiply((to, all), 0.0, factors.0, factors.1, shape, Precision::Full)?;
            device.softmax(to, N)?;
        }
        Ok(())
    };
    device.replay(recordings, work).done("replay");
}

#[test]
fn recorded_work_gives_the_same_results() {
    let Some(device) = device(&[]) else { return };
    let mut rng = Rng::new(7);
    let mut recordings = Recordings::default();
    let matrices =
        [rng.normals(N * N), rng.normals(N * N)].map(|a| device.upload(&a).done("upload"));
    let mut x = [(); 2].map(|()| device.zeros(N * N).done("zeros"));
    for round in 0..12 {
        // Two kinds of work alternate, and both meet new numbers every time.
        let (a, start) = (&matrices[round % 2], rng.normals(N * N));
        device.write(&start, &mut x[0]).done("write");
        steps(&device, &mut recordings, a, &mut x);
        let replayed = device.download(&x[0]).done("download");
        device.write(&start, &mut x[0]).done("write");
        steps(&device, &mut Recordings::default(), a, &mut x);
        assert_eq!(replayed, device.download(&x[0]).done("download"), "round {round}");
    }
}

#[test]
fn other_numbers_are_other_work() {
    let Some(device) = device(&[]) else { return };
    let (ones, mut recordings) = (device.upload(&[1f32; 8]).done("upload"), Recordings::default());
    let mut sum = device.zeros::<f32>(8).done("zeros");
    for factor in [1.0, 2.0, 1.0, 1.0, 2.0, 2.0, 3.0] {
        let work = || device.add_scaled(&mut sum, &ones, 8, factor);
        device.replay(&mut recordings, work).done("replay");
    }
    assert_eq!(device.download(&sum).done("download"), [12.0; 8]);
}

#[test]
fn an_array_that_was_replaced_is_other_work() {
    let Some(device) = device(&[]) else { return };
    let mut recordings = Recordings::default();
    for round in 0..20 {
        let table = device.upload(&[round as f32; 8]).done("upload");
        let mut out = device.zeros::<f32>(8).done("zeros");
        for _ in 0..3 {
            let work = || device.add_scaled(&mut out, &table, 8, 1.0);
            device.replay(&mut recordings, work).done("replay");
        }
        assert_eq!(device.download(&out).done("download"), [3.0 * round as f32; 8]);
    }
}

#[test]
#[should_panic(expected = "may not allocate")]
fn work_that_allocates_is_refused() {
    let Some(device) = device(&[]) else { panic!("may not allocate: there is no device") };
    let _ = device.replay(&mut Recordings::default(), || device.zeros::<f32>(1).map(|_| ()));
}

#[test]
fn work_that_changes_is_not_recorded() {
    let Some(device) = device(&[]) else { return };
    let tables = [1f32, 10.0].map(|x| device.upload(&[x; 8]).done("upload"));
    let mut sum = device.zeros::<f32>(8).done("zeros");
    let (mut recordings, mut n_calls, mut expected) = (Recordings::default(), 0, 0.0);
    for _ in 0..9 {
        let first = n_calls;
        let work = || {
            let table = &tables[n_calls % 2];
            n_calls += 1;
            device.add_scaled(&mut sum, table, 8, 1.0)
        };
        device.replay(&mut recordings, work).done("replay");
        // The last call does the work; the ones before are noted, or recorded in vain.
        assert!(n_calls > first + 1, "a recording was used");
        expected += if (n_calls - 1) % 2 == 0 { 1.0 } else { 10.0 };
    }
    assert_eq!(device.download(&sum).done("download"), [expected; 8]);
}
