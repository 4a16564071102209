//! Fused and separate arithmetic, atomics, the matrix instruction.

use crate::put;
use cuda_std::Scalar;
use cuda_std::prelude::*;

/// x x - 1, rounded once, and (x x) + x, rounded twice.
macro_rules! of_type {
    ($float:ident, $fma:ident, $apart:ident) => {
        #[kernel]
        pub unsafe fn $fma(input: Global<$float>, out: Global<$float>) {
            let t = u64::from(thread::thread_idx_x());
            unsafe {
                let x = input.load(t);
                out.store(t, ptx::$fma(x, x, -1.0));
            }
        }
        #[kernel]
        pub unsafe fn $apart(input: Global<$float>, out: Global<$float>) {
            let t = u64::from(thread::thread_idx_x());
            unsafe {
                let x = input.load(t);
                out.store(t, Scalar::add(Scalar::mul(x, x), x));
            }
        }
    };
}
of_type!(f32, fma_f32, apart_f32);
of_type!(f64, fma_f64, apart_f64);

#[kernel]
pub unsafe fn red_add_f32(input: Global<f32>, out: Global<f32>) {
    let t = u64::from(thread::thread_idx_x());
    unsafe { ptx::red_add_f32(out.address(t % 2), input.load(t)) };
}

#[kernel]
pub unsafe fn red_add_f64(input: Global<f64>, out: Global<f64>) {
    let t = u64::from(thread::thread_idx_x());
    unsafe { ptx::red_add_f64(out.address(t % 2), input.load(t)) };
}

/// Each thread draws a ticket from the first word and marks its place behind it.
#[kernel]
pub unsafe fn atom_add_u32(_input: Global<f32>, out: Global<f32>) {
    unsafe {
        let ticket = ptx::atom_add_u32(out.address(0), 2);
        put(out, 1 + ticket, 7);
    }
}

/// The thread's number, and as many as a loop up to 5 turns.
#[kernel]
pub unsafe fn opaque(_input: Global<f32>, out: Global<f32>) {
    let mut turns = thread::thread_idx_x();
    for _ in 0..ptx::opaque(5) {
        ptx::nounroll();
        turns += 1;
    }
    unsafe { put(out, thread::thread_idx_x(), turns) };
}

/// Remainder of the address by 16.
#[kernel]
pub unsafe fn dynamic_shared(_input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    unsafe { put(out, t, ptx::dynamic_shared() % 16) };
}

/// D = A B + C: A (16 x k), B (k x 8), C (16 x 8) one after the other, each with unit stride along its rows.
macro_rules! mma {
    ($(#[$when:meta])* $name:ident, $elem:ty, $k:literal) => {
        $(#[$when])*
        #[kernel]
        pub unsafe fn $name(input: Global<$elem>, out: Global<$elem>) {
            const B: u64 = 16 * $k;
            const C: u64 = B + 8 * $k;
            let lane = u64::from(warp::lane_id());
            let (g, q) = (lane / 4, lane % 4);
            let (mut a, mut b, mut c) = ([0.0; $k / 2], [0.0; $k / 4], [0.0; 4]);
            unsafe {
                for i in 0..$k / 2 {
                    a[i] = input.load($k * (g + 8 * (i as u64 % 2)) + q + 4 * (i as u64 / 2));
                }
                for i in 0..$k / 4 {
                    b[i] = input.load(B + 8 * (q + 4 * i as u64) + g);
                }
                for i in 0..4 {
                    c[i] = input.load(C + 8 * (g + 8 * (i as u64 / 2)) + 2 * q + i as u64 % 2);
                }
                let d = ptx::$name(a, b, c);
                for i in 0..4 {
                    out.store(8 * (g + 8 * (i as u64 / 2)) + 2 * q + i as u64 % 2, d[i]);
                }
            }
        }
    };
}
mma!(#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))] mma_m16n8k4_f64, f64, 4);
mma!(#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))] mma_m16n8k8_f64, f64, 8);
mma!(#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))] mma_m16n8k16_f64, f64, 16);
mma!(mma_m16n8k8_tf32, f32, 8);

/// Each thread's number.
#[kernel]
pub unsafe fn pinned(_input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    unsafe { put(out, t, ptx::pinned(t)) };
}

/// The upper half stores what the whole warp computed.
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
#[kernel]
pub unsafe fn mma_for_some(input: Global<f64>, out: Global<f64>) {
    let lane = u64::from(warp::lane_id());
    unsafe {
        let d = ptx::mma_m16n8k16_f64([input.load(lane); 8], [1.0; 4], [0.0; 4]);
        if lane >= 16 {
            for i in 0..4 {
                out.store(4 * lane + i as u64, d[i]);
            }
        }
    }
}
