//! Products, Gram matrices and products in place.

use super::*;

#[test]
fn products_say_what_is_wrong_first() {
    const NAME: &str = "arguments::products::products_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let run = |g: &Given| {
            let (a, b, c) = (world.read(g.a), world.read(g.b), world.written(g.c));
            gemm(&world.streams[0], T::from(1.0), a, b, T::from(0.0), c)
        };
        let tall: Fault = ("a.rows c.rows", |g| (rows(&mut g.a, HUGE), rows(&mut g.c, HUGE)).0, Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            B_ON_THE_HOST,
            C_ELSEWHERE,
            ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::B, Rule::Rows)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 2, Said::Shape(Operand::C, Rule::Cols)),
            C_OVER_A,
            C_OVER_B,
            A_MISALIGNED,
            B_MISALIGNED,
            C_MISALIGNED,
            tall,
        ];
        each_and_in_pairs("gemm", product(), &faults, &run);
        // The host's product has no alignment, and any dimension.
        let places = [("a.place", (|g| g.a.place = 0) as fn(&mut Given), Said::Device(Operand::A))];
        let mut on_the_cpu = product();
        (on_the_cpu.a.place, on_the_cpu.b.place, on_the_cpu.c.place) = (2, 2, 2);
        let run = |g: &Given| {
            let (a, b, c) = (world.read(g.a), world.read(g.b), world.written(g.c));
            gemm(&world.streams[2], T::from(1.0), a, b, T::from(0.0), c)
        };
        each_and_in_pairs("gemm on the CPU", on_the_cpu, &[&places[..], &faults[3..8]].concat(), &run);
        Ok(())
    });
}

#[test]
fn gram_matrices_and_products_in_place_say_what_is_wrong_first() {
    const NAME: &str = "arguments::products::gram_matrices_and_products_in_place_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let good = Given { a: view(A, 9, 5), c: view(C, 5, 5), ..product() };
        let tall: Fault = ("a.rows", |g| rows(&mut g.a, HUGE), Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            C_ELSEWHERE,
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 4, Said::Shape(Operand::C, Rule::Cols)),
            C_OVER_A,
            A_MISALIGNED,
            C_MISALIGNED,
            tall,
        ];
        let one = T::from(1.0);
        each_and_in_pairs("gram", good, &faults, &|g| {
            gram(&world.streams[0], one, world.read(g.a), one, world.written(g.c))
        });
        each_and_in_pairs("gram_triangle", good, &faults, &|g| {
            gram_triangle(&world.streams[0], Triangle::Lower, one, world.read(g.a), one, world.written(g.c))
        });
        // In the caller's terms: there is no B, and A is not transposed.
        let mut given = good;
        rows(&mut given.c, 6);
        let error = gram(&world.streams[0], one, world.read(given.a), one, world.written(given.c));
        assert_eq!(error.expect_err("6 x 5").to_string(), "C is 6 x 5, but A is 9 x 5: C needs 5 rows");

        let good = Given { a: view(A, 9, 5), b: view(B, 5, 3), ..product() };
        let wide: Fault = ("a.cols b.rows", |g| (g.a.cols = 65, rows(&mut g.b, 65)).0, Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            B_ON_THE_HOST,
            ("b.rows", |g| rows(&mut g.b, 6), Said::Shape(Operand::B, Rule::Rows)),
            ("b.cols", |g| g.b.cols = 70, Said::Shape(Operand::B, Rule::Cols)),
            ("b.at", |g| g.b.at = g.a.at + ELEMENT, Said::Shape(Operand::B, Rule::Overlap)),
            wide,
            ("a.rows", |g| rows(&mut g.a, HUGE), Said::Unsupported),
        ];
        each_and_in_pairs("tsmm_in_place", good, &faults, &|g| {
            tsmm_in_place(&world.streams[0], one, world.written(g.a), world.read(g.b))
        });
        let over = View { at: A, ..good.b };
        let error = tsmm_in_place(&world.streams[0], one, world.written(good.a), world.read(over));
        assert!(error.expect_err("B lies in A").to_string().starts_with("A overlaps B: "));
        Ok(())
    });
}
