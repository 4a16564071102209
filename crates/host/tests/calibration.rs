//! A GPU that is planned for as it was measured. Skipped, and said so, where there is none. A file of its own: what is
//! calibrated stays so for the whole process.

mod common;

use lanky_host::{Device, Dtype, Layout, Plan, Shape};

#[test]
fn a_calibrated_gpu_is_expected_to_do_what_it_did() -> lanky_host::Result<()> {
    let Some(device) = common::gpu("a_calibrated_gpu_is_expected_to_do_what_it_did") else { return Ok(()) };
    let stream = device.stream()?;
    let described = *device.machine().expect("a GPU has one");
    let ceilings = device.ceilings(&stream)?;
    device.calibrate(&ceilings)?;
    let measured = *device.machine().expect("a GPU has one");
    assert_eq!((measured.read_bytes_per_s, measured.write_bytes_per_s), (ceilings.read, ceilings.write));
    assert_eq!((measured.fma_f32_per_s, measured.sms), (ceilings.fma_f32, described.sms));
    // Another device of the same GPU is the same GPU.
    assert_eq!(Device::cuda(0)?.machine(), Some(&measured));
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let plan = Plan::gemm(&device, shape(20_480, 20_480), shape(20_480, 4), shape(20_480, 4)).build()?;
    let choice = plan.choice().expect("a GPU's plan has one");
    let read_s = choice.bound.read_bytes as f64 / ceilings.read;
    assert!(choice.bound.seconds() >= read_s && choice.bound.seconds() <= read_s * 1.01, "{plan}");
    let reading = Plan::gemm(&device, shape(20_480, 20_480), shape(20_480, 4), shape(20_480, 4)).reads_c().build()?;
    let more = reading.choice().expect("a GPU's plan has one").bound.read_bytes - choice.bound.read_bytes;
    assert_eq!(more, 20_480 * 4 * 8);
    Ok(())
}
