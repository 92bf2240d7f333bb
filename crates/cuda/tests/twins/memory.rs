//! Arrays and streams.

use crate::kit::{Done, Rng, device};
use latens_cuda::{bf16, f16};

#[test]
fn arrays_keep_their_values() {
    let Some(device) = device(&[]) else { return };
    let mut rng = Rng::new(3);
    for n in [1, 7, 100_003] {
        let values = rng.normals(n);
        let mut array = device.upload(&values).done("upload");
        assert_eq!(array.len(), n);
        assert_eq!(device.download(&array).done("download"), values);
        for first in [0, 1, n / 2, n] {
            let part = device.download_first(&array, first).done("download the first");
            assert_eq!(part, values[..first]);
        }
        let other = rng.normals(n.div_ceil(2));
        device.write(&other, &mut array).done("write");
        let expected = [&other[..], &values[other.len()..]].concat();
        assert_eq!(device.download(&array).done("download"), expected, "write to {n} numbers");
        let mut copy = device.zeros::<f32>(n).done("zeros");
        assert_eq!(device.download(&copy).done("download"), vec![0.0; n], "{n} zeros");
        device.copy(&array, &mut copy).done("copy");
        assert_eq!(device.download(&copy).done("download"), expected, "copy of {n} numbers");
        device.clear(&mut copy).done("clear");
        assert_eq!(device.download(&copy).done("download"), vec![0.0; n], "{n} cleared numbers");
        assert_eq!(device.download(&array).done("download"), expected, "source of the copy");
    }
}

#[test]
fn reserve_replaces_only_arrays_that_are_too_short() {
    let Some(device) = device(&[]) else { return };
    let mut array = device.upload(&[1.0f32, 2.0, 3.0]).done("upload");
    device.reserve(&mut array, 2).done("reserve");
    assert_eq!(device.download(&array).done("download"), [1.0, 2.0, 3.0]);
    device.reserve(&mut array, 4).done("reserve");
    assert_eq!(device.download(&array).done("download"), [0.0; 4]);
    device.write::<f32>(&[], &mut array).done("write nothing");
    assert!(!device.upload::<f32>(&[]).done("upload nothing").is_empty());
}

#[test]
fn half_precision_can_be_read_and_written_as_bf16() {
    let Some(device) = device(&[]) else { return };
    let bits = [0x0000, 0x3C00, 0x8001, 0x7BFF, 0xFC00];
    let mut array = device.upload(&bits.map(f16::from_bits)).done("upload");
    let read = device.download(array.as_bf16()).done("download");
    assert_eq!(read, bits.map(bf16::from_bits));
    device.write(&[bf16::from_bits(0x4000)], array.as_bf16_mut()).done("write");
    let read = device.download(&array).done("download");
    assert_eq!(read, [0x4000, 0x3C00, 0x8001, 0x7BFF, 0xFC00].map(f16::from_bits));
}

#[test]
#[expect(unsafe_code, reason = "a second stream is unsafe")]
fn streams_wait_for_each_other() {
    let Some(device) = device(&[]) else { return };
    // SAFETY: `after` orders all uses of `counts`, and the last work is waited for before arrays are dropped.
    let side = unsafe { device.new_stream() }.done("new stream");
    assert_eq!(device.name(), side.name());
    let n = 4_000_000;
    let ones = device.upload(&vec![1.0f32; n]).done("upload");
    let mut counts = device.zeros::<f64>(n).done("zeros");
    for _ in 0..20 {
        device.add_values(&mut counts, &ones, n).done("add_values");
        side.after(&device).done("after");
        side.add_values(&mut counts, &ones, n).done("add_values");
        device.after(&side).done("after");
    }
    device.wait().done("wait");
    let counts = device.download(&counts).done("download");
    assert_eq!(counts.iter().position(|&count| count != 40.0), None, "a count that is not 40");
}

/// The message of the panic of a call.
fn panic_of<T>(call: impl FnOnce() -> T) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(call())));
    match panic.expect_err("a panic").downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().expect("a message")).to_owned(),
    }
}

#[test]
fn lengths_are_checked_before_a_kernel_is_launched() {
    let Some(device) = device(&[]) else { return };
    let mut values = device.upload(&[0.0f32; 3]).done("upload");
    let message = panic_of(|| device.softmax(&mut values, 4));
    assert_eq!(message, "`values` must have at least 4 elements, got 3");
    let table = device.upload(&[0.0f32; 6]).done("upload");
    let mut out = device.zeros(6).done("zeros");
    let message = panic_of(|| device.to_bf16(&mut out, (&table, 2..8)));
    assert_eq!(message, "range 2..8 is out of bounds of an array of 6 elements");
}

#[test]
fn arrays_of_another_device_are_rejected() {
    let Some(device) = device(&[]) else { return };
    let other = latens_cuda::Device::open().done("open a device");
    let mut values = other.upload(&[0.0f32; 4]).done("upload");
    let expected = "an array must be used with the device that allocated it";
    let message = panic_of(|| device.softmax(&mut values, 4));
    assert_eq!(message, expected);
    assert_eq!(panic_of(|| device.download(&values)), expected);
}
