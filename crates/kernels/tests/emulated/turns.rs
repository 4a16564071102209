//! Blocks that take tiles in turn: however many there are, every element has the same bits. Plans for all GPUs stand on it, for
//! the number of such blocks is the one thing of a launch that then depends on the GPU.

use crate::harness::{Element, Layout, order};
use crate::numbers::tried;
use lanky_kernels::table::{self, Product, ProductFn};
use model::launch::{blocks_along_x, tiling};
use model::{Kernel, VARIANTS, Variant, variants::tsmm::widest};
use simt::{Launch, Memory};
use watched::numbers::unit;

/// Numbers whose products and sums round in their type: in another order the bits are others.
pub fn rounding<T: Element>(layout: &Layout, seed: u64) -> Vec<T> {
    (0..layout.len).map(|at| T::of_two(unit(seed, at, 0), unit(seed, at, 1))).collect()
}

/// C's memory after a launch of at most so many blocks.
fn product<T: Element>(variant: &Variant, entry: ProductFn<T>, (m, n, k): (u32, u32, u32), blocks: u32) -> Vec<T> {
    let (at_a, at_b, at_c) = (Layout::new(m, k, true, 0), Layout::new(k, n, true, 0), Layout::new(m, n, true, 0));
    let mut memory = Memory::new();
    let a = memory.input("A", &rounding::<T>(&at_a, 3));
    let b = memory.input("B", &rounding::<T>(&at_b, 5));
    let c = memory.output::<T>("C", at_c.len);
    let tiling = tiling(variant, m.into(), n.into());
    let x = blocks_along_x(variant, &tiling, (m.into(), n.into(), k.into()), blocks.into());
    let launch = Launch {
        kernel: variant.entry,
        grid: [x as u32, 1, tiling.z as u32],
        block: [variant.threads, 1, 1],
        shared_bytes: tiling.shared_bytes,
        seed: order(format_args!("{} {m} {n} {k} {blocks}", variant.entry)),
        ..Launch::default()
    };
    let outcome = launch.run(&mut memory, |operands| {
        let (a, b, c) = (operands.global(a), operands.global(b), operands.global(c));
        let [sa, sb, sc] = [at_a.strides, at_b.strides, at_c.strides];
        // SAFETY: the operands span their elements, and the geometry is that of the entry's row; the emulator checks.
        unsafe { entry(m, n, k, a, sa.row, sa.col, b, sb.row, sb.col, T::ONE, T::ZERO, c, sc.row, sc.col, 0, 0, c) };
    });
    outcome.unwrap_or_else(|fault| panic!("{}: {fault}", variant.entry));
    memory.read(c)
}

fn check<T: Element>(variant: &Variant, entry: ProductFn<T>) {
    let Some((columns, steps)) = widest(variant) else { panic!("{} serves any width", variant.entry) };
    let rows = (1..=4096).take_while(|m| tiling(variant, *m, columns.into()).x == 1).count() as u32;
    let sizes = (3 * rows + 1, columns, steps);
    let whole = product(variant, entry, sizes, u32::MAX);
    for blocks in [1, 2, 3] {
        let bits = |c: &[T]| bytemuck::cast_slice::<T, u8>(c).to_vec();
        assert!(bits(&product(variant, entry, sizes, blocks)) == bits(&whole), "{} by {blocks} blocks", variant.entry);
    }
}

#[test]
fn any_number_of_blocks_gives_the_same_bits() {
    let in_turn = tried().filter(|variant| matches!(variant.kernel, Kernel::Tsmm | Kernel::Tall));
    for variant in in_turn {
        match table::product(variant.entry) {
            Some(Product::F32(entry)) => check(variant, entry),
            Some(Product::F64(entry)) => check(variant, entry),
            Some(Product::C64(entry)) => check(variant, entry),
            Some(Product::C128(entry)) => check(variant, entry),
            None => panic!("{}", variant.entry),
        }
    }
}

/// No other kernel is launched with another number of blocks on another GPU.
#[test]
fn others_have_a_block_for_each_tile() {
    for variant in VARIANTS.iter().filter(|variant| !matches!(variant.kernel, Kernel::Tsmm | Kernel::Tall)) {
        let tiles = tiling(variant, 100_000, 1);
        assert_eq!(blocks_along_x(variant, &tiles, (100_000, 1, 1), 1), tiles.x, "{}", variant.entry);
    }
}

/// Numbers as the test has them do round: added backwards they give other bits.
#[test]
fn the_order_of_a_sum_is_seen() {
    fn sums<T: Element>() -> (T, T) {
        let layout = Layout::new(64, 1, false, 0);
        let (a, b) = (rounding::<T>(&layout, 3), rounding::<T>(&layout, 5));
        let sum = |order: &mut dyn Iterator<Item = usize>| order.fold(T::ZERO, |sum, l| sum.add(a[l].mul(b[l])));
        (sum(&mut (0..64)), sum(&mut (0..64).rev()))
    }
    let differ = |differ: bool, name: &str| assert!(differ, "{name}");
    differ(sums::<f32>().0 != sums::<f32>().1, "f32");
    differ(sums::<f64>().0 != sums::<f64>().1, "f64");
    differ(sums::<cuda_std::Complex<f32>>().0 != sums::<cuda_std::Complex<f32>>().1, "c64");
    differ(sums::<cuda_std::Complex<f64>>().0 != sums::<cuda_std::Complex<f64>>().1, "c128");
}
