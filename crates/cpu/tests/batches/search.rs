//! Every loop order and blocking computes what the library does, bit for bit.

use super::common::{Case, GUARD, Matrix, Numbers, Store, Value, available, same};
use lanky_cpu::{Blocking, gemm_batched_by};

fn agrees<T: Value>(shape: (usize, usize, usize), stores: [Store; 3], every: usize) {
    let mut numbers = Numbers(5);
    for instructions in available() {
        let kept = Blocking::kept(instructions, size_of::<T>(), (32, 32, 32));
        assert!(kept.len() > 500, "{instructions:?}: {}", kept.len());
        let mut case = Case::<T>::new(shape, 3, stores, || numbers.fraction());
        (case.alpha, case.beta) = (T::of_two(0.3, 0.0), T::of_two([0.0, 1.1][every % 2], 0.0));
        if every % 2 == 0 {
            case.c = Matrix::behind(GUARD, stores[2], (shape.0, shape.1), 3, T::canary);
        }
        let before = case.c.data.clone();
        case.run(instructions);
        let expected = std::mem::replace(&mut case.c.data, before.clone());
        for blocking in kept.into_iter().step_by(every) {
            // SAFETY: the case's matrices, C of its own; the CPU has the instructions.
            case.run_by(|batch| unsafe { gemm_batched_by(instructions, blocking, batch) });
            let found = std::mem::replace(&mut case.c.data, before.clone());
            assert!(same(&found, &expected), "{instructions:?} {blocking}: {shape:?}");
        }
    }
}

#[test]
fn every_order_and_blocking_gives_the_same_bits() {
    let by_cols = [Store::ByCols; 3];
    agrees::<f64>((32, 32, 32), by_cols, 1);
    agrees::<f32>((32, 32, 32), by_cols, 1);
    // What is left over is smaller than blocks and windows, in every direction.
    for (turn, shape) in
        [(31, 29, 27), (17, 5, 32), (3, 7, 13), (1, 1, 1), (9, 32, 2), (32, 1, 5)].into_iter().enumerate()
    {
        agrees::<f64>(shape, [Store::ColGaps, Store::ByRows, Store::ColGaps], 5 + turn);
        agrees::<f32>(shape, [Store::ColGaps, Store::Listed, Store::ByCols], 6 + turn);
    }
}
