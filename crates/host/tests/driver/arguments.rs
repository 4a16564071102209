//! Each argument of each call wrong, alone and with each other one: the error is that of the one that is looked at first,
//! and the driver is asked for nothing, so nothing is launched and nothing written.

use super::*;
use lanky_host::{
    Complex, Dtype, Error, Layout, MatMut, MatRef, Operand, Plan, Rule, Shape, Stream, Triangle, gemm, gram,
    gram_triangle, tsmm_in_place,
};

type T = Complex<f64>;

/// An operand: device (0, 1 or, 2, the host), address, shape, strides.
#[derive(Clone, Copy)]
struct View {
    place: usize,
    at: u64,
    rows: usize,
    cols: usize,
    strides: (usize, usize),
}

/// What a call is given.
#[derive(Clone, Copy)]
struct Given {
    stream: usize,
    a: View,
    b: View,
    c: View,
}

/// What is said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Stream,
    Device(Operand),
    Shape(Operand, Rule),
    Variant,
    Unsupported,
}

/// A fault: the argument that it spoils, how, and what is said.
type Fault = (&'static str, fn(&mut Given), Said);

/// Addresses far from each other; nothing is there.
const A: u64 = 1 << 44;
const B: u64 = 2 << 44;
const C: u64 = 3 << 44;
const ELEMENT: u64 = 16;
/// More than kernels count.
const HUGE: usize = 1 << 32;

fn view(at: u64, rows: usize, cols: usize) -> View {
    View { place: 0, at, rows, cols, strides: (1, rows) }
}

fn rows(view: &mut View, rows: usize) {
    *view = View { rows, strides: (1, rows), ..*view };
}

/// The devices, and a stream of each.
struct World {
    devices: [Device; 3],
    streams: [Stream; 3],
}

impl World {
    fn new() -> Result<World> {
        let devices = [Device::cuda(0)?, Device::cuda(1)?, Device::cpu()];
        let streams = [devices[0].stream()?, devices[1].stream()?, devices[2].stream()?];
        Ok(World { devices, streams })
    }

    fn read(&self, v: View) -> MatRef<'static, T> {
        let View { place, at, rows, cols, strides: (row, col) } = v;
        // SAFETY: no call that is given it gets as far as to look at the memory.
        unsafe { MatRef::from_raw(&self.devices[place], at, rows, cols, row, col) }.expect("a span that can be")
    }

    fn written(&self, v: View) -> MatMut<'static, T> {
        let View { place, at, rows, cols, strides: (row, col) } = v;
        // SAFETY: as above.
        unsafe { MatMut::from_raw(&self.devices[place], at, rows, cols, row, col) }.expect("a span that can be")
    }
}

fn said(error: &Error) -> Said {
    match error {
        Error::WrongStream { .. } => Said::Stream,
        Error::WrongDevice { operand, .. } => Said::Device(*operand),
        Error::Shape(error) => Said::Shape(error.operand, error.rule),
        Error::UnknownVariant { .. } => Said::Variant,
        Error::Unsupported { .. } => Said::Unsupported,
        other => panic!("{other:?}"),
    }
}

/// Each fault alone, and each pair: of two the earlier is said. Faults of one argument do not go together.
fn each_and_in_pairs(call: &str, good: Given, faults: &[Fault], run: &dyn Fn(&Given) -> Result<()>) {
    let check = |given: &Given, names: &str, expected: Said| {
        calls();
        let error = run(given).err().unwrap_or_else(|| panic!("{call} takes {names}"));
        assert_eq!(said(&error), expected, "{call}: {names}: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert_eq!(calls(), [""; 0], "{call}: {names}: the driver is asked for something");
    };
    for (place, (name, spoil, expected)) in faults.iter().enumerate() {
        let mut given = good;
        spoil(&mut given);
        check(&given, name, *expected);
        for (other, also, _) in &faults[place + 1..] {
            if name.split(' ').any(|word| other.split(' ').any(|second| word == second)) {
                continue;
            }
            let mut both = good;
            spoil(&mut both);
            also(&mut both);
            check(&both, &format!("{name} and {other}"), *expected);
        }
    }
}

const WRONG_STREAM: Fault = ("stream", |g| g.stream = 1, Said::Stream);
const A_ELSEWHERE: Fault = ("a.place", |g| g.a.place = 1, Said::Device(Operand::A));
const B_ON_THE_HOST: Fault = ("b.place", |g| g.b.place = 2, Said::Device(Operand::B));
const C_ELSEWHERE: Fault = ("c.place", |g| g.c.place = 1, Said::Device(Operand::C));
const C_OVER_A: Fault = ("c.at", |g| g.c.at = g.a.at + ELEMENT, Said::Shape(Operand::A, Rule::Overlap));
const C_OVER_B: Fault = ("c.at", |g| g.c.at = g.b.at + ELEMENT, Said::Shape(Operand::B, Rule::Overlap));
const A_MISALIGNED: Fault = ("a.at", |g| g.a.at += 8, Said::Shape(Operand::A, Rule::Alignment));
const B_MISALIGNED: Fault = ("b.at", |g| g.b.at += 8, Said::Shape(Operand::B, Rule::Alignment));
const C_MISALIGNED: Fault = ("c.at", |g| g.c.at += 8, Said::Shape(Operand::C, Rule::Alignment));

fn product() -> Given {
    Given { stream: 0, a: view(A, 5, 4), b: view(B, 4, 3), c: view(C, 5, 3) }
}

#[test]
fn products_say_what_is_wrong_first() {
    const NAME: &str = "arguments::products_say_what_is_wrong_first";
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
    const NAME: &str = "arguments::gram_matrices_and_products_in_place_say_what_is_wrong_first";
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

#[test]
fn plans_say_what_is_wrong_first() {
    const NAME: &str = "arguments::plans_say_what_is_wrong_first";
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
    const NAME: &str = "arguments::plans_are_refused_in_the_order_that_is_promised";
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

/// What moves matrices, and the rest: the stream first, then the matrix.
#[test]
fn moves_say_what_is_wrong_first() {
    const NAME: &str = "arguments::moves_say_what_is_wrong_first";
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
