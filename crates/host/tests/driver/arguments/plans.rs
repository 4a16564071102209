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

        let good = Given { a: view(A, 9, 5), c: view(C, 5, 5), ..product() };
        let plan = Plan::gram(&world.devices[0], shape(good.a), shape(good.c)).build()?;
        let of_gram = faults.into_iter().filter(|(name, ..)| !name.starts_with("b.") && *name != "c.rows");
        let of_gram = of_gram.filter(|(.., said)| *said != C_OVER_B.2).collect::<Vec<_>>();
        each_and_in_pairs("Plan::run_gram", good, &of_gram, &|g| {
            plan.run_gram(&world.streams[g.stream], one, world.read(g.a), one, world.written(g.c))
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
