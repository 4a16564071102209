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
        let too_large: Fault = ("a.rows", |g| g.a.rows = 1 << 40, Said::Shape(Operand::View, Rule::Span));
        each_and_in_pairs("Device::upload_with of much", product(), &[WRONG_STREAM, too_large], &|g| {
            let mut fill = |_: &mut [f64]| panic!("nothing is to be filled");
            here.upload_with(&world.streams[g.stream], g.a.rows, 1 << 40, Layout::RowMajor, &mut fill).map(drop)
        });
        each_and_in_pairs("Device::ceilings", product(), &faults[..1], &|g| {
            here.ceilings(&world.streams[g.stream]).map(drop)
        });
        each_and_in_pairs("Device::measured_ceilings", product(), &faults[..1], &|g| {
            here.measured_ceilings(&world.streams[g.stream]).map(drop)
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

/// A matrix goes where its own device's stream takes it, the host's where the CPU's does, whole and in pieces.
#[test]
fn matrices_are_downloaded_by_streams_of_their_own_device() {
    const NAME: &str = "arguments::moves::matrices_are_downloaded_by_streams_of_their_own_device";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let matrices = [world.devices[0].zeros::<T>(5, 4)?, world.devices[1].zeros(5, 4)?, Matrix::zeros(5, 4)?];
        for (of, matrix) in matrices.iter().enumerate() {
            for (stream, by) in world.streams.iter().zip(0..) {
                for layout in [Layout::ColumnMajor, Layout::RowMajor] {
                    let mut elements = 0;
                    calls();
                    let result = matrix.download_with(stream, layout, &mut |piece| {
                        elements += piece.len();
                        Ok(())
                    });
                    let asked = calls();
                    if of == by {
                        result?;
                        assert_eq!((elements, asked.is_empty()), (20, of == 2));
                        continue;
                    }
                    let whole = matrix.download(stream).map(drop);
                    for error in [result.expect_err("of another device"), whole.expect_err("of another device")] {
                        assert_eq!(said(&error), Said::Device(Operand::View), "{of} by {by}: {error}");
                    }
                    assert_eq!((elements, [asked, calls()].concat()), (0, vec![]), "{of} by {by}");
                }
            }
        }
        Ok(())
    });
}

/// Marks of two devices have no time between them.
#[test]
fn times_are_between_marks_of_one_device() {
    const NAME: &str = "arguments::moves::times_are_between_marks_of_one_device";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let marks = [world.streams[0].mark()?, world.streams[1].mark()?, world.streams[2].mark()?];
        for (end, later) in marks.iter().enumerate() {
            for (start, earlier) in marks.iter().enumerate() {
                calls();
                let result = later.seconds_since(earlier);
                let asked = calls();
                let is_cpu = [end, start].map(|of| of == 2);
                match is_cpu {
                    [false, false] if end != start => {
                        let is = |error: &Error| matches!(error, Error::Driver { code: 400, operation, .. } if operation == "cuEventElapsedTime in Mark::seconds_since");
                        assert!(result.as_ref().is_err_and(is), "{end} since {start}: {result:?}");
                    }
                    [a, b] if a != b => {
                        let text = "unsupported: the time between marks of two devices";
                        assert!(result.as_ref().is_err_and(|error| error.to_string() == text), "{result:?}");
                        assert_eq!((result.map_err(|error| said(&error)), asked), (Err(Said::Unsupported), vec![]));
                    }
                    _ => assert!(result.is_ok_and(|seconds| seconds >= 0.0), "{end} since {start}"),
                }
            }
        }
        // The next one is served, by either.
        for stream in &world.streams {
            let earlier = stream.mark()?;
            stream.mark()?.seconds_since(&earlier)?;
        }
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// A graph is a GPU's: none is recorded on the CPU, nor launched there or on another GPU.
#[test]
fn graphs_are_of_one_gpu() {
    const NAME: &str = "arguments::moves::graphs_are_of_one_gpu";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let mut graph = world.streams[0].record(|| Ok(()))?;
        calls();
        let mut is_begun = false;
        let recorded = world.streams[2].record(|| {
            is_begun = true;
            Ok(())
        });
        assert_eq!((recorded.map(drop).map_err(|error| said(&error)), is_begun), (Err(Said::Unsupported), false));
        for (stream, expected) in [(1, Said::Stream), (2, Said::Unsupported)] {
            // SAFETY: nothing is in it.
            let launched = unsafe { graph.launch(&world.streams[stream]) };
            assert_eq!(launched.map_err(|error| said(&error)), Err(expected), "stream {stream}");
        }
        assert_eq!(calls(), [""; 0]);
        // SAFETY: as above.
        unsafe { graph.launch(&world.streams[0]) }
    });
}
