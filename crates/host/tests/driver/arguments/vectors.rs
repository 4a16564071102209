//! Products with vectors: x in place of B, y in place of C.

use super::*;
use lanky_host::gemv;

const X_ON_THE_HOST: Fault = ("b.place", |g| g.b.place = 2, Said::Device(Operand::X));
const Y_ELSEWHERE: Fault = ("c.place", |g| g.c.place = 1, Said::Device(Operand::Y));
const Y_OVER_X: Fault = ("c.at", |g| g.c.at = g.b.at + ELEMENT, Said::Shape(Operand::X, Rule::Overlap));
const X_MISALIGNED: Fault = ("b.at", |g| g.b.at += 8, Said::Shape(Operand::X, Rule::Alignment));
const Y_MISALIGNED: Fault = ("c.at", |g| g.c.at += 8, Said::Shape(Operand::Y, Rule::Alignment));

pub(super) fn vectors() -> Given {
    Given { stream: 0, a: view(A, 5, 4), b: view(B, 4, 1), c: view(C, 5, 1) }
}

#[test]
fn products_with_vectors_say_what_is_wrong_first() {
    const NAME: &str = "arguments::vectors::products_with_vectors_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let (world, one) = (World::new()?, T::from(1.0));
        let faults = [
            A_ELSEWHERE,
            X_ON_THE_HOST,
            Y_ELSEWHERE,
            ("b.cols", |g| g.b.cols = 2, Said::Shape(Operand::X, Rule::Cols)),
            ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::X, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 2, Said::Shape(Operand::Y, Rule::Cols)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::Y, Rule::Rows)),
            C_OVER_A,
            Y_OVER_X,
            A_MISALIGNED,
            X_MISALIGNED,
            Y_MISALIGNED,
            ("a.rows c.rows", |g| (rows(&mut g.a, HUGE), rows(&mut g.c, HUGE)).0, Said::Unsupported),
        ];
        each_and_in_pairs("gemv", vectors(), &faults, &|g| {
            gemv(&world.streams[0], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
        });
        // A vector may lie as a row, and is then looked at as a column.
        each_and_in_pairs("gemv of rows", vectors(), &faults[..7], &|g| {
            gemv(&world.streams[0], one, world.read(g.a), world.read(g.b).t(), one, world.written(g.c).t())
        });
        let x_on_a_gpu: Fault = ("b.place", |g| g.b.place = 0, Said::Device(Operand::X));
        let y_on_a_gpu: Fault = ("c.place", |g| g.c.place = 0, Said::Device(Operand::Y));
        let of_the_cpu = [&[A_ON_A_GPU, x_on_a_gpu, y_on_a_gpu], &faults[3..9]].concat();
        each_and_in_pairs("gemv on the CPU", on_the_cpu(vectors()), &of_the_cpu, &|g| {
            gemv(&world.streams[2], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
        });
        let given = Given { c: view(C, 6, 1), ..vectors() };
        let error = gemv(&world.streams[0], one, world.read(given.a), world.read(given.b), one, world.written(given.c));
        let text = error.expect_err("6 elements").to_string();
        assert_eq!(text, "y has 6 elements, but A is 5 x 4: as many as rows, 5 elements");
        Ok(())
    });
}

/// Plans too speak of x and y.
#[test]
fn plans_of_vectors_say_what_is_wrong_first() {
    const NAME: &str = "arguments::vectors::plans_of_vectors_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let (world, one, good) = (World::new()?, T::from(1.0), vectors());
        let shape = |v: View| Shape::packed(v.rows, v.cols, Layout::ColumnMajor, Dtype::C128);
        let plan = Plan::gemv(&world.devices[0], shape(good.a), shape(good.b), shape(good.c)).build()?;
        let faults = [
            WRONG_STREAM,
            A_ELSEWHERE,
            X_ON_THE_HOST,
            Y_ELSEWHERE,
            ("a.rows", |g| rows(&mut g.a, 6), Said::Shape(Operand::A, Rule::Rows)),
            ("a.strides", |g| g.a.strides = (1, 7), Said::Shape(Operand::A, Rule::Strides)),
            ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::X, Rule::Rows)),
            ("b.strides", |g| g.b.strides.0 = 2, Said::Shape(Operand::X, Rule::Strides)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::Y, Rule::Rows)),
            ("c.strides", |g| g.c.strides.0 = 3, Said::Shape(Operand::Y, Rule::Strides)),
            C_OVER_A,
            Y_OVER_X,
            A_MISALIGNED,
            X_MISALIGNED,
            Y_MISALIGNED,
        ];
        each_and_in_pairs("Plan::run_gemv", good, &faults, &|g| {
            plan.run_gemv(&world.streams[g.stream], one, world.read(g.a), world.read(g.b), one, world.written(g.c))
        });
        let build = |a: View, x: View, y: View| Plan::gemv(&world.devices[0], shape(a), shape(x), shape(y)).build();
        for (a, x, y, expected) in [
            (good.a, view(B, 4, 2), view(C, 6, 1), Said::Shape(Operand::X, Rule::Cols)),
            (good.a, view(B, 5, 1), view(C, 6, 1), Said::Shape(Operand::X, Rule::Rows)),
            (good.a, good.b, view(C, 5, 2), Said::Shape(Operand::Y, Rule::Cols)),
            (good.a, good.b, view(C, 6, 1), Said::Shape(Operand::Y, Rule::Rows)),
        ] {
            let error = build(a, x, y).map(drop).expect_err("no such product");
            assert_eq!(said(&error), expected, "{error}");
        }
        let other = Shape::packed(4, 1, Layout::ColumnMajor, Dtype::C64);
        let error = Plan::gemv(&world.devices[0], shape(good.a), other, shape(good.c)).build();
        assert_eq!(error.map(drop).map_err(|error| said(&error)), Err(Said::Shape(Operand::X, Rule::Dtype)));
        let conjugated = Plan::gemv(&world.devices[0], shape(good.a), shape(good.b), shape(good.c).conj()).build();
        assert_eq!(conjugated.map(drop).map_err(|error| said(&error)), Err(Said::Shape(Operand::Y, Rule::Conjugate)));
        Ok(())
    });
}
