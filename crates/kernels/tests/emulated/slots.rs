//! The sum of slots round its block and its unrolling, from none on.

use crate::harness::{Element, Layout, add_slots, compare, result};
use cuda_std::Complex;
use simt::Memory;

fn check<T: Element>((rows, cols): (u32, u32), count: u32, run: usize) {
    println!("{} {rows} x {cols}, {count} slots", T::DTYPE);
    let factors = [1.0, 0.0, -1.0, 0.5].map(T::factor);
    let (alpha, beta) = (factors[run % 4], factors[run / 4 % 4]);
    let layout = Layout::new(rows, cols, run % 2 == 0, (run % 3) as u64);
    let slot = Layout::new(rows, cols, false, 0);
    let values: Vec<T> = (0..count).flat_map(|part| slot.filled(u64::from(part))).collect();
    let c = layout.filled(9);
    let mut memory = Memory::new();
    memory.offset(run % 2);
    let slots = memory.input("slots", &values);
    let out = result(&mut memory, &c, beta);
    let counters = add_slots(&mut memory, (slots, count), (out, layout), (alpha, beta));
    let len = u64::from(rows) * u64::from(cols);
    assert_eq!(counters.operand("slots").loads.elements, len * u64::from(count), "each is read once");
    assert_eq!(counters.operand("C").loads.elements, if beta.is_zero() { 0 } else { len }, "only where β is not 0");
    compare(&memory, (out, layout), &c, (alpha, beta), |i, j| {
        (0..count as usize).fold(T::ZERO, |sum, part| sum.add(values[part * slot.len + slot.at(i, j)]))
    });
}

#[test]
fn sums_of_slots() {
    let shapes = [(1, 1), (5, 3), (17, 15), (16, 16), (257, 1), (37, 14)];
    let mut run = 0;
    for count in [0, 1, 2, 3, 4, 5, 9] {
        for shape in shapes {
            check::<f32>(shape, count, run);
            check::<f64>(shape, count, run + 5);
            check::<Complex<f32>>(shape, count, run + 7);
            check::<Complex<f64>>(shape, count, run + 11);
            run += 1;
        }
    }
}
