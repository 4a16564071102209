//! Bulk asynchronous copies of Hopper: `cp.async.bulk` between global and shared memory, the `mbarrier` that says when a
//! load is there, and the groups of stores. There are functions for sm_90 and off the GPU.
//!
//! A load completes on an mbarrier: a thread says how many bytes are to come and arrives ([`mbarrier_expect`]), starts the
//! loads ([`bulk_load`]), and whoever reads them waits for the phase ([`mbarrier_wait`]). Phases are numbered from 0; one ends
//! when all arrivals and all bytes are there, and is waited for by its parity. A store belongs to a group of its thread
//! ([`bulk_commit_group`]), which that thread waits for.
//!
//! Bulk copies see shared memory by another path, the async proxy: what threads wrote there is stored only behind
//! [`fence_proxy_async`], by each of the writers, and then a barrier. What a load brings needs no fence, nor does a load to where threads read.
//!
//! Most of these are of PTX 8.0, which takes a driver for CUDA 12.0: kernels that have them say so to `cuda_builder`, by
//! `CudaBuilder::ptx_version`.

use super::{GlobalAddress, SharedAddress};
#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Fence, hooks};
#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

/// Makes the 8 bytes an mbarrier in phase 0, each of whose phases takes `arrivals` arrivals. `mbarrier.init.shared.b64`,
/// from sm_80, PTX 7.0.
///
/// # Safety
/// The address is a multiple of 8 and nothing else is there from now on; `arrivals` is 1 to 2^20 - 1. Other threads use it
/// behind a barrier, and [`bulk_load`] behind [`fence_proxy_async`] of this thread too.
#[inline(always)]
#[track_caller]
pub unsafe fn mbarrier_init(at: SharedAddress, arrivals: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: 8 aligned bytes that are the mbarrier's alone, and 1 to 2^20 - 1 arrivals, as the caller promised.
    unsafe {
        asm!("mbarrier.init.shared.b64 [{0}], {1};", in(reg32) at.0, in(reg32) arrivals, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().mbarrier_init(at.0, arrivals, Location::caller());
}

/// Says that loads bring `bytes` bytes more in this phase, and arrives. `mbarrier.arrive.expect_tx.shared.b64`, from sm_90,
/// PTX 8.0.
///
/// # Safety
/// The address is that of an mbarrier; its phase lacks an arrival, and expects fewer than 2^20 bytes in all.
#[inline(always)]
#[track_caller]
pub unsafe fn mbarrier_expect(at: SharedAddress, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: an mbarrier whose phase lacks an arrival and has room for the bytes, as the caller promised.
    unsafe {
        asm!("mbarrier.arrive.expect_tx.shared.b64 _, [{0}], {1};", in(reg32) at.0, in(reg32) bytes, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().mbarrier_expect(at.0, bytes, Location::caller());
}

/// Waits until the phase of this parity, 0 or 1, has ended: the current one, or the one before, which has. What its loads
/// brought is then seen by this thread. `mbarrier.try_wait.parity.shared.b64` in a loop, from sm_90, PTX 7.8.
///
/// # Safety
/// The address is that of an mbarrier; the phase is one of those two.
#[inline(always)]
#[track_caller]
pub unsafe fn mbarrier_wait(at: SharedAddress, parity: u32) {
    #[cfg(target_arch = "nvptx64")]
    // A label in braces is theirs alone: the block may be there any number of times.
    #[allow(named_asm_labels)]
    // SAFETY: an mbarrier in one of the two phases that the parity tells apart, as the caller promised.
    unsafe {
        asm!(
            "{{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [{0}], {1}; @!p bra again; }}",
            in(reg32) at.0, in(reg32) parity, options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().mbarrier_wait(at.0, parity, Location::caller());
}

/// Starts copying `bytes` bytes into shared memory; they count for the mbarrier's phase when they are there.
/// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes`, from sm_90, PTX 8.0.
///
/// # Safety
/// Both addresses and `bytes` are multiples of 16, the source holds `bytes` bytes that nobody writes until they are there,
/// and the target is not accessed until the phase was waited for. Between earlier accesses of other threads to the target and
/// this lies a barrier, or an mbarrier at which they arrived: that is enough behind what they read, and behind what they wrote there each goes through
/// [`fence_proxy_async`] first. The phase is the current one, and it, or its arrivals to come, expects the bytes.
#[inline(always)]
#[track_caller]
pub unsafe fn bulk_load(into: SharedAddress, from: GlobalAddress, bytes: u32, barrier: SharedAddress) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: multiples of 16; nobody writes the source or touches the target before the phase ends, which expects the
    // bytes: all as the caller promised.
    unsafe {
        asm!(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}], {2}, [{3}];",
            in(reg32) into.0, in(reg64) from.0, in(reg32) bytes, in(reg32) barrier.0, options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().bulk_load(into.0, from.0, bytes, barrier.0, Location::caller());
}

/// Starts copying `bytes` bytes from shared into global memory, as part of this thread's open group.
/// `cp.async.bulk.global.shared::cta.bulk_group`, from sm_90, PTX 8.0.
///
/// # Safety
/// Both addresses and `bytes` are multiples of 16. The source was written by loads that were waited for, or by threads of
/// which each went through [`fence_proxy_async`] behind its writes, and then a barrier with this one; nobody writes it until
/// [`bulk_wait_group_read`] of this thread. The target takes `bytes` bytes, and nobody touches it until [`bulk_wait_group`]
/// of this thread or the end of the kernel.
#[inline(always)]
#[track_caller]
pub unsafe fn bulk_store(into: GlobalAddress, from: SharedAddress, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: multiples of 16; the source is written, behind fence and barrier, and nobody touches the target: all as
    // the caller promised.
    unsafe {
        asm!(
            "cp.async.bulk.global.shared::cta.bulk_group [{0}], [{1}], {2};",
            in(reg64) into.0, in(reg32) from.0, in(reg32) bytes, options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().bulk_store(into.0, from.0, bytes, Location::caller());
}

/// Closes this thread's group of bulk stores: those since the last one, which may be none. `cp.async.bulk.commit_group`,
/// from sm_90, PTX 8.0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn bulk_commit_group() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: closing a group has no requirements.
    unsafe {
        asm!("cp.async.bulk.commit_group;", options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().bulk_commit_group(Location::caller());
}

/// Waits until at most `PENDING` of this thread's groups of bulk stores are under way; what the others wrote is in global
/// memory, for this thread to see. `cp.async.bulk.wait_group`, from sm_90, PTX 8.0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn bulk_wait_group<const PENDING: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: waiting has no requirements.
    unsafe {
        asm!("cp.async.bulk.wait_group {0};", const PENDING, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().bulk_wait_group(PENDING, false, Location::caller());
}

/// Waits until at most `PENDING` of this thread's groups of bulk stores still read their sources: this thread may write the
/// others', and other threads behind a barrier. `cp.async.bulk.wait_group.read`, from sm_90, PTX 8.0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn bulk_wait_group_read<const PENDING: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: waiting has no requirements.
    unsafe {
        asm!("cp.async.bulk.wait_group.read {0};", const PENDING, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().bulk_wait_group(PENDING, true, Location::caller());
}

/// What this thread wrote to shared memory before is seen by bulk copies that come behind: its own, and behind a barrier
/// those of other threads. `fence.proxy.async.shared::cta`, from sm_90, PTX 8.0.
#[inline(always)]
#[track_caller]
pub fn fence_proxy_async() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a fence has no requirements.
    unsafe {
        asm!("fence.proxy.async.shared::cta;", options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().fence(Fence::AsyncProxy, Location::caller());
}
