//! Arithmetic that Rust has no operator for.

/// factor · other + addend in f32, rounded once. `fma.rn.f32`, any architecture.
#[inline(always)]
pub fn fma_f32(factor: f32, other: f32, addend: f32) -> f32 {
    crate::Scalar::fma(factor, other, addend)
}

/// factor · other + addend in f64, rounded once. `fma.rn.f64`, any architecture.
#[inline(always)]
pub fn fma_f64(factor: f64, other: f64, addend: f64) -> f64 {
    crate::Scalar::fma(factor, other, addend)
}

/// One `mma` of f64: `$k` steps of k, the registers of A and of B, and their places in the instruction.
macro_rules! mma_f64 {
    ($name:ident, $k:literal, $a:literal, $b:literal, $a_places:literal, $b_places:literal, [$($i:literal),*], [$($j:literal),*]) => {
        #[doc = concat!("D (16 x 8) = A (16 x ", $k, ") B (", $k, " x 8) + C over a warp, in f64.")]
        #[doc = concat!("`mma.sync.aligned.m16n8k", $k, ".row.col.f64.f64.f64.f64`, from sm_90, PTX 7.8.")]
        ///
        /// Lane t, with g = t / 4 and q = t % 4, holds A(g + 8·(i % 2), q + 4·(i / 2)) in `a[i]`, B(q + 4·i, g) in `b[i]`,
        /// and of C and D: (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1).
        /// Each sum is a chain of fused multiply-adds over k in ascending order that starts from C.
        ///
        /// # Safety
        /// All 32 lanes of the warp make the same call, at once: it is not in code that depends on the lane.
        #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(a: [f64; $a], b: [f64; $b], c: [f64; 4]) -> [f64; 4] {
            #[cfg(target_arch = "nvptx64")]
            {
                let [mut d0, mut d1, mut d2, mut d3] = c;
                // Not `pure`: the compiler would move it to where its result is used, into a branch that some lanes take.
                // SAFETY: all 32 lanes are at this call, as the caller promised and `.aligned` needs; registers alone.
                unsafe {
                    core::arch::asm!(
                        concat!("mma.sync.aligned.m16n8k", $k, ".row.col.f64.f64.f64.f64 {{{0}, {1}, {2}, {3}}}, ",
                            $a_places, ", ", $b_places, ", {{{0}, {1}, {2}, {3}}};"),
                        inout(reg64) d0, inout(reg64) d1, inout(reg64) d2, inout(reg64) d3,
                        $(in(reg64) a[$i],)* $(in(reg64) b[$j],)*
                        options(nomem, nostack)
                    );
                }
                [d0, d1, d2, d3]
            }
            #[cfg(not(target_arch = "nvptx64"))]
            crate::hooks::hooks().mma_f64(&a, &b, c, core::panic::Location::caller())
        }
    };
}
mma_f64!(mma_m16n8k4_f64, 4, 2, 1, "{{{4}, {5}}}", "{{{6}}}", [0, 1], [0]);
mma_f64!(mma_m16n8k8_f64, 8, 4, 2, "{{{4}, {5}, {6}, {7}}}", "{{{8}, {9}}}", [0, 1, 2, 3], [0, 1]);
mma_f64!(
    mma_m16n8k16_f64,
    16,
    8,
    4,
    "{{{4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}}}",
    "{{{12}, {13}, {14}, {15}}}",
    [0, 1, 2, 3, 4, 5, 6, 7],
    [0, 1, 2, 3]
);

/// D (16 x 8) = A (16 x 8) B (8 x 8) + C over a warp, of f32 whose last 13 bits are not looked at, as if they were 0.
/// `mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32`, from sm_80, PTX 7.0.
///
/// The lanes hold A, B, C and D as for [`mma_m16n8k8_f64`]. Products are exact. How their sum with C is rounded is the device's affair: it is off by
/// little more than the last bit of the largest of its terms.
///
/// # Safety
/// All 32 lanes of the warp make the same call, at once: it is not in code that depends on the lane.
#[inline(always)]
#[track_caller]
pub unsafe fn mma_m16n8k8_tf32(a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
    #[cfg(target_arch = "nvptx64")]
    {
        let [mut d0, mut d1, mut d2, mut d3] = c;
        // Not `pure`, as of `mma_m16n8k8_f64`.
        // SAFETY: all 32 lanes are at this call, as the caller promised and `.aligned` needs; registers alone.
        unsafe {
            core::arch::asm!(
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};",
                inout(reg32) d0, inout(reg32) d1, inout(reg32) d2, inout(reg32) d3,
                in(reg32) a[0].to_bits(), in(reg32) a[1].to_bits(), in(reg32) a[2].to_bits(), in(reg32) a[3].to_bits(),
                in(reg32) b[0].to_bits(), in(reg32) b[1].to_bits(),
                options(nomem, nostack)
            );
        }
        [d0, d1, d2, d3]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::hooks::hooks().mma_tf32(&a, &b, c, core::panic::Location::caller())
}

/// The same number, which stays in its register: no compiler works it out again where it is used. `shfl.sync.bfly.b32`
/// with the lane itself, from sm_30, PTX 6.0.
///
/// # Safety
/// All 32 lanes of the warp make the same call, at once.
#[inline(always)]
pub unsafe fn pinned(x: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let y;
        // SAFETY: all 32 lanes are at this call, as the caller promised, so each reads its own register.
        unsafe {
            core::arch::asm!("shfl.sync.bfly.b32 {0}, {1}, 0, 0x1f, 0xffffffff;", out(reg32) y, in(reg32) x, options(nomem, nostack));
        }
        y
    }
    #[cfg(not(target_arch = "nvptx64"))]
    x
}

/// First in a loop's body: the assembler leaves the loop as it is. `.pragma "nounroll"`, PTX 2.0.
#[inline(always)]
pub fn nounroll() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: it is no instruction.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nomem, nostack, preserves_flags));
    }
}

/// The same number, of which the compiler knows nothing any more: a loop up to it stays a loop. `mov.u32`, any
/// architecture.
#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let y;
        // SAFETY: copying a register has no requirements.
        unsafe {
            core::arch::asm!("mov.u32 {0}, {1};", out(reg32) y, in(reg32) x, options(pure, nomem, nostack));
        }
        y
    }
    #[cfg(not(target_arch = "nvptx64"))]
    x
}
