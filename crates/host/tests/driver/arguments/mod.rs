//! Each argument of each call wrong, alone and with each other one: the error is that of the one that is looked at first,
//! and the driver is asked for nothing, so nothing is launched and nothing written.

mod batches;
mod moves;
mod plans;
mod products;
mod vectors;

use super::*;
use lanky_host::{
    Complex, Dtype, Error, Layout, MatMut, MatRef, Operand, Plan, Rule, Shape, Stream, Triangle, gemm, gram,
    gram_triangle, tsmm_in_place,
};

type T = Complex<f64>;

/// An operand: device (0, 1 or, 2, the host), address, shape, strides, and of a batch the number of matrices, one after the
/// other.
#[derive(Clone, Copy)]
struct View {
    place: usize,
    at: u64,
    rows: usize,
    cols: usize,
    strides: (usize, usize),
    count: usize,
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
    View { place: 0, at, rows, cols, strides: (1, rows), count: 3 }
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
        let View { place, at, rows, cols, strides: (row, col), .. } = v;
        // SAFETY: no call that is given it gets as far as to look at the memory.
        unsafe { MatRef::from_raw(&self.devices[place], at, rows, cols, row, col) }.expect("a span that can be")
    }

    fn written(&self, v: View) -> MatMut<'static, T> {
        let View { place, at, rows, cols, strides: (row, col), .. } = v;
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

const A_ON_A_GPU: Fault = ("a.place", |g| g.a.place = 0, Said::Device(Operand::A));
const B_ON_A_GPU: Fault = ("b.place", |g| g.b.place = 0, Said::Device(Operand::B));
const C_ON_A_GPU: Fault = ("c.place", |g| g.c.place = 0, Said::Device(Operand::C));

/// The same for the CPU, which looks at no alignment and takes any dimension.
fn on_the_cpu(given: Given) -> Given {
    let there = |view: View| View { place: 2, ..view };
    Given { stream: 2, a: there(given.a), b: there(given.b), c: there(given.c) }
}

fn product() -> Given {
    Given { stream: 0, a: view(A, 5, 4), b: view(B, 4, 3), c: view(C, 5, 3) }
}
