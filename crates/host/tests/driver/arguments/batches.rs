//! Batches: three matrices of each, one after the other.

use super::*;
use lanky_host::{BatchMut, BatchRef, gemm_batched, gemm_batched_by};

impl World {
    fn read_batch(&self, v: View) -> BatchRef<'static, T> {
        let View { place, at, rows, cols, strides, count } = v;
        // SAFETY: no call that is given it gets as far as to look at the memory.
        unsafe { BatchRef::from_raw(&self.devices[place], at, count, rows * cols, (rows, cols), strides) }
            .expect("a span that can be")
    }

    fn written_batch(&self, v: View) -> BatchMut<'static, T> {
        let View { place, at, rows, cols, strides, count } = v;
        // SAFETY: as above.
        unsafe { BatchMut::from_raw(&self.devices[place], at, count, rows * cols, (rows, cols), strides) }
            .expect("a span that can be")
    }
}

const FAULTS: [Fault; 14] = [
    A_ELSEWHERE,
    B_ON_THE_HOST,
    C_ELSEWHERE,
    ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::B, Rule::Rows)),
    ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
    ("c.cols", |g| g.c.cols = 2, Said::Shape(Operand::C, Rule::Cols)),
    ("a.count", |g| g.a.count = 2, Said::Shape(Operand::A, Rule::Count)),
    ("b.count", |g| g.b.count = 4, Said::Shape(Operand::B, Rule::Count)),
    C_OVER_A,
    C_OVER_B,
    A_MISALIGNED,
    B_MISALIGNED,
    C_MISALIGNED,
    ("a.rows c.rows", |g| (rows(&mut g.a, HUGE), rows(&mut g.c, HUGE)).0, Said::Unsupported),
];

#[test]
fn batches_say_what_is_wrong_first() {
    const NAME: &str = "arguments::batches::batches_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let (world, one) = (World::new()?, T::from(1.0));
        let multiply = |stream: usize, g: &Given| {
            let (a, b, c) = (world.read_batch(g.a), world.read_batch(g.b), world.written_batch(g.c));
            gemm_batched(&world.streams[stream], one, a, b, one, c)
        };
        each_and_in_pairs("gemm_batched", product(), &FAULTS, &|g| multiply(0, g));
        // C's last matrix over A's first.
        let before = ("c.at", (|g| g.c.at = g.a.at - 3 * 15 * ELEMENT + ELEMENT) as fn(&mut Given), FAULTS[8].2);
        each_and_in_pairs("gemm_batched", product(), &[before], &|g| multiply(0, g));
        let places = [("a.place", (|g| g.a.place = 0) as fn(&mut Given), Said::Device(Operand::A))];
        let mut on_the_cpu = product();
        (on_the_cpu.a.place, on_the_cpu.b.place, on_the_cpu.c.place) = (2, 2, 2);
        let faults = [&places[..], &FAULTS[3..10]].concat();
        each_and_in_pairs("gemm_batched on the CPU", on_the_cpu, &faults, &|g| multiply(2, g));
        Ok(())
    });
}

/// A kernel that is asked for is looked at last.
#[test]
fn names_of_kernels_are_looked_at_last() {
    const NAME: &str = "arguments::batches::names_of_kernels_are_looked_at_last";
    with_driver(NAME, "devices=2", || {
        let (world, one) = (World::new()?, T::from(1.0));
        // Which of them is in the stream's place: the third has another type's elements.
        let names = ["batched_any", "no_such", "dbatched_any_2x2_t128"];
        let run = |g: &Given| {
            let (a, b, c) = (world.read_batch(g.a), world.read_batch(g.b), world.written_batch(g.c));
            gemm_batched_by(&world.streams[0], names[g.stream], one, a, b, one, c)
        };
        let unknown: Fault = ("stream", |g| g.stream = 1, Said::Variant);
        let of_others: Fault = ("stream", |g| g.stream = 2, Said::Unsupported);
        each_and_in_pairs("gemm_batched_by", product(), &[&FAULTS[..13], &[unknown, of_others]].concat(), &run);
        Ok(())
    });
}
