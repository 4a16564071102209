//! What the multipliers of this machine give to all cores: where many multiply-adds belong to few bytes, the bound is theirs.

use cpu::Instructions;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Multiply-adds of a chain in one sample: some hundred microseconds, which other work seldom interrupts.
const STEPS: u64 = 50_000;
/// Independent chains, enough for two units of latency 5.
const CHAINS: usize = 12;

/// Multiply-adds of f64 in a second, on all cores, with these instructions; of f32 they are twice as many.
pub fn of_f64(instructions: Instructions) -> f64 {
    let threads = rayon::current_num_threads();
    let fastest = (0..threads).into_par_iter().with_max_len(1).map(|_| {
        let once = |_| {
            let start = Instant::now();
            let lanes = chains(instructions, black_box(0.5));
            (STEPS * CHAINS as u64 * lanes) as f64 / start.elapsed().as_secs_f64()
        };
        (0..200).map(once).fold(0.0, f64::max)
    });
    fastest.sum()
}

/// x <- x / 2 + 1 from 2 on, where it stays; lanes of a vector.
fn chains(instructions: Instructions, half: f64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    match instructions {
        // SAFETY: `Args` looked whether the CPU has the instructions.
        Instructions::Avx512 => return unsafe { x86::chains_512(half) },
        // SAFETY: as above.
        Instructions::Avx2 => return unsafe { x86::chains_256(half) },
        _ => {}
    }
    let _ = instructions;
    let mut x = [2.0_f64; 2 * CHAINS];
    for _ in 0..STEPS {
        x.iter_mut().for_each(|x| *x = *x * half + 1.0);
    }
    assert!(x.iter().all(|x| *x == 2.0), "a multiply-add is wrong");
    2
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, STEPS};
    use std::arch::x86_64::{_mm256_fmadd_pd, _mm256_set1_pd, _mm512_fmadd_pd, _mm512_set1_pd};

    /// # Safety
    /// The CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn chains_512(half: f64) -> u64 {
        let (half, one, mut x) = (_mm512_set1_pd(half), _mm512_set1_pd(1.0), [_mm512_set1_pd(2.0); CHAINS]);
        for _ in 0..STEPS {
            for x in &mut x {
                *x = _mm512_fmadd_pd(*x, half, one);
            }
        }
        // SAFETY: a vector of eight numbers.
        let all = x.map(|x| unsafe { std::mem::transmute::<_, [f64; 8]>(x) });
        assert!(all.iter().flatten().all(|x| *x == 2.0), "a multiply-add is wrong");
        8
    }

    /// # Safety
    /// The CPU has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn chains_256(half: f64) -> u64 {
        let (half, one, mut x) = (_mm256_set1_pd(half), _mm256_set1_pd(1.0), [_mm256_set1_pd(2.0); CHAINS]);
        for _ in 0..STEPS {
            for x in &mut x {
                *x = _mm256_fmadd_pd(*x, half, one);
            }
        }
        // SAFETY: a vector of four numbers.
        let all = x.map(|x| unsafe { std::mem::transmute::<_, [f64; 4]>(x) });
        assert!(all.iter().flatten().all(|x| *x == 2.0), "a multiply-add is wrong");
        4
    }
}
