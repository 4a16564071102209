//! `Global` and `Shared`.

use cuda_std::prelude::*;
use cuda_std::ptx::Hint;
use cuda_std::{Scalar, Word};

/// An index that no operand has.
const OUTSIDE: u64 = 1 << 40;

fn thread() -> u64 {
    u64::from(thread::thread_idx_x())
}

/// Stores, and adds to what was stored.
#[inline(always)]
unsafe fn load<T: Scalar>(input: Global<T>, out: Global<T>) {
    let t = thread();
    unsafe {
        out.store(t, input.load(31 - t));
        out.store(t, out.load(t).add(T::ONE));
    }
}

/// Every third thread is outside.
#[inline(always)]
unsafe fn predicated<T: Scalar>(out: Global<T>, load: impl Fn(bool, u64) -> T) {
    let t = thread();
    let inside = t % 3 != 0;
    unsafe { out.store(t, load(inside, if inside { t } else { OUTSIDE })) };
}

#[inline(always)]
unsafe fn coherent<T: Scalar>(input: Global<T>, inside: bool, index: u64) -> T {
    T::from_word(unsafe { T::Word::ld_global_if(input.address(index), Hint::Coherent, inside) })
}

#[inline(always)]
unsafe fn stream_wide<T: Scalar>(input: Global<T>, out: Global<T>) {
    let width = T::WIDTH as u64;
    let wide = unsafe { input.stream_wide((31 - thread()) * width) };
    for i in 0..T::WIDTH {
        unsafe { out.store(thread() * width + i as u64, wide[i]) };
    }
}

/// Another lane's number, past 16 bytes of another piece.
#[inline(always)]
unsafe fn shared<T: Scalar>(input: Global<T>, out: Global<T>) {
    let (t, piece) = (thread::thread_idx_x(), Shared::<T>::at(T::WIDTH as u32));
    unsafe {
        piece.store(t, input.load(u64::from(t)));
        thread::sync_threads();
        out.store(u64::from(t), piece.load(31 - t));
    }
}

#[inline(always)]
unsafe fn shared_wide<T: Scalar>(input: Global<T>, out: Global<T>) {
    let (t, width, piece) = (thread::thread_idx_x(), T::WIDTH as u32, Shared::<T>::at(0));
    for i in 0..T::WIDTH as u32 {
        unsafe { piece.store(t + 32 * i, input.load(u64::from(t + 32 * i))) };
    }
    thread::sync_threads();
    let wide = unsafe { piece.load_wide((31 - t) * width) };
    for i in 0..T::WIDTH {
        unsafe { out.store(u64::from(t * width) + i as u64, wide[i]) };
    }
}

/// The kernels of one type.
macro_rules! of_type {
    ($float:ident, $load:ident, $load_if:ident, $coherent_if:ident, $stream_if:ident, $wide:ident, $shared:ident, $shared_wide:ident) => {
        #[kernel]
        pub unsafe fn $load(input: Global<$float>, out: Global<$float>) {
            unsafe { load(input, out) }
        }
        #[kernel]
        pub unsafe fn $load_if(input: Global<$float>, out: Global<$float>) {
            unsafe { predicated(out, |inside, index| input.load_if(inside, index)) }
        }
        #[kernel]
        pub unsafe fn $coherent_if(input: Global<$float>, out: Global<$float>) {
            unsafe { predicated(out, |inside, index| coherent(input, inside, index)) }
        }
        #[kernel]
        pub unsafe fn $stream_if(input: Global<$float>, out: Global<$float>) {
            unsafe { predicated(out, |inside, index| input.stream_if(inside, index)) }
        }
        #[kernel]
        pub unsafe fn $wide(input: Global<$float>, out: Global<$float>) {
            unsafe { stream_wide(input, out) }
        }
        #[kernel]
        pub unsafe fn $shared(input: Global<$float>, out: Global<$float>) {
            unsafe { shared(input, out) }
        }
        #[kernel]
        pub unsafe fn $shared_wide(input: Global<$float>, out: Global<$float>) {
            unsafe { shared_wide(input, out) }
        }
    };
}
of_type!(f32, load_f32, load_if_f32, coherent_if_f32, stream_if_f32, stream_wide_f32, shared_f32, shared_wide_f32);
of_type!(f64, load_f64, load_if_f64, coherent_if_f64, stream_if_f64, stream_wide_f64, shared_f64, shared_wide_f64);

/// Elements from the last to the first, each as the first of what follows it.
#[kernel]
pub unsafe fn starting_at(input: Global<f32>, out: Global<f32>) {
    let t = u64::from(thread::thread_idx_x());
    unsafe { out.starting_at(t).store(0, input.starting_at(31 - t).load(0)) };
}

/// 16 bytes of every lane but each third, by way of another lane and shared memory.
#[inline(always)]
unsafe fn stored_wide<T: Scalar>(input: Global<T>, out: Global<T>) {
    let (t, width, piece) = (thread::thread_idx_x(), T::WIDTH as u32, Shared::<T>::at(0));
    let wide = unsafe { input.stream_wide_if(t % 3 != 0, u64::from(t * width)) };
    unsafe { piece.store_wide(t * width, |i| wide[i]) };
    thread::sync_threads();
    let other = unsafe { piece.load_wide((31 - t) * width) };
    unsafe { out.store_wide(u64::from(t * width), |i| other[i]) };
}

#[kernel]
pub unsafe fn stored_wide_f32(input: Global<f32>, out: Global<f32>) {
    unsafe { stored_wide(input, out) }
}

#[kernel]
pub unsafe fn stored_wide_f64(input: Global<f64>, out: Global<f64>) {
    unsafe { stored_wide(input, out) }
}
