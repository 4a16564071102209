//! Batches: three matrices of each, one after the other.

use super::*;
use lanky_host::{BatchMut, BatchRef, gemm_batched, gemm_batched_by};

impl World {
    pub(super) fn read_batch(&self, v: View) -> BatchRef<'static, T> {
        let View { place, at, rows, cols, strides, count } = v;
        // SAFETY: no call that is given it gets as far as to look at the memory.
        unsafe { BatchRef::from_raw(&self.devices[place], at, count, rows * cols, (rows, cols), strides) }
            .expect("a span that can be")
    }

    pub(super) fn written_batch(&self, v: View) -> BatchMut<'static, T> {
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
        let faults = [&[A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU], &FAULTS[3..10]].concat();
        each_and_in_pairs("gemm_batched on the CPU", on_the_cpu(product()), &faults, &|g| multiply(2, g));
        Ok(())
    });
}

/// Where lists lie: of A, B and C, three matrices each, in elements.
type Spots = [[u64; 3]; 3];

/// Listed matrices may lie anywhere, but where a matrix of C does; and those of C share no element.
#[test]
fn listed_matrices_say_what_is_wrong_first() {
    const NAME: &str = "arguments::batches::listed_matrices_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let at = |g: &View, spot: u64| View { at: g.at + spot * ELEMENT, ..*g };
        let multiply = |g: &Given, [a, b, c]: Spots| {
            let (one, stream) = (T::from(1.0), &world.streams[g.stream]);
            let a =
                BatchRef::listed(&a[..g.a.count].iter().map(|&spot| world.read(at(&g.a, spot))).collect::<Vec<_>>())?;
            let b =
                BatchRef::listed(&b[..g.b.count].iter().map(|&spot| world.read(at(&g.b, spot))).collect::<Vec<_>>())?;
            let mut c = c[..g.c.count].iter().map(|&spot| world.written(at(&g.c, spot))).collect::<Vec<_>>();
            gemm_batched(stream, one, a, b, one, BatchMut::listed(&mut c)?)
        };
        let spots: Spots = [[100, 0, 50], [0, 0, 12], [40, 15, 80]];
        let faults = [
            &FAULTS[..6],
            &[("a.count", |g| g.a.count = 2, Said::Shape(Operand::A, Rule::Count))],
            &[("b.count", |g| g.b.count = 2, Said::Shape(Operand::B, Rule::Count))],
            // A's matrices are 20 elements long, those of B 12 and of C 15: each time an element is shared.
            &[("c.at", |g| g.c.at = g.a.at + (100 - 80 + 19) * ELEMENT, C_OVER_A.2)],
            &[("c.at", |g| g.c.at = g.b.at - 17 * ELEMENT, C_OVER_B.2)],
            &[A_MISALIGNED, B_MISALIGNED, C_MISALIGNED],
        ];
        for stream in [0, 2] {
            let good = if stream == 2 { on_the_cpu(product()) } else { product() };
            let faults: Vec<Fault> = faults.concat();
            let faults = if stream == 2 { &faults[3..10] } else { &faults[..] };
            each_and_in_pairs("gemm_batched of lists", good, faults, &|g| multiply(g, spots));
            // One on the other's last element, or first, and on the same.
            let two = |of: View| View { count: 2, ..of };
            let mut given = Given { a: two(good.a), b: two(good.b), c: two(good.c), ..good };
            for (c, of, said) in [
                ([0, 14, 0], C, Said::Shape(Operand::View, Rule::Overlap)),
                ([14, 0, 0], C, Said::Shape(Operand::View, Rule::Overlap)),
                ([7, 7, 0], C, Said::Shape(Operand::View, Rule::Overlap)),
                ([0, 119, 0], A, C_OVER_A.2),
                ([200, 86, 0], A, C_OVER_A.2),
                ([11, 200, 0], B, C_OVER_B.2),
            ] {
                given.c.at = of;
                let error = multiply(&given, [[100, 1000, 0], [0, 0, 0], c]).expect_err("they overlap");
                assert_eq!(self::said(&error), said, "{c:?}: {error}");
            }
            assert_eq!(calls(), [""; 0]);
        }
        // One of them alone, wherever it is in the list.
        let one = T::from(1.0);
        for wrong in 0..3 {
            let beside = |of: u64, place: usize| {
                (0..3).map(move |index| View {
                    place: 0,
                    at: of + 1024 * index as u64 + if index == place { 8 } else { 0 },
                    ..view(of, 4, 4)
                })
            };
            for (operand, [a, b, c]) in
                [(Operand::A, [wrong, 9, 9]), (Operand::B, [9, wrong, 9]), (Operand::C, [9, 9, wrong])]
            {
                let read = |of, place| beside(of, place).map(|v| world.read(v)).collect::<Vec<_>>();
                let mut written = beside(C, c).map(|v| world.written(v)).collect::<Vec<_>>();
                let (a, b) = (read(A, a), read(B, b));
                let (a, b, c) = (BatchRef::listed(&a)?, BatchRef::listed(&b)?, BatchMut::listed(&mut written)?);
                let error = gemm_batched(&world.streams[0], one, a, b, one, c).expect_err("off its alignment");
                assert_eq!(said(&error), Said::Shape(operand, Rule::Alignment), "{wrong}: {error}");
            }
        }
        for other in [1, 2] {
            let two = [view(A, 4, 4), View { place: other, ..view(B, 4, 4) }];
            let listed = BatchRef::listed(&two.map(|v| world.read(v))).map(drop);
            assert_eq!(listed.map_err(|error| said(&error)), Err(Said::Device(Operand::View)));
            let listed = BatchMut::listed(&mut two.map(|v| world.written(v))).map(drop);
            assert_eq!(listed.map_err(|error| said(&error)), Err(Said::Device(Operand::View)));
        }
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
        let names_last = [&FAULTS[..13], &[unknown, of_others]].concat();
        each_and_in_pairs("gemm_batched_by", product(), &names_last, &run);
        // Of larger matrices no kernel of batches is asked.
        let large = Given { a: view(A, 40, 40), b: view(B, 40, 40), c: view(C, 40, 40), ..product() };
        let too_large: Fault = ("stream", |g| g.stream = 0, Said::Unsupported);
        each_and_in_pairs("large gemm_batched_by", large, &[&FAULTS[..13], &[unknown, too_large]].concat(), &run);
        // The CPU has none.
        let by_name = |g: &Given| {
            let (a, b, c) = (world.read_batch(g.a), world.read_batch(g.b), world.written_batch(g.c));
            gemm_batched_by(&world.streams[2], names[g.stream], one, a, b, one, c)
        };
        let faults = [&[A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU], &FAULTS[3..10], &[unknown, too_large]].concat();
        each_and_in_pairs(
            "gemm_batched_by on the CPU",
            Given { stream: 0, ..on_the_cpu(product()) },
            &faults,
            &by_name,
        );
        Ok(())
    });
}

/// What BLAS leaves nothing to do for is looked at all the same, and then not done, whatever the size.
#[test]
fn nothing_is_launched_where_nothing_is_to_be_done() {
    const NAME: &str = "arguments::batches::nothing_is_launched_where_nothing_is_to_be_done";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let multiply = |name: Option<&str>, alpha: f64, (m, n, k, count): (usize, usize, usize, usize)| {
            // SAFETY: nothing looks at the memory.
            let read = |at, size| unsafe { BatchRef::from_raw(&device, at, count, 1 << 12, size, (1, size.0)) };
            // SAFETY: as above.
            let c = unsafe { BatchMut::from_raw(&device, C, count, 1 << 12, (m, n), (1, m)) }?;
            match name {
                None => gemm_batched(&stream, alpha, read(A, (m, k))?, read(B, (k, n))?, 1.0, c),
                Some(name) => gemm_batched_by(&stream, name, alpha, read(A, (m, k))?, read(B, (k, n))?, 1.0, c),
            }
        };
        calls();
        for side in [4, 40] {
            for (alpha, m, k, count) in
                [(0.0, side, side, 3), (1.0, side, 0, 3), (1.0, 0, side, 3), (1.0, side, side, 0)]
            {
                let size = (m, side, k, count);
                multiply(None, alpha, size)?;
                let unknown = multiply(Some("no_such"), alpha, size).map_err(|error| said(&error));
                assert_eq!(unknown, Err(Said::Variant), "alpha = {alpha}, {size:?}");
                assert_eq!(calls(), [""; 0], "alpha = {alpha}, {size:?}");
            }
        }
        Ok(())
    });
}

/// Of what the fake says of a launch: the number of matrices; addresses of A, B and C, or, where Cᵀ is computed, of B, A and C; and
/// of their lists.
fn launched() -> Vec<(u64, [u64; 3], [u64; 3])> {
    let numbers = |text: &String| text.split(' ').map(|word| word.parse().expect("a number")).collect::<Vec<u64>>();
    let sorted = |mut addresses: [u64; 3]| {
        addresses.sort_unstable();
        addresses
    };
    asked(8)
        .iter()
        .map(numbers)
        .map(|found| (found[0], sorted([found[1], found[3], found[5]]), [found[2], found[4], found[6]]))
        .collect()
}

/// Batches of more matrices than one launch takes, of which the last has three, one, and as many as the others.
#[test]
fn what_one_launch_does_not_take_the_next_ones_do() {
    const NAME: &str = "arguments::batches::what_one_launch_does_not_take_the_next_ones_do";
    const MOST: u64 = model::launch::batched::MOST_PROBLEMS;
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        // Elements from a matrix to the next, of A, B and C; where A's are all one, it has no distance.
        for (strides, counts) in
            [([16, 16, 16], vec![MOST, 3]), ([0, 40, 17], vec![MOST, MOST, 1]), ([20, 0, 16], vec![MOST, MOST])]
        {
            for (alpha, name) in [(1.0, None), (0.0, None), (1.0, Some("batched_any"))] {
                let all = counts.iter().sum::<u64>() as usize;
                // SAFETY: nothing looks at the memory.
                let read = |at, stride| unsafe { BatchRef::<f64>::from_raw(&device, at, all, stride, (4, 4), (1, 4)) };
                // SAFETY: as above.
                let c = unsafe { BatchMut::from_raw(&device, C, all, strides[2], (4, 4), (1, 4)) }?;
                let (a, b) = (read(A, strides[0])?, read(B, strides[1])?);
                launched();
                match name {
                    None => gemm_batched(&stream, alpha, a, b, 2.0, c)?,
                    Some(name) => gemm_batched_by(&stream, name, alpha, a, b, 2.0, c)?,
                }
                let mut first = 0;
                let expected = counts.iter().map(|&count| {
                    let from = |at: u64, stride: usize| at + 8 * first * stride as u64;
                    let addresses = [from(A, strides[0]), from(B, strides[1]), from(C, strides[2])];
                    first += count;
                    (count, addresses, [0; 3])
                });
                assert_eq!(launched(), expected.collect::<Vec<_>>(), "alpha = {alpha}, {name:?}");
            }
        }
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}
