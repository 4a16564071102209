//! Plans: what they are run with, and what they are made from.

use super::*;
use lanky_host::PlanBuilder;

#[test]
fn plans_say_what_is_wrong_first() {
    const NAME: &str = "arguments::plans::plans_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let shape = |v: View| Shape::with_strides(v.rows, v.cols, strides(v), Dtype::C128);
        let (good, one) = (product(), T::from(1.0));
        let plan = Plan::gemm(&world.devices[0], shape(good.a), shape(good.b), shape(good.c)).build()?;
        let faults = [
            WRONG_STREAM,
            A_ELSEWHERE,
            B_ON_THE_HOST,
            C_ELSEWHERE,
            ("a.rows", |g| rows(&mut g.a, 6), Said::Shape(Operand::A, Rule::Rows)),
            ("a.cols", |g| g.a.cols = 3, Said::Shape(Operand::A, Rule::Cols)),
            ("a.strides", |g| g.a.strides = (1, 7), Said::Shape(Operand::A, Rule::Strides)),
            ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::B, Rule::Rows)),
            ("b.cols", |g| g.b.cols = 2, Said::Shape(Operand::B, Rule::Cols)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 2, Said::Shape(Operand::C, Rule::Cols)),
            ("c.strides", |g| g.c.strides = (9, 1), Said::Shape(Operand::C, Rule::Strides)),
            C_OVER_A,
            C_OVER_B,
            A_MISALIGNED,
            B_MISALIGNED,
            C_MISALIGNED,
        ];
        each_and_in_pairs("Plan::run", good, &faults, &|g| {
            plan.run(&world.streams[g.stream], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
        });
        for (a, b, of) in [
            (world.read(good.a).conj(), world.read(good.b), Operand::A),
            (world.read(good.a), world.read(good.b).conj(), Operand::B),
        ] {
            let error = plan.run(&world.streams[0], one, a, b, one, world.written(good.c)).expect_err("conjugates");
            assert_eq!(said(&error), Said::Shape(of, Rule::Conjugate), "{error}");
        }
        let cpu = Plan::gemm(&world.devices[2], shape(good.a), shape(good.b), shape(good.c)).build()?;
        let of_the_cpu = [&[WRONG_STREAM, A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU], &faults[4..14]].concat();
        each_and_in_pairs("Plan::run on the CPU", on_the_cpu(good), &of_the_cpu, &|g| {
            cpu.run(&world.streams[g.stream], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
        });

        let good = of_a_gram_matrix();
        let plan = Plan::gram(&world.devices[0], shape(good.a), shape(good.c)).build()?;
        let of_gram = faults.into_iter().filter(|(name, ..)| !name.starts_with("b.") && *name != "c.rows");
        let of_gram = of_gram.filter(|(.., said)| *said != C_OVER_B.2).collect::<Vec<_>>();
        each_and_in_pairs("Plan::run_gram", good, &of_gram, &|g| {
            plan.run_gram(&world.streams[g.stream], one, world.read(g.a), one, world.written(g.c))
        });
        let cpu = Plan::gram(&world.devices[2], shape(good.a), shape(good.c)).build()?;
        let is_of_gram = |fault: &&Fault| !fault.0.starts_with("b.") && fault.0 != "c.rows" && fault.2 != C_OVER_B.2;
        let of_the_cpu = of_the_cpu.iter().filter(is_of_gram).copied().collect::<Vec<_>>();
        each_and_in_pairs("Plan::run_gram on the CPU", on_the_cpu(good), &of_the_cpu, &|g| {
            cpu.run_gram(&world.streams[g.stream], one, world.read(g.a), one, world.written(g.c))
        });
        // A plan of another product serves no Gram matrix, which is said behind stream and devices.
        let product =
            Plan::gemm(&world.devices[0], shape(product().a), shape(product().b), shape(product().c)).build()?;
        let none: Fault = ("a.rows", |g| rows(&mut g.a, 10), Said::Unsupported);
        each_and_in_pairs("a product's plan", good, &[WRONG_STREAM, A_ELSEWHERE, C_ELSEWHERE, none], &|g| {
            product.run_gram(&world.streams[g.stream], one, world.read(g.a), one, world.written(g.c))
        });
        let short = world.read(view(A, 8, 5));
        let text = plan.run_gram(&world.streams[0], one, short, one, world.written(good.c)).expect_err("8 x 5");
        assert!(text.to_string().starts_with("A is 8 x 5 with strides 1 and 8, but the plan is for 9 x 5"), "{text}");
        Ok(())
    });
}

/// A's transpose, A and C, and so B is A.
fn of_a_gram_matrix() -> Given {
    Given { a: view(A, 9, 5), b: view(A, 9, 5), c: view(C, 5, 5), ..product() }
}

/// A Gram matrix's plan takes a matrix's transpose and that matrix, whatever runs it: other factors are what it says last.
#[test]
fn other_factors_than_a_gram_matrix_has_are_refused_last() {
    const NAME: &str = "arguments::plans::other_factors_than_a_gram_matrix_has_are_refused_last";
    with_driver(NAME, "devices=2", || {
        let (world, one, good) = (World::new()?, T::from(1.0), of_a_gram_matrix());
        let shape = |v: View| Shape::with_strides(v.rows, v.cols, strides(v), Dtype::C128);
        let others: Fault = ("b.at", |g| g.b.at = B, Said::Unsupported);
        let of_shapes: [Fault; 7] = [
            ("a.cols", |g| g.a.cols = 4, Said::Shape(Operand::A, Rule::Rows)),
            ("a.rows", |g| rows(&mut g.a, 10), Said::Shape(Operand::A, Rule::Cols)),
            ("b.rows", |g| rows(&mut g.b, 10), Said::Shape(Operand::B, Rule::Rows)),
            ("b.cols", |g| g.b.cols = 4, Said::Shape(Operand::B, Rule::Cols)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 4, Said::Shape(Operand::C, Rule::Cols)),
            C_OVER_A,
        ];
        let of_a_gpu = [WRONG_STREAM, A_ELSEWHERE, B_ON_THE_HOST, C_ELSEWHERE];
        let of_the_cpu = [WRONG_STREAM, A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU];
        let of_a_gpu = [&of_a_gpu[..], &of_shapes, &[A_MISALIGNED, C_MISALIGNED, others]].concat();
        let of_the_cpu = [&of_the_cpu[..], &of_shapes, &[others]].concat();
        for (device, good, faults) in [(0, good, of_a_gpu), (2, on_the_cpu(good), of_the_cpu)] {
            let plan = Plan::gram(&world.devices[device], shape(good.a), shape(good.c)).build()?;
            each_and_in_pairs("Plan::run of a Gram matrix", good, &faults, &|g| {
                let (first, second) = (world.read(g.a).h(), world.read(g.b));
                plan.run(&world.streams[g.stream], one, first, second, one, world.written(g.c))
            });
        }
        Ok(())
    });
}

/// A plan of real numbers, run with complex ones: said behind the stream and the devices, ahead of all else.
#[test]
fn types_are_looked_at_behind_the_devices() {
    const NAME: &str = "arguments::plans::types_are_looked_at_behind_the_devices";
    with_driver(NAME, "devices=2", || {
        let (world, one, other) = (World::new()?, T::from(1.0), Said::Shape(Operand::A, Rule::Dtype));
        let shape = |v: View| Shape::with_strides(v.rows, v.cols, strides(v), Dtype::F64);
        let of_the_type: [Fault; 5] = [
            ("type", |_| {}, other),
            ("a.rows", |g| rows(&mut g.a, 6), other),
            ("a.strides", |g| g.a.strides = (1, 11), other),
            ("c.at", |g| g.c.at = g.a.at + ELEMENT, other),
            ("a.at", |g| g.a.at += 8, other),
        ];
        let of_a_gpu = [WRONG_STREAM, A_ELSEWHERE, B_ON_THE_HOST, C_ELSEWHERE];
        let of_the_cpu = [WRONG_STREAM, A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU];
        for (device, places) in [(0, of_a_gpu), (2, of_the_cpu)] {
            let here = |given: Given| if device == 0 { given } else { on_the_cpu(given) };
            let faults = [&places[..], &of_the_type].concat();
            let (good, on) = (here(product()), &world.devices[device]);
            let plan = Plan::gemm(on, shape(good.a), shape(good.b), shape(good.c)).build()?;
            each_and_in_pairs("Plan::run of f64", good, &faults, &|g| {
                plan.run(&world.streams[g.stream], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
            });
            let good = here(of_a_gram_matrix());
            let plan = Plan::gram(on, shape(good.a), shape(good.c)).build()?;
            let without_b: Vec<Fault> = faults.iter().filter(|fault| fault.0 != "b.place").copied().collect();
            each_and_in_pairs("Plan::run_gram of f64", good, &without_b, &|g| {
                plan.run_gram(&world.streams[g.stream], one, world.read(g.a), one, world.written(g.c))
            });
            let good = here(vectors::vectors());
            let plan = Plan::gemv(on, shape(good.a), shape(good.b), shape(good.c)).build()?;
            let as_vectors = |(name, spoil, said): Fault| match said {
                Said::Device(Operand::B) => (name, spoil, Said::Device(Operand::X)),
                Said::Device(Operand::C) => (name, spoil, Said::Device(Operand::Y)),
                said => (name, spoil, said),
            };
            let faults: Vec<Fault> = faults.into_iter().map(as_vectors).collect();
            each_and_in_pairs("Plan::run_gemv of f64", good, &faults, &|g| {
                plan.run_gemv(&world.streams[g.stream], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
            });
        }
        Ok(())
    });
}

fn strides(v: View) -> lanky_host::Strides {
    lanky_host::Strides { row: v.strides.0 as u64, col: v.strides.1 as u64 }
}

/// What a plan is asked for: A, B, C, and the name of a variant.
type Asked = (Shape, Shape, Shape, &'static str);
type Spoiler = (&'static str, fn(&mut Asked), Said);

const SPOILERS: [Spoiler; 9] = [
    ("a.dtype", |p| p.0.dtype = Dtype::F32, Said::Shape(Operand::A, Rule::Dtype)),
    ("b.dtype", |p| p.1.dtype = Dtype::F32, Said::Shape(Operand::B, Rule::Dtype)),
    ("b.rows", |p| p.1.rows = 5, Said::Shape(Operand::B, Rule::Rows)),
    ("c.rows", |p| p.2.rows = 4, Said::Shape(Operand::C, Rule::Rows)),
    ("c.cols", |p| p.2.cols = 2, Said::Shape(Operand::C, Rule::Cols)),
    ("c.strides", |p| p.2.strides.col = 1, Said::Shape(Operand::C, Rule::Strides)),
    ("c.conj", |p| p.2.conj = true, Said::Shape(Operand::C, Rule::Conjugate)),
    ("name", |p| p.3 = "no_such", Said::Variant),
    ("name", |p| p.3 = "gram_staged", Said::Unsupported), // of a matrix and itself alone
];

const OF_GRAM: [Spoiler; 7] = [
    ("a.dtype", |p| p.0.dtype = Dtype::F32, Said::Shape(Operand::A, Rule::Dtype)),
    ("c.rows", |p| p.2.rows = 6, Said::Shape(Operand::C, Rule::Rows)),
    ("c.cols", |p| p.2.cols = 4, Said::Shape(Operand::C, Rule::Cols)),
    ("c.strides", |p| p.2.strides.col = 0, Said::Shape(Operand::C, Rule::Strides)),
    ("c.conj", |p| p.2.conj = true, Said::Shape(Operand::C, Rule::Conjugate)),
    ("name", |p| p.3 = "no_such", Said::Variant),
    ("name", |p| p.3 = "tsm2r_inner", Said::Unsupported), // of two matrices
];

const OF_VECTORS: [Spoiler; 9] = [
    ("a.dtype", |p| p.0.dtype = Dtype::F32, Said::Shape(Operand::A, Rule::Dtype)),
    ("x.dtype", |p| p.1.dtype = Dtype::C64, Said::Shape(Operand::X, Rule::Dtype)),
    ("x.cols", |p| p.1.cols = 2, Said::Shape(Operand::X, Rule::Cols)),
    ("x.rows", |p| p.1.rows = 6, Said::Shape(Operand::X, Rule::Rows)),
    ("y.cols", |p| p.2.cols = 2, Said::Shape(Operand::Y, Rule::Cols)),
    ("y.rows", |p| p.2.rows = 8, Said::Shape(Operand::Y, Rule::Rows)),
    ("y.strides", |p| p.2.strides.row = 0, Said::Shape(Operand::Y, Rule::Strides)),
    ("y.conj", |p| p.2.conj = true, Said::Shape(Operand::Y, Rule::Conjugate)),
    ("name", |p| p.3 = "no_such", Said::Variant),
];

/// Types, sizes and names, before anything is there; of a product, a Gram matrix and a vector.
#[test]
fn plans_are_refused_in_the_order_that_is_promised() {
    const NAME: &str = "arguments::plans::plans_are_refused_in_the_order_that_is_promised";
    with_driver(NAME, "", || {
        let gpu = Device::cuda(0)?;
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
        let products: Asked = (shape(5, 4), shape(4, 3), shape(5, 3), "");
        let (grams, vectors) =
            ((shape(9, 5), products.1, shape(5, 5), ""), (shape(9, 5), shape(5, 1), shape(9, 1), ""));
        refused_in_order("Plan::gemm", products, &SPOILERS, &|(a, b, c, _)| Plan::gemm(&gpu, a, b, c));
        refused_in_order("Plan::gram", grams, &OF_GRAM, &|(a, _, c, _)| Plan::gram(&gpu, a, c));
        refused_in_order("Plan::gemv", vectors, &OF_VECTORS, &|(a, x, y, _)| Plan::gemv(&gpu, a, x, y));
        // The CPU has no variants: whatever name is known is none of its own.
        let (cpu, last) = (Device::cpu(), SPOILERS.len() - 1);
        refused_in_order("Plan::gemm on the CPU", products, &SPOILERS[..last], &|(a, b, c, _)| {
            Plan::gemm(&cpu, a, b, c)
        });
        refused_in_order("Plan::gram on the CPU", grams, &OF_GRAM, &|(a, _, c, _)| Plan::gram(&cpu, a, c));
        refused_in_order("Plan::gemv on the CPU", vectors, &OF_VECTORS, &|(a, x, y, _)| Plan::gemv(&cpu, a, x, y));
        Ok(())
    });
}

/// Each alone and with each later one; without any the plan is made.
fn refused_in_order(call: &str, good: Asked, spoilers: &[Spoiler], begin: &dyn Fn(Asked) -> PlanBuilder) {
    let build = |asked: Asked| {
        let builder = begin(asked);
        if asked.3.is_empty() { builder.build() } else { builder.variant(asked.3).build() }
    };
    assert!(build(good).is_ok(), "{call}");
    let refused = |asked: Asked, names: &str, expected: Said| {
        calls();
        let error = build(asked).err().unwrap_or_else(|| panic!("{call}: {names} is taken"));
        assert_eq!(said(&error), expected, "{call}: {names}: {error}");
        assert_eq!(calls(), [""; 0], "nothing is loaded or allocated");
    };
    for (place, (argument, spoil, expected)) in spoilers.iter().enumerate() {
        let mut one = good;
        spoil(&mut one);
        refused(one, argument, *expected);
        for (other, also, _) in spoilers[place + 1..].iter().filter(|(other, ..)| other != argument) {
            let mut both = one;
            also(&mut both);
            refused(both, &format!("{argument} and {other}"), *expected);
        }
    }
}
