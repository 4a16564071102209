//! Every entry on memory that was full of NaN: what reads an element before anything wrote it shows, and what is to be zero is.

use crate::lab::{Lab, Outcome, dtype_name, ensure};
use crate::real::Element;
use cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice};
use host::Complex;

/// Bytes that are taken at once, while there are so many.
const PIECE: usize = 256 << 20;
/// Bytes of the small ones: operands and slots of small shapes are no larger. The driver cuts what is smaller than 1 MiB from pages of 2 MiB.
const SMALL_PIECE: usize = 256 << 10;
const PIECES_A_PAGE: usize = (2 << 20) / SMALL_PIECE;
const SMALL_PIECES: usize = 256 * PIECES_A_PAGE;
/// Bytes that each program fills before it begins: more than most of its operands have, and little of a GPU that other processes use too.
const AT_START: usize = 4 << 30;

/// Does the checks in memory of the GPU that was full of NaN, as far as the driver gives it out again uncleared. The emulator's is never
/// zero before it is set. None of it is read, which compute-sanitizer would take for a fault: [`run`] tells how much is given out.
pub fn in_nan(lab: &Lab, checks: impl FnOnce(&Lab) -> Outcome) -> Outcome {
    let raw = if lab.is_emulated() { None } else { lab.stream.as_raw() };
    let Some(raw) = raw else { return checks(lab) };
    let bytes = fill(raw, AT_START)?;
    let _holders = sprinkle(raw)?;
    lab.note(&format!("before all: {} MiB were full of NaN", bytes >> 20));
    checks(lab)
}

/// Fills the free memory with NaN, and runs every entry in what was freed.
pub fn run(lab: &Lab) -> Outcome {
    let Some(raw) = lab.stream.as_raw() else {
        lab.skip("poison", "the CPU's memory is cleared by the system");
        return Ok(());
    };
    let bytes = fill(raw, usize::MAX)?;
    lab.note(&format!("poison: {} MiB were full of NaN", bytes >> 20));
    lab.record(|| "poison".into(), ensure(bytes > 0, || "no memory was free".into()))?;
    let _holders = sprinkle(raw)?;
    let kept = kept(raw)?;
    if kept < 0.9 {
        // Then the driver clears what is freed, and what follows finds zeros.
        lab.skip("poison", &format!("only {:.0}% of what is allocated next is NaN", 100.0 * kept));
        return Ok(());
    }
    for len in [1, 7, 1000, 16_384, 65_536, 65_537, 1 << 20, 10_000_019] {
        zeros::<f32>(lab, len)?;
        zeros::<f64>(lab, len)?;
        zeros::<Complex<f64>>(lab, len)?;
    }
    crate::small::run(lab)
}

/// What is to be zero is, in memory that was not.
fn zeros<T: Element>(lab: &Lab, len: usize) -> Outcome {
    let found = lab.device.zeros::<T>(len, 1)?.download(&lab.stream)?;
    let wrong = found.as_slice().and_then(|found| found.iter().position(|value| value.bits() != 0));
    let result = match (found.as_slice().map(<[T]>::len), wrong) {
        (Some(count), None) if count == len => Ok(()),
        (_, wrong) => Err(format!("element {wrong:?} is not 0").into()),
    };
    lab.record(|| format!("poison, {len} zeros, {}", dtype_name::<T>()), result)
}

/// Takes the memory that there is in pieces, but no more than so much, fills it with bytes of NaN, and frees it; how much it was.
fn fill(raw: *mut std::ffi::c_void, most: usize) -> Outcome<usize> {
    // SAFETY: the lab's stream, which outlives the check.
    let stream = unsafe { cust::extra::borrow_stream(raw) };
    let (mut pieces, mut piece) = (Vec::new(), PIECE);
    while piece >= 1 << 20 && pieces.len() < most / PIECE {
        // SAFETY: any byte is a u8; nothing reads it before it is set.
        match unsafe { DeviceBuffer::<u8>::uninitialized(piece) } {
            Ok(buffer) => pieces.push(buffer),
            Err(_) => piece /= 2,
        }
    }
    let mut bytes = 0;
    for buffer in &mut pieces {
        // SAFETY: nothing else knows of it; it is waited for below.
        unsafe { buffer.set_8_async(0xff, &stream) }?;
        bytes += buffer.len();
    }
    stream.synchronize()?;
    Ok(bytes)
}

/// Fills small pieces with NaN, of which the driver cuts several from one page of 2 MiB, and frees most of them. What is allocated next and is as
/// small comes from those pages, which are not cleared while a piece of each is held: those that are returned.
fn sprinkle(raw: *mut std::ffi::c_void) -> Outcome<Vec<DeviceBuffer<u8>>> {
    // SAFETY: as in `fill`.
    let stream = unsafe { cust::extra::borrow_stream(raw) };
    let mut pieces = Vec::new();
    for _ in 0..SMALL_PIECES {
        // SAFETY: as in `fill`.
        let mut piece = unsafe { DeviceBuffer::<u8>::uninitialized(SMALL_PIECE) }?;
        // SAFETY: as in `fill`.
        unsafe { piece.set_8_async(0xff, &stream) }?;
        pieces.push(piece);
    }
    stream.synchronize()?;
    let mut index = 0;
    pieces.retain(|_| {
        index += 1;
        index % PIECES_A_PAGE == 1
    });
    Ok(pieces)
}

/// The share of NaN in memory that is allocated now.
fn kept(raw: *mut std::ffi::c_void) -> Outcome<f64> {
    use cust::memory::AsyncCopyDestination;
    // SAFETY: as in `fill`.
    let stream = unsafe { cust::extra::borrow_stream(raw) };
    let mut found = vec![0_u32; SMALL_PIECE / 4];
    // SAFETY: any bits are a u32, and only looked at.
    let buffer = unsafe { DeviceBuffer::<u32>::uninitialized(found.len()) }?;
    // SAFETY: the buffer's own memory.
    let slice = unsafe {
        DeviceSlice::from_raw_parts(DevicePointer::<u32>::from_raw(buffer.as_device_ptr().as_raw()), buffer.len())
    };
    // SAFETY: waited for before either side can be used.
    let copied = unsafe { slice.async_copy_to(found.as_mut_slice(), &stream) };
    stream.synchronize()?;
    copied?;
    let nans = found.iter().filter(|bits| f32::from_bits(**bits).is_nan()).count();
    Ok(nans as f64 / found.len() as f64)
}
