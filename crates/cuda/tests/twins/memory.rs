//! Arrays: what is put on the device comes back.

use crate::kit::{Done, Rng, device};

#[test]
fn arrays_come_back_as_they_went() {
    let Some(device) = device() else { return };
    let mut rng = Rng::new(3);
    for n in [1, 7, 100_003] {
        let values = rng.normals(n);
        let mut array = device.upload(&values).done("upload");
        assert_eq!(array.len(), n);
        assert_eq!(device.download(&array).done("download"), values);
        let other = rng.normals(n.div_ceil(2));
        device.write(&other, &mut array).done("write");
        let expected = [&other[..], &values[other.len()..]].concat();
        assert_eq!(device.download(&array).done("download"), expected, "write to {n} numbers");
        let mut copy = device.zeros::<f32>(n).done("zeros");
        assert_eq!(device.download(&copy).done("download"), vec![0.0; n], "{n} zeros");
        device.copy(&array, &mut copy).done("copy");
        assert_eq!(device.download(&copy).done("download"), expected, "a copy of {n} numbers");
        device.clear(&mut copy).done("clear");
        assert_eq!(device.download(&copy).done("download"), vec![0.0; n], "{n} numbers cleared");
        assert_eq!(device.download(&array).done("download"), expected, "what was copied stays");
    }
}

#[test]
fn room_is_made_only_where_there_is_too_little() {
    let Some(device) = device() else { return };
    let mut array = device.upload(&[1.0f32, 2.0, 3.0]).done("upload");
    device.reserve(&mut array, 2).done("reserve");
    assert_eq!(device.download(&array).done("download"), [1.0, 2.0, 3.0]);
    device.reserve(&mut array, 4).done("reserve");
    assert_eq!(device.download(&array).done("download"), [0.0; 4]);
    device.write::<f32>(&[], &mut array).done("write nothing");
    assert!(!device.upload::<f32>(&[]).done("upload nothing").is_empty());
}

#[test]
fn work_beside_other_work_waits_where_it_is_told_to() {
    let Some(device) = device() else { return };
    let beside = device.beside().done("beside");
    assert_eq!(device.name(), beside.name());
    let n = 4_000_000;
    let ones = device.upload(&vec![1.0f32; n]).done("upload");
    let mut counts = device.zeros::<f64>(n).done("zeros");
    for _ in 0..20 {
        device.add_values(&mut counts, &ones, n).done("add_values");
        beside.after(&device).done("after");
        beside.add_values(&mut counts, &ones, n).done("add_values");
        device.after(&beside).done("after");
    }
    device.wait().done("wait");
    let counts = device.download(&counts).done("download");
    assert_eq!(counts.iter().position(|&count| count != 40.0), None, "a count that is not 40");
}
