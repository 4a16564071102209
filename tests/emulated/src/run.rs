//! Finds an entry by its name and runs it.

use crate::parameters::Parameters;
use cuda_std::Complex;
use kernels::table::{self, Batched, Element, Product, Reduced};
use model::variants::reduce_slots;
use model::{Dtype, sum_slots};
use simt::{Launch, Memory};

/// A thread's work, with its parameters.
type Body = Box<dyn Fn()>;

/// A launch: any number of times, by whichever thread.
pub struct Work {
    entry: String,
    launch: Launch<'static>,
    body: Body,
}

// SAFETY: a body has numbers and addresses of memory that the driver's callers share between their threads.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// `None` if there is no entry of the name.
    pub fn of(entry: &str, grid: [u32; 3], block: [u32; 3], shared: u32, parameters: Parameters<'_>) -> Option<Work> {
        let launch = Launch { grid, block, shared_bytes: shared, ..Launch::default() };
        Some(Work { entry: entry.to_owned(), launch, body: body(entry, parameters)? })
    }

    /// Does it.
    ///
    /// # Errors
    /// What the kernel does that no kernel may.
    pub fn run(&self) -> Result<(), String> {
        let launch = Launch { kernel: &self.entry, ..self.launch };
        launch.run(&mut Memory::new(), |_| (self.body)()).map(drop).map_err(|fault| fault.to_string())
    }
}

fn body(entry: &str, parameters: Parameters<'_>) -> Option<Body> {
    if let Some(product) = table::product(entry) {
        return Some(match product {
            Product::F32(entry) => of_product(entry, parameters),
            Product::F64(entry) => of_product(entry, parameters),
            Product::C64(entry) => of_product(entry, parameters),
            Product::C128(entry) => of_product(entry, parameters),
        });
    }
    if let Some(reduced) = table::reduced(entry) {
        return Some(match reduced {
            Reduced::F32(entry) => of_reduced(entry, parameters),
            Reduced::F64(entry) => of_reduced(entry, parameters),
            Reduced::C64(entry) => of_reduced(entry, parameters),
            Reduced::C128(entry) => of_reduced(entry, parameters),
        });
    }
    if let Some(batched) = table::batched(entry) {
        return Some(match batched {
            Batched::F32(entry) => of_batched(entry, parameters),
            Batched::F64(entry) => of_batched(entry, parameters),
            Batched::C64(entry) => of_batched(entry, parameters),
            Batched::C128(entry) => of_batched(entry, parameters),
        });
    }
    let dtype = [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128]
        .into_iter()
        .find(|&dtype| [sum_slots(dtype), reduce_slots(dtype)].contains(&entry))?;
    let sums = entry == sum_slots(dtype);
    Some(match dtype {
        Dtype::F32 => of_slots::<f32>(sums, parameters),
        Dtype::F64 => of_slots::<f64>(sums, parameters),
        Dtype::C64 => of_slots::<Complex<f32>>(sums, parameters),
        Dtype::C128 => of_slots::<Complex<f64>>(sums, parameters),
    })
}

fn of_product<T: Element>(entry: table::ProductFn<T>, mut p: Parameters<'_>) -> Body {
    let [m, n, k] = [p.value(), p.value(), p.value()];
    let (a, a_row, a_col) = (p.operand("A"), p.value(), p.value());
    let (b, b_row, b_col) = (p.operand("B"), p.value(), p.value());
    let (alpha, beta) = (p.value(), p.value());
    let (c, c_row, c_col) = (p.operand("C"), p.value(), p.value());
    let (slot_len, conj, work) = (p.value(), p.value(), p.operand("workspace"));
    // SAFETY: the parameters are those of the launch, for whose soundness its caller vouched.
    Box::new(move || unsafe {
        entry(m, n, k, a, a_row, a_col, b, b_row, b_col, alpha, beta, c, c_row, c_col, slot_len, conj, work)
    })
}

fn of_reduced<T: Element>(entry: table::ReducedFn<T>, mut p: Parameters<'_>) -> Body {
    let [m, n, k] = [p.value(), p.value(), p.value()];
    let (a, a_row, a_col) = (p.operand("A"), p.value(), p.value());
    let (b, b_row, b_col) = (p.operand("B"), p.value(), p.value());
    let (alpha, beta) = (p.value(), p.value());
    let (c, c_row, c_col) = (p.operand("C"), p.value(), p.value());
    let (work, finish, conj) = (p.operand("workspace"), p.value(), p.value());
    // SAFETY: as above.
    Box::new(move || unsafe {
        entry(m, n, k, a, a_row, a_col, b, b_row, b_col, alpha, beta, c, c_row, c_col, work, finish, conj)
    })
}

fn of_batched<T: Element>(entry: table::BatchedFn<T>, mut p: Parameters<'_>) -> Body {
    let [m, n, k, count, problems, stages] = [(); 6].map(|()| p.value());
    let (a, list_a) = p.listed(["A", "list of A"], count);
    let [stride_a, a_row, a_col] = [(); 3].map(|()| p.value());
    let (b, list_b) = p.listed(["B", "list of B"], count);
    let [stride_b, b_row, b_col] = [(); 3].map(|()| p.value());
    let (alpha, beta) = (p.value(), p.value());
    let (c, list_c) = p.listed(["C", "list of C"], count);
    let [stride_c, c_row, c_col] = [(); 3].map(|()| p.value());
    let codes = p.value();
    // SAFETY: as above.
    Box::new(move || unsafe {
        entry(
            m, n, k, count, problems, stages, a, list_a, stride_a, a_row, a_col, b, list_b, stride_b, b_row, b_col,
            alpha, beta, c, list_c, stride_c, c_row, c_col, codes,
        )
    })
}

/// The entry that adds slots, or that of two tall matrices.
fn of_slots<T: Element>(sums: bool, mut p: Parameters<'_>) -> Body {
    if sums {
        let (m, n, slots, count) = (p.value(), p.value(), p.operand("slots"), p.value());
        let (alpha, beta, c, c_row, c_col) = (p.value(), p.value(), p.operand("C"), p.value(), p.value());
        // SAFETY: as above.
        return Box::new(move || unsafe { T::SUM_SLOTS(m, n, slots, count, alpha, beta, c, c_row, c_col) });
    }
    let (m, n, count, alpha, beta) = (p.value(), p.value(), p.value(), p.value(), p.value());
    let (c, c_row, c_col) = (p.operand("C"), p.value(), p.value());
    let (work, finish) = (p.operand("workspace"), p.value());
    // SAFETY: as above.
    Box::new(move || unsafe { T::REDUCE_SLOTS(m, n, count, alpha, beta, c, c_row, c_col, work, finish) })
}
