//! Operands that end where mapped memory of the GPU ends, or begin where it begins: an element read or written beyond ends the
//! context, and so does one written to A or B. On the CPU it is lanky-host's test of that name.

use super::{complex, edges::by_these, tsmm};
use crate::case::Spec;
use crate::lab::{Lab, Outcome};
use crate::mapped::{At, Pool};
use crate::real::Real;
use crate::small;
use host::{Error, MatMut, MatRef, gemm};
use std::process::Command;

/// Ragged at every tile's end, wide, and of whole tiles for the entries that serve no others.
const SIZES: [(usize, usize, usize); 5] = [(67, 9, 35), (259, 13, 67), (67, 259, 131), (1025, 3, 33), (256, 256, 64)];
/// What of the small shapes an emulated GPU gets through.
const FEW: &str = "batched";
/// Of products in place: n and k, whether A lies by rows, and its gap.
const IN_PLACE: [(usize, usize, bool, usize); 4] =
    [(3, 7, true, 0), (17, 33, false, 1), (16, 16, true, 3), (1, 64, false, 0)];

/// Every entry on small shapes, and at [`SIZES`], at both ends.
pub fn run(lab: &Lab) -> Outcome {
    let pool = match Pool::new(lab) {
        Ok(pool) => pool,
        Err(why) => {
            lab.skip("mapped", &why.to_string());
            return Ok(());
        }
    };
    let protected =
        if pool.is_read_only() { "A and B may only be read" } else { "the driver has none that may only be read" };
    lab.note(&format!("mapped: blocks of {} bytes, {protected}", pool.granularity()));
    for what in ["behind", "before", "written"] {
        if what != "written" || pool.is_read_only() {
            lab.record(|| format!("mapped, an element {what}"), is_seen(lab, what))?;
        }
    }
    for at in [At::End, At::Start] {
        lab.placed_at(&pool, at, operands)?;
    }
    Ok(())
}

/// Every operation, by every entry; where the GPU is emulated, whose operands are guarded everywhere, a little of it.
fn operands(lab: &Lab) -> Outcome {
    let few = lab.is_emulated().then(|| FEW.to_owned());
    small::run_these(lab, few.as_slice())?;
    for (index, size) in SIZES.into_iter().enumerate().filter(|(index, _)| lab.takes(*index, SIZES.len())) {
        real::<f32>(lab, size, index)?;
        real::<f64>(lab, size, index)?;
        complex::one::<f32>(lab, "mapped", complex::Spec::varied(size, index))?;
        complex::one::<f64>(lab, "mapped", complex::Spec::varied(size, index))?;
    }
    for (seed, (n, k, row_major, pad)) in (0..).zip(IN_PLACE) {
        let name = |dtype: &str| format!("mapped, {dtype} in place n={n} k={k} by rows {row_major} pad {pad}");
        let size = [131, n, k];
        lab.record(|| name("f32"), tsmm::in_place::<f32>(lab, size, seed, row_major, pad))?;
        lab.record(|| name("f64"), tsmm::in_place::<f64>(lab, size, seed, row_major, pad))?;
        lab.record(|| name("c64"), complex::in_place::<f32>(lab, size, seed, row_major, pad))?;
        lab.record(|| name("c128"), complex::in_place::<f64>(lab, size, seed, row_major, pad))?;
    }
    Ok(())
}

fn real<T: Real>(lab: &Lab, size: (usize, usize, usize), index: usize) -> Outcome {
    let groups = lab.groups_of_all::<T>(Spec::varied(size, index));
    groups.into_iter().try_for_each(|(spec, entries)| by_these::<T>(lab, spec, entries))
}

/// What ends a process that touches memory of the host which it may not: an emulated GPU's.
#[cfg(unix)]
fn is_killed(status: std::process::ExitStatus) -> bool {
    const SIGSEGV: i32 = 11;
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGSEGV)
}

#[cfg(not(unix))]
fn is_killed(_status: std::process::ExitStatus) -> bool {
    false
}

/// What these checks look for is seen: by a process of its own, which can use the GPU no more.
fn is_seen(lab: &Lab, what: &str) -> Outcome {
    let device = format!("cuda:{}", lab.device.ordinal().unwrap_or(0));
    let words = ["beyond", "--device", &device, "--only", what];
    let output = Command::new(std::env::current_exe()?).args(words).output()?;
    if output.status.success() || lab.is_emulated() && is_killed(output.status) {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stdout).trim()).into())
}

/// Multiplies an A whose last element is one behind what is mapped, or whose first is one before it, or into an operand that may
/// only be read.
pub fn beyond(lab: &Lab, only: &[String]) -> Outcome {
    let pool = Pool::new(lab)?;
    only.iter().try_for_each(|what| {
        let at = if what == "before" { At::Start } else { At::End };
        lab.placed_at(&pool, at, |lab| {
            let seen = match touch(lab, what) {
                Err(fault) => match fault.downcast_ref::<Error>() {
                    Some(Error::ContextLost { .. }) => Ok(()),
                    _ => Err(fault),
                },
                Ok(()) => Err("nothing of it was seen".into()),
            };
            lab.record(|| format!("beyond {what}"), seen)
        })
    })
}

fn touch(lab: &Lab, what: &str) -> Outcome {
    const SIZE: (usize, usize, usize) = (130, 5, 67);
    let [mut case, other] = [Spec::plain(SIZE).integers::<f64>(lab)?, Spec::plain(SIZE).integers::<f64>(lab)?];
    // One that is right: the kernels are loaded.
    case.run_planless(lab)?;
    let ((m, n, k), (row, col), element) = (SIZE, case.a.strides(), size_of::<f64>() as u64);
    let a = match what {
        "behind" => case.a.address() + element,
        "before" => case.a.address() - element,
        "written" => case.a.address(),
        other => return Err(format!("nothing is called {other}").into()),
    };
    // SAFETY: none of it is sound: it is what must end the context.
    let (a, c) = unsafe {
        let a = MatRef::from_raw(&lab.device, a, m, k, row, col)?;
        (a, MatMut::from_raw(&lab.device, other.a.address(), m, n, row, col)?)
    };
    match what {
        "written" => gemm(&lab.stream, 1.0, a, case.b.view(lab)?, 0.0, c)?,
        _ => gemm(&lab.stream, 1.0, a, case.b.view(lab)?, 0.0, case.c.view_mut(lab)?)?,
    }
    lab.stream.synchronize()?;
    Ok(())
}
