//! What moves matrices, and the rest of what takes a stream.

use super::*;

/// What moves matrices, and the rest: the stream first, then the matrix.
#[test]
fn moves_say_what_is_wrong_first() {
    const NAME: &str = "arguments::moves::moves_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let here = &world.devices[0];
        let a_elsewhere: Fault = ("a.place", |g| g.a.place = 1, Said::Device(Operand::View));
        let faults = [WRONG_STREAM, a_elsewhere];
        let on_the_host = Given { a: View { place: 2, ..product().a }, ..product() };
        each_and_in_pairs("Device::upload", on_the_host, &faults, &|g| {
            here.upload(&world.streams[g.stream], world.read(g.a)).map(drop)
        });
        each_and_in_pairs("Device::download", product(), &faults, &|g| {
            here.download(&world.streams[g.stream], world.read(g.a)).map(drop)
        });
        each_and_in_pairs("Device::upload_with", product(), &faults[..1], &|g| {
            let mut fill = |_: &mut [f64]| panic!("nothing is to be filled");
            here.upload_with(&world.streams[g.stream], 3, 3, Layout::RowMajor, &mut fill).map(drop)
        });
        each_and_in_pairs("Device::ceilings", product(), &faults[..1], &|g| {
            here.ceilings(&world.streams[g.stream]).map(drop)
        });
        each_and_in_pairs("Device::read_ceiling", product(), &faults[..1], &|g| {
            here.read_ceiling(&world.streams[g.stream]).map(drop)
        });
        let b_rows: Fault = ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::B, Rule::Rows));
        let b_elsewhere: Fault = ("b.place", |g| g.b.place = 1, Said::Device(Operand::B));
        each_and_in_pairs("Device::matmul", product(), &[A_ELSEWHERE, b_elsewhere, b_rows], &|g| {
            here.matmul(world.read(g.a), world.read(g.b)).map(drop)
        });
        each_and_in_pairs("Matrix::to_contiguous", on_the_host, &[a_elsewhere], &|g| {
            Matrix::to_contiguous(world.read(g.a)).map(drop)
        });
        calls();
        let huge = here.zeros::<T>(1 << 40, 1 << 40).map(drop).expect_err("no such matrix");
        assert_eq!(said(&huge), Said::Shape(Operand::View, Rule::Span));
        assert_eq!(calls(), [""; 0]);
        Ok(())
    });
}
