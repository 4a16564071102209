//! Plans: what they are run with, and what they are made from.

use super::*;

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

        let good = Given { a: view(A, 9, 5), c: view(C, 5, 5), ..product() };
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

/// What a plan of a Gram matrix, and one of a vector, is asked for: A, x, and C or y.
type AskedOthers = (Shape, Shape, Shape);

/// Plans of Gram matrices and of vectors: C, or y, is no conjugate, and its elements have addresses of their own.
#[test]
fn results_that_cannot_be_are_refused() {
    const NAME: &str = "arguments::plans::results_that_cannot_be_are_refused";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::C128);
        let gram = |(a, _, c): AskedOthers| Plan::gram(&device, a, c).build().map(drop);
        let gemv = |(a, x, y): AskedOthers| Plan::gemv(&device, a, x, y).build().map(drop);
        type Case<'a> = (&'a dyn Fn(AskedOthers) -> Result<()>, AskedOthers, Operand);
        let cases: [Case<'_>; 2] = [
            (&gram, (shape(9, 5), shape(5, 1), shape(5, 5)), Operand::C),
            (&gemv, (shape(9, 5), shape(5, 1), shape(9, 1)), Operand::Y),
        ];
        for (build, good, of) in cases {
            build(good)?;
            let refused = |asked: AskedOthers, expected: Said| {
                calls();
                let error = build(asked).expect_err("no such result");
                assert_eq!(said(&error), expected, "{error}");
                assert_eq!(calls(), [""; 0]);
            };
            let (conj, mut over) = (good.2.conj(), good.2);
            (over.strides.row, over.strides.col) = (0, 0);
            refused((good.0, good.1, conj), Said::Shape(of, Rule::Conjugate));
            refused((good.0, good.1, over), Said::Shape(of, Rule::Strides));
        }
        Ok(())
    });
}

/// Sizes and names, before anything is there.
#[test]
fn plans_are_refused_in_the_order_that_is_promised() {
    const NAME: &str = "arguments::plans::plans_are_refused_in_the_order_that_is_promised";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
        let good: Asked = (shape(5, 4), shape(4, 3), shape(5, 3), "");
        let refused = |(a, b, c, name): Asked, names: &str, expected: Said| {
            calls();
            let builder = Plan::gemm(&device, a, b, c);
            let built = if name.is_empty() { builder.build() } else { builder.variant(name).build() };
            let error = built.err().unwrap_or_else(|| panic!("{names} is taken"));
            assert_eq!(said(&error), expected, "{names}: {error}");
            assert_eq!(calls(), [""; 0], "nothing is loaded or allocated");
        };
        for (place, (argument, spoil, expected)) in SPOILERS.iter().enumerate() {
            let mut one = good;
            spoil(&mut one);
            refused(one, argument, *expected);
            for (other, also, _) in SPOILERS[place + 1..].iter().filter(|(other, ..)| other != argument) {
                let mut both = one;
                also(&mut both);
                refused(both, &format!("{argument} and {other}"), *expected);
            }
        }
        Ok(())
    });
}
